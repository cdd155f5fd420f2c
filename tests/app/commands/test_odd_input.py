"""Odd input affects only itself.

A transcript has something that no file, database or terminal accepts, beside a usual transcript.
Every command continues, and all usual content is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from permissions import bind_permissions
from records import PiSession, assistant, exchange, lines, new_id, user, write
from store_scene import COMMAND, MONDAY, ROOT, Scene, StoreUser, trip

from session_memory.history.store.ingest.extract import Extractor
from session_memory.history.store.sqlite.engine import SqliteStore

LONE = "half \ud83d of a pair"
READERS = [
    ("ingest",),
    ("search", "cherry"),
    ("conversations",),
    ("show", "1"),
    ("patterns",),
    ("errors", "failed"),
    ("process",),
    ("memories", "list"),
    ("archive", "--all"),
    ("export", "--all", "--format", "filtered"),
    ("watch", "--once"),
    ("health-check",),
]


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path)


def usual(machine):
    return machine.session(new_id(), *trip(), project="-srv-usual")


def a_name_that_is_not_utf8(machine):
    path = os.fsencode(machine.projects) + b"/-srv-agent/caf\xe9.jsonl"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(lines(*exchange("odd question", "odd answer", at=MONDAY)))


def a_folder_that_is_not_utf8(machine):
    path = os.fsencode(machine.projects) + b"/-srv-\xff/a.jsonl"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(lines(*exchange("odd question", "odd answer", at=MONDAY)))


def halves_of_surrogate_pairs(machine):
    call = {"type": "tool_use", "id": LONE, "name": LONE, "input": {"command": LONE}}
    failed = {"tool_use_id": LONE, "type": "tool_result", "is_error": True, "content": LONE}
    records = [
        {"type": "custom-title", "customTitle": LONE, "sessionId": "odd"},
        user(f"odd question {LONE}", at=MONDAY, cwd=LONE, uuid=LONE),
        assistant("odd answer", call, at=MONDAY + 1, cwd=LONE, message_id=LONE),
        user([failed], at=MONDAY + 2, cwd=LONE),
    ]
    machine.session("odd", *records)


def halves_of_surrogate_pairs_in_pi(machine):
    session = PiSession(cwd=LONE, at=MONDAY)
    session.user(f"odd question {LONE}", at=MONDAY)
    session.assistant("odd answer", (LONE, {LONE: LONE}), at=MONDAY)
    session.add("session_info", name=LONE, at=MONDAY)
    write(
        machine.home / ".pi/agent/sessions/--srv--" / f"2026_{session.id}.jsonl", *session.records
    )


def an_archive_whose_trailer_has_them(machine):
    facts = {
        "session": f"gone {LONE}",
        "runtime": LONE,
        "cwd": LONE,
        "last": LONE,
        "messages": LONE,
    }
    path = machine.home / ".session-memory/conversations/2026-01-01-odd.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"# Odd\n\n---\n\n**User**: odd question\n\n<!-- session-memory {json.dumps(facts)} -->\n"
    )


ODDITIES = [
    a_name_that_is_not_utf8,
    a_folder_that_is_not_utf8,
    halves_of_surrogate_pairs,
    halves_of_surrogate_pairs_in_pi,
    an_archive_whose_trailer_has_them,
]


@pytest.mark.parametrize(
    "environ", [{"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}], ids=["C", "ascii"]
)
def test_every_command_goes_on(machine, environ):
    usual(machine)
    for make_odd in ODDITIES:
        make_odd(machine)
    for words in READERS:
        done = machine.run(*words, **environ)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        has_found = words[0] != "errors"  # no tool has failed so
        assert done.returncode == (0 if has_found else 1), (words, done.stdout, done.stderr)
    stored = "\n".join(machine.stored())
    assert "The cherry blossom is in April." in stored
    assert stored.count("odd question") == len(ODDITIES)
    found = machine.run("search", "odd question", **environ)
    assert "odd" in found.stdout.partition("\n")[2]


class TestWhatCannotBeTakenIn:
    """Content that cannot be ingested is counted and named, by ingest and by health-check.

    It does not hold back other content."""

    def test_a_folder_without_permission_is_named_and_its_files_are_not_gone(self, machine):
        usual(machine)
        machine.session("odd", *exchange("odd question", "odd answer", at=MONDAY))
        assert machine.run("ingest").returncode == 0
        folder = machine.projects / "-srv-agent"
        folder.chmod(0)
        machine.session(new_id(), *exchange("more", "words", at=MONDAY), project="-srv-usual")
        for words in (["ingest"], ["ingest"]):
            done = bound_run(machine, *words)
            assert done.returncode == 1
            assert "~/.claude/projects/-srv-agent: Permission denied" in done.stdout
            assert "gone" not in done.stdout
        assert "words" in machine.stored()
        checked = bound_run(machine, "health-check", "--json")
        assert json.loads(checked.stdout)["unread"] == {str(folder): "Permission denied"}
        assert checked.returncode == 1
        folder.chmod(0o700)
        assert machine.run("health-check").returncode == 0
        assert machine.statuses() == ["idle", "idle", "idle"]

    def test_a_file_without_permission_is_named_until_it_can_be_read(self, machine):
        usual(machine)
        path = machine.session("odd", *exchange("odd question", "odd answer", at=MONDAY))
        path.chmod(0)
        done = bound_run(machine, "ingest")
        assert (done.returncode, "odd.jsonl: Permission denied" in done.stdout) == (1, True)
        assert "The cherry blossom is in April." in "\n".join(machine.stored())
        assert "odd.jsonl is not in the store: Permission denied" in " ".join(
            bound_run(machine, "health-check").stdout.split()
        )
        path.chmod(0o600)
        assert "odd question" in machine.run("search", "odd").stdout
        assert machine.run("health-check").returncode == 0

    def test_all_sessions_are_archived_but_those_that_cannot_be_read_which_are_named(self, machine):
        usual(machine)
        machine.session(
            "odd", *exchange("odd question", "odd answer", at=MONDAY), project="-srv-odd"
        )
        machine.session("locked", *exchange("odd question", "odd answer", at=MONDAY)).chmod(0)
        (machine.projects / "-srv-odd").chmod(0)
        done = bound_run(machine, "archive", "--all")
        (machine.projects / "-srv-odd").chmod(0o700)
        assert done.returncode == 1
        assert "1 conversation kept; 2 could not be" in done.stdout
        assert "-srv-odd: Permission denied" in done.stdout
        assert "locked.jsonl: Permission denied" in done.stdout.replace(
            "locked: [Errno 13] ", "locked.jsonl: "
        )

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (lines(*exchange("odd", "file")).decode().encode("utf-16"), "it is UTF-16"),
            (lines(*exchange("odd", "file")).decode().encode("utf-16-be"), "it is UTF-16"),
            (
                lines(*exchange("odd", "file")).replace(b"\n", b"\r"),
                "its lines end with only a carriage return",
            ),
        ],
    )
    def test_a_file_in_another_form_is_named(self, machine, content, why):
        usual(machine)
        path = machine.session("odd")
        path.write_bytes(content)
        for _ in range(2):
            done = machine.run("ingest")
            assert (done.returncode, f"odd.jsonl: {why}" in " ".join(done.stdout.split())) == (
                1,
                True,
            )
        assert why in machine.result("health-check", code=1)["unread"][str(path)]

    def test_a_file_that_is_no_transcript_is_named_and_is_no_fault(self, machine):
        usual(machine)
        path = machine.session("todo")
        path.write_text('{"todo": "buy milk"}\n')
        done = machine.run("ingest")
        assert (done.returncode, "1 file left out" in done.stdout, "todo.jsonl" in done.stdout) == (
            0,
            True,
            True,
        )
        assert machine.run("ingest").stdout == "Nothing new in 2 files.\n"
        assert "not a transcript" in machine.result("health-check")["unread"][str(path)]
        path.unlink()
        machine.run("ingest")
        assert machine.result("health-check")["unread"] == {}

    def test_whatever_a_file_leads_to_is_its_own_problem_and_tried_again_when_it_changes(
        self, tmp_path, monkeypatch
    ):
        scene = Scene(tmp_path)
        scene.write("odd", *exchange("odd question", "odd answer"))
        scene.write("usual", *exchange("usual question", "usual answer"))
        read = Extractor.read

        def fails(self, start, end, limit):
            found = read(self, start, end, limit)
            if any("odd" in entry.text for entry in found.entries):
                raise ZeroDivisionError("what nobody thought of")
            return found

        monkeypatch.setattr(Extractor, "read", fails)
        report = scene.ingest()
        assert report.problems == [
            (str(scene.file("odd")), "ZeroDivisionError: what nobody thought of")
        ]
        assert scene.texts() == ["usual question", "usual answer"]
        monkeypatch.undo()
        assert scene.ingest().problems == report.problems  # from the note, without reading it again
        scene.append("odd", *exchange("odd addition", "odd end"))
        assert scene.ingest().problems == []
        assert "odd question" in scene.texts()
        assert scene.store.unread_files("") == {}

    def test_what_the_database_refuses_is_its_file_s_problem(self, tmp_path):
        scene = Scene(tmp_path)
        scene.write("odd", *exchange("odd question", "odd answer", at=MONDAY))
        scene.write("usual", *exchange("usual question", "usual answer"))
        before = Extractor._new_entry
        too_large = 1 << 70

        def new_entry(self, number, entry, *more):
            made = before(self, number, entry, *more)
            return made._replace(timestamp=too_large) if "odd" in entry.text else made

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Extractor, "_new_entry", new_entry)
            report = scene.ingest()
        assert [path for path, _ in report.problems] == [str(scene.file("odd"))]
        assert scene.texts() == ["usual question", "usual answer"]


class TestWhatCanBeTakenIn:
    def test_a_transcript_that_begins_with_much_that_does_not_tell_what_it_is(self, machine):
        snapshot = {
            "type": "file-history-snapshot",
            "messageId": "m",
            "snapshot": {"backup": "x" * 200_000},
        }
        machine.session(
            new_id(), *[snapshot] * 10, *exchange("odd question", "odd answer", at=MONDAY)
        )
        assert machine.run("ingest").returncode == 0
        assert machine.stored() == ["odd question", "odd answer"]
        assert "odd question" in machine.run("conversations").stdout

    def test_nul_bytes_before_within_and_behind_records(self, machine):
        first, second, third = [
            lines(*exchange(f"question {number}", "answer", at=MONDAY)) for number in range(3)
        ]
        path = machine.session("odd")
        path.write_bytes(
            b"\0" * 3000
            + first
            + b"\0" * 5
            + second.replace(b"}\n", b"}\0\0\n")
            + third
            + b"\0" * 4096
        )
        assert machine.run("ingest").returncode == 0
        assert [text for text in machine.stored() if "question" in text] == [
            "question 0",
            "question 1",
            "question 2",
        ]


class TestAHomeDirectoryWhosePathIsNotUTF8:
    def test_commands_say_it_in_a_line_and_work_with_a_place_elsewhere(self, tmp_path):
        home = os.fsencode(tmp_path) + b"/caf\xe9"
        os.makedirs(home + b"/.claude/projects/-srv")
        with open(home + b"/.claude/projects/-srv/a.jsonl", "wb") as file:
            file.write(lines(*exchange("cherry", "blossom", at=MONDAY)))
        environ = {b"HOME": home, b"PYTHONPATH": os.fsencode(ROOT), b"LANG": b"C.UTF-8"}
        code = "import sys; from session_memory.cli import main; print([main(line.split()) for line in sys.argv[1:]])"
        command = [sys.executable, "-c", code, "ingest", "search cherry", "health-check"]
        done = subprocess.run(
            command, env=environ, capture_output=True, cwd=tmp_path, check=False, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, b"[1, 1, 1]\n")
        assert done.stderr.count(b"the path of a store must be UTF-8") == 3
        assert b"Traceback" not in done.stderr
        environ[b"SESSION_MEMORY_DIR"] = os.fsencode(tmp_path / "place")
        done = subprocess.run(
            command, env=environ, capture_output=True, cwd=tmp_path, check=False, timeout=60
        )
        assert done.stdout.splitlines()[-1] == b"[0, 0, 0]", done.stderr
        assert b"Traceback" not in done.stderr


class TestDirectories:
    """`ingest --dir` ingests the transcripts in a directory at any depth."""

    @pytest.mark.parametrize(
        "below",
        [
            "",
            "projects",
            ".claude/projects",
            "backup/of/a/laptop/.claude/projects",
            ".pi/agent/sessions",
        ],
    )
    def test_transcripts_are_found_in(self, machine, tmp_path, below):
        root = tmp_path / "elsewhere"
        write(
            root / below / "-srv-agent" / f"{new_id()}.jsonl",
            *exchange("odd question", "odd answer", at=MONDAY),
        )
        (root / "history.jsonl").write_text('{"display": "hi"}\n')
        assert machine.run("ingest", "--dir", root).returncode == 0
        assert machine.stored() == ["odd question", "odd answer"]
        store = SqliteStore(str(machine.database))
        assert [key.count("/") for key in store.file_states("")] == [1]
        store.close()

    def test_what_a_sub_agent_said_is_not_taken_for_a_session(self, machine, tmp_path):
        root = tmp_path / "elsewhere"
        write(root / "projects/-srv/a.jsonl", *exchange("odd question", "odd answer", at=MONDAY))
        write(
            root / "projects/-srv/a/subagents/agent-b.jsonl", *exchange("a task", "done", at=MONDAY)
        )
        machine.run("ingest", "--dir", root)
        assert machine.stored() == ["odd question", "odd answer"]

    def test_the_directory_that_was_named_is_named_where_nothing_is_in_it(self, machine, tmp_path):
        (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
        assert (
            machine.run("ingest", "--dir", "elsewhere").stdout == "No transcripts in ~/elsewhere.\n"
        )


def bound_run(machine, *words):
    """Run a subcommand with effective permissions, even if root runs the tests."""
    command = [sys.executable, "-c", COMMAND, *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=machine.home,
        env=machine.environment,
        check=False,
        preexec_fn=bind_permissions,
        timeout=60,
    )
