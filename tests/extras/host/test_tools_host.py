"""The tools of a host's group: an agent's view of its sessions, and switching between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from host_scene import GroupDir, three_groups
from records import append, exchange, new_id

from session_memory.extras.host.group_backend import GroupBackend
from session_memory.sessions.settings.host_layout import GroupNameError


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupDir]:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    with three_groups(tmp_path / "host") as host:
        yield host


def test_a_cleared_session_is_listed_under_its_name_and_the_next_message_begins_a_new_one(
    host: GroupDir,
) -> None:
    host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
    told = host.call("family", "clear_session", name="Japan trip")
    (entry,) = host.sessions.get_history("family")
    assert not told.is_error
    assert told.text.startswith(
        f"Done: this conversation is kept as 'Japan trip' (id {entry.id}), all of it in conv"
    )
    assert host.sessions.get("family") is None
    assert f'- "Japan trip" (id {entry.id}), just now' in host.call("family", "list_sessions").text
    (archive,) = host.archives("family")
    assert archive in told.text


def test_a_resumed_session_is_the_active_one_again(host: GroupDir) -> None:
    japan = host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
    host.call("family", "clear_session", name="Japan trip")
    host.begin("family", *exchange("and taxes?", "Later."))
    (entry,) = host.sessions.get_history("family")
    told = host.call("family", "resume_session", id=str(entry.id), save_as="Taxes")
    assert told.text.startswith("Done: the next message continues 'Japan trip'.")
    assert "The previous session is kept as 'Taxes'" in told.text
    assert host.sessions.get("family") == japan
    assert [one.name for one in host.sessions.get_history("family")] == ["Taxes"]
    assert len(host.archives("family")) == 2


def test_a_session_is_resumed_by_its_name_too(host: GroupDir) -> None:
    japan = host.begin("family")
    host.call("family", "clear_session", name="Japan trip")
    told = host.call("family", "resume_session", id="japan TRIP")
    assert (told.is_error, host.sessions.get("family")) == (False, japan)


def test_what_was_not_saved_is_said_not_to_be_listed(host: GroupDir) -> None:
    host.begin("family")
    host.call("family", "clear_session", name="Japan trip")
    host.begin("family", *exchange("and taxes?", "Later."))
    told = host.call("family", "resume_session", id="Japan trip")
    assert "The previous session is no longer listed, all of it in conversations/" in told.text


def test_the_active_session_is_listed_under_its_title_and_cannot_be_resumed(host: GroupDir) -> None:
    session_id = host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
    listed = host.call("family", "list_sessions").text
    assert f'- "plan a trip to Japan" (id {session_id}, the one you are in), just now' in listed
    told = host.call("family", "resume_session", id=session_id)
    assert (told.is_error, told.text) == (
        True,
        "you are already in that session. There is nothing to resume",
    )


def test_a_session_whose_first_message_is_on_its_way_is_listed_without_a_title(
    host: GroupDir,
) -> None:
    host.sessions.set("family", new_id())
    assert '- "the present conversation" (id ' in host.call("family", "list_sessions").text


def test_clearing_without_an_active_session_says_so(host: GroupDir) -> None:
    told = host.call("family", "clear_session", name="Japan trip")
    assert (told.is_error, told.text) == (
        True,
        "family has no active session. The next message starts one",
    )


def test_a_name_of_nothing_but_blanks_is_refused_and_nothing_changes(host: GroupDir) -> None:
    session_id = host.begin("family")
    told = host.call("family", "clear_session", name=" \u200b\n")
    assert told.is_error
    assert "needs a name" in told.text
    assert host.sessions.get("family") == session_id


def test_a_session_is_read_by_name(host: GroupDir) -> None:
    host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
    host.call("family", "clear_session", name="Japan trip")
    told = host.call("family", "read_session", name="Japan")
    assert "plan a trip to Japan" in told.text
    assert "With pleasure." in told.text


def test_a_session_whose_transcript_is_gone_says_where_to_look_instead(host: GroupDir) -> None:
    session_id = host.begin("family")
    host.call("family", "clear_session", name="Japan trip")
    host.transcript("family", session_id).unlink()
    read = host.call("family", "read_session", name="Japan trip")
    assert (
        read.text
        == "the transcript of 'Japan trip' is gone. Its archive may still be there: use search_sessions"
    )
    resumed = host.call("family", "resume_session", id="Japan trip")
    assert resumed.is_error
    assert "Its archive may still be there" in resumed.text


class TestMain:
    def test_lists_the_sessions_of_all_groups_its_own_first(self, host: GroupDir) -> None:
        host.begin("work", *exchange("the quarterly report", "Here."))
        own = host.begin("main", *exchange("who is there?", "Me."))
        rows = host.call("main", "list_sessions").text.splitlines()
        assert rows[0] == "2 sessions, latest first. read_session takes a name or an id."
        assert rows[1].startswith(f'- "who is there?" (id {own}, the one you are in)')
        assert ", group work, active there)" in rows[2]

    def test_reads_the_sessions_of_all_groups(self, host: GroupDir) -> None:
        host.begin("work", *exchange("the quarterly report", "Here."))
        host.call("work", "clear_session", name="Report")
        assert "the quarterly report" in host.call("main", "read_session", name="Report").text

    def test_does_not_switch_the_sessions_of_others(self, host: GroupDir) -> None:
        session_id = host.begin("work")
        host.call("work", "clear_session", name="Report")
        told = host.call("main", "resume_session", id="Report")
        assert told.is_error
        assert "only the agent of the group work can resume its sessions" in told.text
        assert [one.session_id for one in host.sessions.get_history("work")] == [session_id]

    def test_a_directory_that_can_be_no_group_is_left_out(self, host: GroupDir) -> None:
        for name in (".hidden", "a b", "Global"):
            (host.root / "groups" / name).mkdir()
        host.begin("work")
        (host.root / "groups" / "linked").symlink_to("work")
        host.sessions.set("linked", new_id())
        assert host.call("main", "list_sessions").text.startswith("1 session, latest first.")


def test_no_backend_is_made_for_an_impossible_group(host: GroupDir) -> None:
    for name in (
        "",
        "..",
        "../family",
        "/etc",
        "global",
        "Global",
        "a/b",
        "fa mily",
        "famıly",
        "x" * 300,
    ):
        with pytest.raises(GroupNameError):
            GroupBackend(host.layout, name, host.sessions)


def test_a_session_goes_on_after_it_was_cleared_and_resumed(host: GroupDir) -> None:
    session_id = host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
    host.call("family", "clear_session", name="Japan trip")
    host.call("family", "resume_session", id="Japan trip")
    append(host.transcript("family", session_id), *exchange("what about Kyoto?", "In May."))
    host.call("family", "clear_session", name="Japan and Kyoto")
    (archive,) = host.archives("family")
    assert "what about Kyoto?" in (host.root / "groups/family/conversations" / archive).read_text()
    assert [one.name for one in host.sessions.get_history("family")] == ["Japan and Kyoto"]


class TestRules:
    """What the host's rules, and those for a group, leave of its sessions to the agents of the
    group and of main."""

    @pytest.fixture
    def diary(self, host: GroupDir) -> str:
        """A session of family that was cleared as `diary`, and one that goes on."""
        id = host.begin("family", *exchange("my diagnosis is plums", "I see."))
        host.call("family", "clear_session", name="diary")
        host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
        return id

    def rules(self, host: GroupDir, text: str, file: str = "config.yaml") -> None:
        path = Path(host.layout.root, ".session-memory", file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def told(self, host: GroupDir, group: str, diary: str) -> str:
        """All that the tools tell an agent of it."""
        listed = host.call(group, "list_sessions").text
        read = (
            host.call(group, "read_session", name=diary).text
            + host.call(group, "read_session", name="diary").text
        )
        return listed + read

    def test_an_excluded_session_is_in_none_of_the_tools(self, host: GroupDir, diary: str) -> None:
        for rule, file in (
            ("sessions: {diary: {ignore: true}}", "config.yaml"),
            (f"sessions: {{{diary}: {{ignore: true}}}}", "config.yaml"),
            ("sessions: {diary: {ignore: true}}", "groups/family.yaml"),
        ):
            for group in ("family", "main"):
                assert "my diagnosis is plums" in self.told(host, group, diary)
                self.rules(host, rule, file)
                told = self.told(host, group, diary)
                assert ("diagnosis" in told, f"id {diary}" in told) == (False, False), (
                    rule,
                    file,
                    group,
                )
                assert "Japan" in host.call(group, "list_sessions").text
                self.rules(host, "", file)
                assert "my diagnosis is plums" in self.told(host, group, diary)

    def test_of_one_without_text_is_told_that_it_was(self, host: GroupDir, diary: str) -> None:
        self.rules(host, "sessions: {diary: {text: false}}")
        for group in ("family", "main"):
            assert "diagnosis" not in self.told(host, group, diary)
            assert '"diary"' in host.call(group, "list_sessions").text

    def test_the_session_at_hand_is_told_all_of_itself(self, host: GroupDir) -> None:
        own = host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
        self.rules(host, "sessions: {'*': {ignore: true}}")
        assert "plan a trip to Japan" in host.call("family", "read_session", name=own).text
        assert "Japan" not in host.call("main", "list_sessions").text

    def test_what_a_group_excludes_is_for_that_group(self, host: GroupDir, diary: str) -> None:
        self.rules(host, "sessions: {diary: {ignore: true}}", "groups/work.yaml")
        assert "my diagnosis is plums" in self.told(host, "family", diary)
