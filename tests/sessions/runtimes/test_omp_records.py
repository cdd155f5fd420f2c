"""The sessions of omp: a title that is rewritten in place before the header, and omp's own calls."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hooks_scene import run
from records import OmpSession, append
from store_scene import StoreUser

from session_memory.sessions.runtimes.omp import RUNTIME
from session_memory.sessions.runtimes.pi import RUNTIME as PI
from session_memory.sessions.transcripts.entries import ToolUse
from session_memory.sessions.transcripts.lines import FIRST_LINE_BYTES, first_line, head_lines
from session_memory.sessions.transcripts.read_cursor import ReadCursor
from session_memory.sessions.transcripts.reader import TranscriptHead

CWD = "/srv/site"
PATCH = "[src/app.py#A1B2]\nPUT 1.=2:\n+one\n+two\nCUT 5.=6\n[docs/a b.md#C3D4]\nPUT >9:\n+three\nMV docs/c.md"


class OmpUser(StoreUser):
    """A user with one session of omp in a project."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.cwd = root / "site"
        self.cwd.mkdir(parents=True)
        self.session = OmpSession(cwd=str(self.cwd), at=time.time() - 60)
        self.session.exchange("plan the garden", "Planned.", at=time.time() - 60)
        self.folder = root / ".omp" / "agent" / "sessions" / "-site"
        self.path = self.session.write(self.folder)
        self.reader: Path | None = None

    def says(self, question: str, answer: str) -> None:
        self.session.exchange(question, answer)
        append(self.path, *self.session.records[-2:])

    def hears(self) -> str:
        """What another session of omp is told with a prompt."""
        if not self.reader:
            other = OmpSession(cwd=str(self.cwd), at=time.time() - 600)
            other.exchange("look", "Seen.", at=time.time() - 600)
            self.reader = other.write(self.folder)
        event = {"runtime": "omp", "hook_event_name": "before_agent_start", "prompt": "go on"}
        event |= {"session_id": self.reader.stem.partition("_")[2], "cwd": str(self.cwd)}
        event |= {"transcript_path": str(self.reader)}
        printed = run(event, self.home, "pi_prompt")
        return json.loads(printed)["message"]["content"] if printed else ""

    def stored(self) -> tuple[str, int, int]:
        """The title of the session in the store, how often it was read from the beginning, and its
        messages."""
        assert self.run("ingest").returncode == 0
        [session] = self.result("sessions", "--all")["sessions"]
        printed = self.run("read", self.session.id).stdout
        return session["name"], printed.count("plan the garden"), session["messages"]


@pytest.fixture
def omp(tmp_path: Path) -> OmpUser:
    return OmpUser(tmp_path)


def test_the_header_and_the_title_are_found_behind_the_line_of_the_title(omp: OmpUser) -> None:
    omp.session.rename(omp.path, "Tidy the garden")
    with omp.path.open("rb") as file:
        assert first_line(file.fileno()).count(b"\n") == 3
        for limit in (FIRST_LINE_BYTES[0], 1 << 20):
            assert head_lines(file.fileno(), limit)[0] == first_line(file.fileno())
        head = TranscriptHead(RUNTIME, file.fileno())
    assert (head.cwd, head.title) == (str(omp.cwd), (3, "Tidy the garden"))
    assert head.prompt == "plan the garden"


def test_a_rewritten_title_is_not_taken_for_another_file(omp: OmpUser) -> None:
    with omp.path.open("rb") as file:
        status = os.fstat(file.fileno())
        cursor = ReadCursor.behind(file.fileno(), status, status.st_size, time.time_ns())
        omp.session.rename(omp.path, "Tidy the garden")
        after = os.fstat(file.fileno())
        assert after.st_size == status.st_size
        assert cursor.resume_offset(file.fileno(), after) == status.st_size
        header = omp.path.read_bytes().replace(b"plan the garden", b"till the garden")
        omp.path.write_bytes(header)
        assert cursor.resume_offset(file.fileno(), os.fstat(file.fileno())) is None


def test_a_title_that_changes_between_two_prompts_is_told_and_nothing_twice(omp: OmpUser) -> None:
    before = omp.hears()
    assert before.count('"plan the garden" (1m ago, 2 messages)') == 1
    omp.session.rename(omp.path, "Tidy the garden")
    assert omp.hears() == ""
    omp.says("and the pond", "Dug.")
    after = omp.hears()
    assert after.count('"Tidy the garden" (just now, 2 messages)') == 1
    assert "plan the garden" not in after


def test_a_title_that_changes_between_two_readings_of_the_store_changes_there(
    omp: OmpUser,
) -> None:
    assert omp.stored() == ("plan the garden", 2, 2)
    for title in ("Tidy the garden", "Tidy the yard, then"):
        time.sleep(0.02)
        size = omp.path.stat().st_size
        omp.session.rename(omp.path, title)
        assert omp.path.stat().st_size == size
        name, asked, messages = omp.stored()
        assert (name, asked, messages) == (title, 1, 2)
        assert title in omp.run("search", "Planned").stdout
    omp.says("and the pond", "Dug.")
    assert omp.stored() == ("Tidy the yard, then", 1, 4)


