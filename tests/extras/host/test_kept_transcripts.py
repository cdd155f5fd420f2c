"""A group's transcripts stay, and come back if they were deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from host_scene import GroupDir, three_groups
from records import exchange

from session_memory.extras.host._group_files import prepare_group
from session_memory.history.copies.keep import keep_sessions
from session_memory.history.store.ingest.intake import take_in
from session_memory.history.store.location import find_location
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.sessions.settings.registry import register_host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupDir]:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with three_groups(tmp_path / "host") as host:
        register_host(host.layout.root, os.environ)
        yield host


def keep(host: GroupDir, how: str) -> None:
    """Keeps the transcripts as upkeep does."""
    config = Path(host.layout.config_file)
    config.parent.mkdir(exist_ok=True)
    config.write_text(f"keep: {how}\n")
    location = find_location(host.layout.root, os.environ)
    with closing(SqliteStore(location.database)) as store:
        assert take_in(store, location).problems == []
        assert keep_sessions(store, location, lambda: False).problems == []


def cleared(host: GroupDir, *records: dict[str, object]) -> tuple[str, Path]:
    """A session of family, cleared as `beans`; its id and transcript."""
    session_id = host.begin("family", *records)
    assert not host.call("family", "clear_session", name="beans").is_error
    return session_id, host.transcript("family", session_id)


class TestResume:
    def test_a_deleted_transcript_comes_back_byte_for_byte_and_the_answer_says_so(
        self, host: GroupDir
    ) -> None:
        session_id, transcript = cleared(host, *exchange("plant beans", "where?"))
        before = transcript.read_bytes()
        keep(host, "whole")
        transcript.unlink()
        answer = host.call("family", "resume_session", id="beans")
        assert not answer.is_error, answer.text
        assert "Its transcript was gone, and is restored from a copy." in answer.text
        assert transcript.read_bytes() == before
        assert host.sessions.get("family") == session_id

    def test_a_redacted_copy_comes_back_without_secrets(self, host: GroupDir) -> None:
        secret = "sk-ant-api03-" + "aB3" * 20
        _, transcript = cleared(host, *exchange(f"my key is {secret}", "I see"))
        keep(host, "redacted")
        transcript.unlink()
        answer = host.call("family", "resume_session", id="beans")
        assert "a copy without its secrets" in answer.text
        assert secret not in transcript.read_text()
        assert "I see" in transcript.read_text()

    def test_without_a_copy_it_says_what_is_needed_and_changes_nothing(
        self, host: GroupDir
    ) -> None:
        _, transcript = cleared(host, *exchange("plant beans", "where?"))
        transcript.unlink()
        present = host.begin("family", *exchange("peas?", "in April"))
        answer = host.call("family", "resume_session", id="beans", save_as="peas")
        assert answer.is_error
        assert "the transcript of this session is gone" in answer.text
        assert "`keep: whole`" in answer.text
        assert host.sessions.get("family") == present
        assert [entry.name for entry in host.sessions.get_history("family")] == ["beans"]

    def test_another_groups_copy_of_the_same_id_is_not_given(self, host: GroupDir) -> None:
        session_id, transcript = cleared(host, *exchange("plant beans", "where?"))
        transcript.unlink()
        work = host.transcript("work", session_id)
        work.parent.mkdir(parents=True)
        work.write_bytes(b"\n".join(json.dumps(one).encode() for one in exchange("secret", "x")))
        keep(host, "whole")
        answer = host.call("family", "resume_session", id="beans")
        assert answer.is_error
        assert not transcript.exists()


class TestTheSettings:
    def test_a_new_group_keeps_its_transcripts_for_a_century(self, host: GroupDir) -> None:
        group = host.layout.group("family")
        prepare_group(group)
        assert json.loads(Path(group.settings_file).read_text())["cleanupPeriodDays"] == 36_500

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"model": "x", "é": [1]}, {"model": "x", "é": [1], "cleanupPeriodDays": 36_500}),
            ({"cleanupPeriodDays": 90}, {"cleanupPeriodDays": 90}),
            ({"cleanupPeriodDays": None}, {"cleanupPeriodDays": None}),
            ([], []),
        ],
    )
    def test_an_older_group_gets_the_key_unless_a_person_set_it(
        self, host: GroupDir, before: object, after: object
    ) -> None:
        group = host.layout.group("family")
        Path(group.settings_file).write_text(json.dumps(before))
        prepare_group(group)
        assert json.loads(Path(group.settings_file).read_text()) == after

    @pytest.mark.parametrize("text", ["{", "", "{'a': 1}"])
    def test_a_broken_file_stays_as_it_is(self, host: GroupDir, text: str) -> None:
        group = host.layout.group("family")
        Path(group.settings_file).write_text(text)
        prepare_group(group)
        assert Path(group.settings_file).read_text() == text

    def test_a_link_to_another_groups_settings_is_not_followed(self, host: GroupDir) -> None:
        family, work = host.layout.group("family"), host.layout.group("work")
        Path(work.settings_file).write_text("{}")
        Path(family.settings_file).symlink_to(work.settings_file)
        prepare_group(family)
        assert Path(work.settings_file).read_text() == "{}"
