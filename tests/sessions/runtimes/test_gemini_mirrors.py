"""The mirrors of Gemini's chats: what was said, each once, however Gemini writes it down, and
whatever it deletes."""

from __future__ import annotations

import json
import os
import shutil
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from records import gemini_exchange, gemini_message, lines, new_id

from session_memory.common.system import files
from session_memory.session_monitor import parse_jsonl_entries
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import _mirrored_files as mirrored_files
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import has_changed
from session_memory.sessions.transcripts.reader import TranscriptReader

GEMINI = runtime("gemini")
FIXTURE = Path(__file__).parent / "fixtures" / "gemini"
SITE = "/srv/site"


class Gemini:
    """Somebody's Gemini, with chats in the project `/srv/site`."""

    def __init__(self, root: Path) -> None:
        self.config_dir = root / ".gemini"
        self.project = self.config_dir / "tmp" / "site"
        self.chats = self.project / "chats"
        self.chats.mkdir(parents=True)
        (self.project / ".project_root").write_text(SITE)
        self.id = new_id()
        self.chat = self.chats / f"session-2026-11-20T10-00-{self.id[:8]}.jsonl"

    def begin(self, *records: dict[str, Any]) -> None:
        self.chat.write_bytes(
            lines({"sessionId": self.id, "projectHash": "0" * 64, "kind": "main"}, *records)
        )

    def add(self, *records: dict[str, Any], bare: bytes = b"") -> None:
        with self.chat.open("ab") as file:
            file.write(lines(*records) + bare)

    def refresh(self, *, everything: bool = False) -> None:
        GEMINI.refresh(str(self.config_dir), everything)

    @property
    def folder(self) -> Path:
        return Path(GEMINI.project_dir(str(self.config_dir), SITE))

    def entries(self, name: str = "") -> list[Entry]:
        """What the mirror of the chat says now."""
        self.refresh()
        return entries(self.folder / f"{name or self.id}.jsonl")

    def said(self, name: str = "") -> list[str]:
        return [entry.text or entry.tools[0].argument for entry in self.entries(name)]


def entries(path: Path) -> list[Entry]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        reader = TranscriptReader(GEMINI, first_line(descriptor))
        found = [entry for entry in reader.conversation(descriptor) if entry is not None]
        backward = list(TranscriptReader(GEMINI, first_line(descriptor)).from_end(descriptor))
        assert backward[::-1] == found
        return found
    finally:
        os.close(descriptor)


def call(call_id: str, command: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "name": "run_shell_command",
        "args": {"command": command},
        "status": "success",
        "result": [],
    }


@pytest.fixture
def gemini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gemini:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return Gemini(tmp_path)


def test_the_chats_of_the_fixture_have_the_mirrors_of_the_fixture(gemini: Gemini) -> None:
    shutil.copytree(FIXTURE / "chats", gemini.chats, dirs_exist_ok=True)
    gemini.refresh(everything=True)
    own = json.loads((FIXTURE / "expected.json").read_text())["session_id"]
    [fork] = [path for path in gemini.folder.glob("*.jsonl") if path.stem != own]
    [agent] = GEMINI.sub_agents(str(gemini.folder / f"{own}.jsonl"))
    for path, name in (
        (gemini.folder / f"{own}.jsonl", "conversation.jsonl"),
        (fork, "fork.jsonl"),
        (Path(agent), "subagent.jsonl"),
    ):
        assert path.read_bytes() == (FIXTURE / name).read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_lines_of_a_chat_itself_tell_the_same(gemini: Gemini) -> None:
    """As where a chat is read that lies in a backup: then only its calls stand apart from what was
    said with them."""
    [chat] = (FIXTURE / "chats").glob("session-*-01a1fb3f.jsonl")
    found = parse_jsonl_entries(chat.read_bytes().splitlines(), "gemini")
    mirrored = entries(FIXTURE / "conversation.jsonl")
    assert [entry.text for entry in found if entry.text] == [
        entry.text for entry in mirrored if entry.text
    ]
    assert [tool for entry in found for tool in entry.tools] == [
        tool for entry in mirrored for tool in entry.tools
    ]
    assert {entry.cwd for entry in found} == {SITE}