def test_an_edit_names_each_file_of_its_patch_and_a_read_only_its_file() -> None:
    session = OmpSession(cwd=CWD)
    session.assistant(
        ("read", {"i": "look", "path": "src/app.py:5-16,960-973"}),
        ("read", {"i": "look", "path": "src/app.py:2-4:raw"}),
        ("read", {"i": "look", "path": "https://example.org:8080"}),
        ("bash", {"i": "run", "command": "make > out.txt", "cwd": "it's here"}),
        ("edit", {"i": "mend", "input": PATCH}),
        ("edit", {"i": "mend", "input": "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n"}),
    )
    record = session.records[-1]
    entry = RUNTIME.records.entry(record)
    assert entry is not None
    id = entry.tools[4].call_id
    assert [(use.kind, use.argument) for use in entry.tools] == [
        ("read", "src/app.py"),
        ("read", "src/app.py"),
        ("read", "https://example.org:8080"),
        ("command", "cd 'it'\\''s here' && make > out.txt"),
        ("edit", "src/app.py"),
        ("edit", "docs/a b.md"),
        ("edit", "docs/c.md"),
        ("edit", "a.py"),
    ]
    edits = [RUNTIME.records.edits(record, use.call_id) for use in entry.tools[4:]]
    assert edits == [[("", "one\ntwo")], [("", "three")], [], [("1", "2")]]
    assert [use.call_id for use in entry.tools[4:7]] == [id, f"{id}:1", f"{id}:2"]


def test_edits_are_found_by_ids_with_a_colon() -> None:
    """Kimi K2 numbers its calls: `functions.edit:0`."""
    session = OmpSession(cwd=CWD)
    call = {"type": "toolCall", "id": "functions.edit:0", "name": "edit"}
    session.assistant({**call, "arguments": {"i": "mend", "input": PATCH}})
    record = session.records[-1]
    entry = RUNTIME.records.entry(record)
    assert entry is not None
    edits = [RUNTIME.records.edits(record, use.call_id) for use in entry.tools]
    assert edits == [[("", "one\ntwo")], [("", "three")], []]


def test_an_event_of_an_edit_names_each_file(tmp_path: Path) -> None:
    def calls(name: str, **given: object) -> list[ToolUse]:
        return [*RUNTIME.tool_calls({"tool_name": name, "tool_input": given, "tool_use_id": "c"})]

    assert calls("edit", path="a", paths=["a", "b"]) == [
        ToolUse("edit", "a", "edit", "c"),
        ToolUse("edit", "b", "edit", "c:1"),
    ]
    assert calls("bash", command="git pull", cwd="sub") == [
        ToolUse("bash", "cd 'sub' && git pull", "command", "c")
    ]


def test_prompts_that_omp_wrote_are_not_a_persons_and_a_cleared_context_is_a_compaction() -> None:
    session = OmpSession(cwd=CWD)
    session.message("user", content="Complete the assignment", attribution="agent")
    session.add("reset_boundary")
    events = [list(RUNTIME.records.messages(record, 0)) for record in session.records[1:]]
    assert [len(found) for found in events] == [0, 1]
    assert RUNTIME.records.entry(session.records[1]) is None


def test_folders_are_named_after_the_home_directory_the_temporary_one_or_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from session_memory.common.system import files

    home, temporary = tmp_path / "home", tmp_path / "scratch"
    link = tmp_path / "link"
    link.symlink_to(home)
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(home))
    monkeypatch.setitem(files.os.environ, b"TMPDIR", os.fsencode(temporary))
    names = {
        str(home): "-",
        f"{home}/src/app": "-src-app",
        f"{link}/src/app": "-src-app",
        str(temporary): "-tmp",
        f"{temporary}/one": "-tmp-one",
        "/srv/app": "--srv-app--",
    }
    assert {directory: RUNTIME.folder_name(directory) for directory in names} == names
    for name in names.values():
        (tmp_path / "omp" / "sessions" / name).mkdir(parents=True, exist_ok=True)

    def below(directory: Path | str) -> set[str]:
        paths = RUNTIME.folders_below(str(tmp_path / "omp"), str(directory))
        return {path.rpartition("/")[2] for path in paths}

    assert below(home / "src") == {"-src-app"}
    assert below(temporary) == {"-tmp", "-tmp-one"}
    assert below("/srv") == {"--srv-app--"}
    assert below(tmp_path) == set(names.values())


def test_a_directory_that_pi_and_omp_may_have_is_the_one_of_the_program_whose_files_are_there(
    tmp_path: Path,
) -> None:
    environ = {"HOME": "/home/dev", "PI_CODING_AGENT_DIR": str(tmp_path)}
    assert PI.config_dir(environ) == str(tmp_path)
    assert RUNTIME.config_dir(environ) == "/home/dev/.omp/agent"
    (tmp_path / "agent.db").touch()
    assert PI.config_dir(environ) == "/home/dev/.pi/agent"
    assert RUNTIME.config_dir(environ) == str(tmp_path)
    profile = {"HOME": "/home/dev", "OMP_PROFILE": "acme"}
    assert RUNTIME.config_dir(profile) == "/home/dev/.omp/profiles/acme/agent"