def test_a_mirror_grows_as_its_chat_does_and_says_nothing_twice(gemini: Gemini) -> None:
    gemini.begin(*gemini_exchange("one", "two"))
    assert gemini.said() == ["one", "two"]
    answer = gemini_message("gemini", "I look.")
    gemini.add(gemini_message("user", "three"), answer)
    assert gemini.said() == ["one", "two", "three", "I look."]
    gemini.add(
        {**answer, "toolCalls": [call("c1", "ls")]},
        gemini_message("user", [{"functionResponse": {}}]),
    )
    assert gemini.said() == ["one", "two", "three", "I look.", "ls"]
    gemini.add(
        {**answer, "toolCalls": [call("c1", "ls")]},
        gemini_message("gemini", "four"),
        bare=b'{"id":"torn',
    )
    assert gemini.said() == ["one", "two", "three", "I look.", "ls", "four"]
    before = (gemini.folder / f"{gemini.id}.jsonl").read_bytes()
    gemini.refresh(everything=True)
    assert (gemini.folder / f"{gemini.id}.jsonl").read_bytes() == before


def test_what_its_user_went_back_behind_is_taken_back(gemini: Gemini) -> None:
    wrong = gemini_message("user", "wrong")
    answer = gemini_message("gemini", "hm")
    gemini.begin(
        *gemini_exchange("one", "two"), wrong, answer, {**answer, "toolCalls": [call("c1", "rm")]}
    )
    assert gemini.said() == ["one", "two", "wrong", "hm"]
    gemini.add({"$rewindTo": wrong["id"]}, *gemini_exchange("right", "three"))
    assert gemini.said() == ["one", "two", "right", "three"]


@pytest.mark.parametrize("is_at_once", [True, False], ids=["at once", "bit by bit"])
def test_what_is_gone_back_behind_by_the_id_that_a_compression_gave_it_is_taken_back(
    gemini: Gemini, is_at_once: bool
) -> None:
    kept = gemini_exchange("again", "three")
    gemini.begin(*gemini_exchange("one", "two"), *gemini_exchange("again", "aside"), *kept)
    snapshot = gemini_message("user", "<state_snapshot>\n<overall_goal>bread</overall_goal>")
    renamed = [{**message, "id": new_id()} for message in kept]
    steps = [
        [{"$set": {"messages": [snapshot, *renamed]}}],
        gemini_exchange("four", "five"),
        [{"$rewindTo": renamed[0]["id"]}, *gemini_exchange("six", "seven")],
    ]
    for step in steps:
        if not is_at_once:
            gemini.refresh()
        gemini.add(*step)
    assert gemini.said() == ["one", "two", "again", "aside", "six", "seven"]


def test_a_chat_that_was_deleted_or_written_anew_keeps_what_was_said(gemini: Gemini) -> None:
    first = gemini_exchange("one", "two")
    gemini.begin(*first)
    gemini.refresh()
    gemini.begin(*first, *gemini_exchange("three", "four"))
    assert gemini.said() == ["one", "two", "three", "four"]
    gemini.chat.unlink()
    stub = gemini.chats / f"session-2026-11-20T10-01-{gemini.id[:8]}.jsonl"
    stub.write_bytes(lines({"sessionId": gemini.id, "projectHash": "0" * 64, "kind": "main"}))
    assert gemini.said() == ["one", "two", "three", "four"]


def test_a_document_of_an_older_version_is_read_as_it_grows(gemini: Gemini) -> None:
    answer = gemini_message("gemini", "two", toolCalls=[call("c1", "ls")])
    messages = [gemini_message("user", "one"), answer, gemini_message("info", "an update")]
    document = {"sessionId": gemini.id, "projectHash": "0" * 64, "messages": messages}
    path = gemini.chats / f"session-2026-01-15T20-51-{gemini.id[:8]}.json"
    path.write_text(json.dumps(document, indent=2))
    assert gemini.said() == ["one", "two"]
    assert [tool.argument for entry in gemini.entries() for tool in entry.tools] == ["ls"]
    messages += gemini_exchange("three", "four")
    path.write_text(json.dumps(document, indent=2))
    assert gemini.said() == ["one", "two", "three", "four"]
    path.write_text(json.dumps(document, indent=2)[:-40])  # while it is being written
    assert gemini.said() == ["one", "two", "three", "four"]
    assert {entry.cwd for entry in gemini.entries()} == {SITE}


def test_the_directory_of_an_older_version_is_known_by_its_checksum(gemini: Gemini) -> None:
    folder = gemini.config_dir / "tmp" / sha256(SITE.encode()).hexdigest()
    shutil.move(gemini.project, folder)
    (folder / ".project_root").unlink()
    (gemini.config_dir / "projects.json").write_text(
        json.dumps({"projects": {SITE: "site", "/srv/other": "other"}})
    )
    gemini.chat = folder / "chats" / gemini.chat.name
    gemini.begin(*gemini_exchange("one", "two"))
    assert gemini.said() == ["one", "two"]


def test_a_chat_whose_directory_nothing_tells_is_kept_as_one_of_an_unknown_one(
    gemini: Gemini,
) -> None:
    (gemini.project / ".project_root").unlink()
    gemini.begin(*gemini_exchange("one", "two"))
    gemini.refresh()
    [path] = (gemini.folder.parent / "unknown").glob("*.jsonl")
    assert [entry.cwd for entry in entries(path)] == ["", ""]


def test_files_that_are_no_chats_cost_themselves_only(gemini: Gemini) -> None:
    gemini.begin(*gemini_exchange("one", "two"))
    for name, content in (
        ("session-a.json", b"[]"),
        ("session-b.jsonl", b"\xff\xfe\x00"),
        ("session-c.jsonl", b""),
        ("session-d.json", b'{"sessionId":"../../x","messages":[]}'),
        ("session-e.json", b'{"sessionId":"e","messages":7}'),
        ("session-f.json", b'[{"sessionId":"f"}]'),
    ):
        (gemini.chats / name).write_bytes(content)
    gemini.refresh(everything=True)
    assert gemini.said() == ["one", "two"]
    assert not (gemini.config_dir / "x.jsonl").exists()


def test_files_that_are_no_chats_are_looked_at_once(gemini: Gemini) -> None:
    gemini.begin(*gemini_exchange("one", "two"))
    (gemini.chats / "session-a.json").write_text('{"version": 1}')
    for folder in (gemini.chats, gemini.project, gemini.project.parent):
        os.utime(folder, (1, 1))
    gemini.refresh(everything=True)
    assert not has_changed(GEMINI.transcripts_dir(str(gemini.config_dir)))


def test_a_prompt_reads_no_more_than_it_has_time_for_and_upkeep_reads_the_rest(
    gemini: Gemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrored_files, "PROMPT_BYTES", 2000)
    gemini.begin(*gemini_exchange("x" * 3000, "two"))
    gemini.refresh()
    assert not (gemini.folder / f"{gemini.id}.jsonl").exists()
    gemini.refresh(everything=True)
    assert gemini.said() == ["x" * 3000, "two"]


def test_a_chat_of_last_week_is_left_to_upkeep(gemini: Gemini) -> None:
    gemini.begin(*gemini_exchange("one", "two"))
    week_ago = time.time() - 7 * 24 * 3600
    os.utime(gemini.chat, (week_ago, week_ago))
    gemini.refresh()
    assert not (gemini.folder / f"{gemini.id}.jsonl").exists()
    gemini.refresh(everything=True)
    assert gemini.said() == ["one", "two"]


@pytest.mark.parametrize("hidden", ["Plan the garden", "Count the apples"])
def test_a_sub_agent_is_hidden_by_the_title_of_its_chat_and_not_by_its_own(
    gemini: Gemini, hidden: str
) -> None:
    place = gemini.config_dir.parent / ".session-memory"
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(f"sessions:\n  {hidden}: {{ignore: true}}\n")
    gemini.begin({"$set": {"summary": "Plan the garden"}})
    gemini.refresh()
    folder = gemini.chats / gemini.id
    folder.mkdir()
    helper = {"sessionId": "helper", "projectHash": "0" * 64, "kind": "subagent"}
    answer = {**gemini_message("gemini", "three pears"), "toolCalls": [call("c1", "ls")]}
    content = lines(helper, {"$set": {"summary": "Count the apples"}}, answer)
    for _ in range(2):  # with the second look its own title is known
        (folder / "helper.jsonl").write_bytes(content)
        gemini.refresh()
        content += lines({**answer, "id": new_id()})
    [mirror] = (gemini.folder / gemini.id).glob("*.jsonl")
    assert ("three pears" in mirror.read_text()) == (hidden != "Plan the garden")


def test_files_that_gemini_read_for_a_prompt_are_not_what_was_typed(gemini: Gemini) -> None:
    parts = [
        {"text": "mend @a.py"},
        {"text": "\n--- Content from referenced files ---"},
        {"text": "import this"},
    ]
    gemini.begin({**gemini_message("user", ""), "content": parts}, gemini_message("gemini", "done"))
    assert gemini.said() == ["mend @a.py", "done"]
    assert "import this" not in (gemini.folder / f"{gemini.id}.jsonl").read_text()


def test_what_a_hook_told_at_the_start_before_a_prompt_is_not_what_was_typed(
    gemini: Gemini,
) -> None:
    gemini.begin(
        gemini_message("user", "<hook_context>told</hook_context>\n\nmend it"),
        gemini_message("gemini", "ok"),
    )
    assert gemini.said() == ["mend it", "ok"]
