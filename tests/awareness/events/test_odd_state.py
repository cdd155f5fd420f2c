"""State files with unexpected content are repaired at the next prompt, and do not fail every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from hooks_scene import ROOT, told
from permissions import bind_permissions
from records import append, assistant, exchange, lines, user

WRONG = [
    5,
    -1,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    True,
    None,
    "x",
    "\ud800",
    [],
    [[1]],
    {},
    {"a": 1},
    [5, 5],
    [1, None],
]
PARTS = ["offset", "size", "inode", "mtime", "head", "tail", "ids", "seen", "title", "first"]


def cursor_path(plain):
    return plain.state_dir / "cursors" / f"{plain.session_id}.json"


@pytest.mark.sample(4)
@pytest.mark.parametrize("part", PARTS)
def test_a_cursor_with_a_wrong_part_is_as_good_as_none(plain, part):
    path = plain.session(*exchange("hello", "hi"))
    assert "hello" in told(plain.run())
    plain.run()  # which finds that it was told
    whole = json.loads(cursor_path(plain).read_text())
    # A file with an offset that is no number is set aside whole: see tests/awareness/activity.
    for number, wrong in enumerate([-1, 10**30, True] if part == "offset" else WRONG):
        cursors = json.loads(json.dumps(whole))
        cursors[plain.session_id][path.stem][part] = wrong
        cursor_path(plain).write_text(json.dumps(cursors))
        append(path, *exchange("more", f"answer {number}"))
        assert f"answer {number}" in told(plain.run()), (part, wrong, plain.log())
    assert plain.log() == []


@pytest.mark.parametrize("ending", [".lock", ".tmp", ""])
@pytest.mark.parametrize("kind", ["directory", "full directory", "fifo", "link", "no permission"])
def test_what_stands_in_the_place_of_a_state_file_is_moved_away(plain, ending, kind):
    path = plain.session(*exchange("hello", "hi"))
    place = cursor_path(plain).with_name(cursor_path(plain).name + ending)
    place.parent.mkdir(parents=True)
    if "directory" in kind:
        place.mkdir()
        if kind == "full directory":
            (place / "something").write_text("kept")
            place.with_name(place.name + ".corrupt").write_text("from before")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(plain.root / "elsewhere")
    else:
        place.write_text("{}")
        place.chmod(0)
    bound(plain)
    append(path, *exchange("addition", "yes"))
    assert "addition" in told(bound(plain))
    assert not (plain.root / "elsewhere").exists()


def test_a_state_directory_that_may_not_be_written_is_made_writable(plain):
    plain.session(*exchange("hello", "hi"))
    folder = cursor_path(plain).parent
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    assert "hello" in told(bound(plain))


STATE = {
    "a number": "5",
    "a list": "[]",
    "a text": '"x"',
    "wrong parts": '{"stamps": 5, "values": [], "start": 5, "folders": [[5]], "touched": [[5]], "told": 5, "open": []}',
    "deep": "[" * 60_000,
    "nothing": "",
    "not UTF-8": b"\xff\xfe\0",
}


class TestOtherState:
    """Each file in the state directory, after something else has written it: well-formed JSON of
    another shape, a part changed, a directory in its place. The prompt is answered, and the file is
    as it should be again."""

    @pytest.fixture
    def machine(self, plain):
        """One in a repository, with settings, who has something in hand."""
        repository = plain.root / "repository"
        (repository / ".git").mkdir(parents=True)
        for name, content in [("HEAD", "ref: refs/heads/main\n"), ("config", "")]:
            (repository / ".git" / name).write_text(content)
        plain.config("scope: all\nmax_characters: 400\n")
        return plain

    def run(self, machine, number):
        path = machine.session(
            *exchange(f"question {number}", "hi", cwd=str(machine.root / "repository"))
        )
        path.rename(path.with_name("other.jsonl"))
        directory = str(machine.root / "repository")
        edit = ("Edit", {"file_path": f"{directory}/app.py"})
        own = machine.project_dir / f"{machine.session_id}.jsonl"
        append(own, user("edit it", cwd=directory), assistant(str(number), edit, cwd=directory))
        return told(machine.run(cwd=str(machine.root / "repository")))

    def files(self, machine):
        return [
            path
            for path in sorted(machine.state_dir.rglob("*.json"))
            if "cursors" not in path.parts
        ]

    def spoil_collisions(self, machine, content):
        state = json.loads(cursor_path(machine).read_text())
        own = state[machine.session_id]
        places = [
            one for one in (own, own.get(" last", {}).get("cursors", {})) if " collisions" in one
        ]
        for place in places:
            place[" collisions"] = content
        assert places
        cursor_path(machine).write_text(json.dumps(state))

    def test_each_file_is_healed_at_the_next_prompt(self, machine):
        assert "question 0" in self.run(machine, 0)
        assert "settings.json" in {path.name for path in self.files(machine)}
        for number, content in enumerate(STATE.values(), 1):
            for path in self.files(machine):
                path.unlink(missing_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            self.spoil_collisions(machine, content if isinstance(content, str) else "")
            assert f"question {number}" in self.run(machine, number), (content[:40], machine.log())
            assert f"question {number + 100}" in self.run(machine, number + 100)
        assert machine.log() == []

    def test_a_part_of_another_type_is_as_good_as_none(self, machine):
        assert "question 0" in self.run(machine, 0)
        for number, wrong in enumerate(WRONG, 1000):
            self.spoil_collisions(machine, wrong)
            assert f"question {number}" in self.run(machine, number), (wrong, machine.log())
        number = 0
        for path in self.files(machine):
            whole = path.read_bytes()
            found = json.loads(whole.partition(b"\n")[2])
            for key in found if isinstance(found, dict) else range(len(found)):
                for wrong in WRONG:
                    number += 1
                    spoiled = found.copy()
                    spoiled[key] = wrong
                    text = json.dumps(spoiled).encode()
                    path.write_bytes(whole.partition(b"\n")[0] + b"\n" + text)
                    if number % 7 == 0:  # each prompt takes a while
                        assert f"question {number}" in self.run(machine, number), (
                            path,
                            key,
                            wrong,
                            machine.log(),
                        )
        assert machine.log() == []

    def test_a_directory_in_the_place_of_each_is_moved_away(self, machine):
        assert "question 0" in self.run(machine, 0)
        files = self.files(machine)
        for path in files:
            path.unlink(missing_ok=True)
            (path / "kept").mkdir(parents=True)
        assert "question 1" in self.run(machine, 1)
        branches = machine.root / "repository" / ".git" / "refs" / "heads"
        branches.mkdir(parents=True)  # branches are noted anew if something about them changed
        assert "question 2" in self.run(machine, 2)
        assert "question 1" not in self.run(machine, 3)
        assert [path.name for path in files if not path.is_file()] == []


def without_collisions(state, own):
    del state[own][" collisions"]


def with_a_number_of_sessions_left_out(state, own):
    state[own][own]["left_out"] = 2


@pytest.mark.parametrize("as_of", [without_collisions, with_a_number_of_sessions_left_out])
def test_a_state_of_0_2_is_put_aside_and_logged_and_its_session_repeats_nothing(
    plain, tmp_path, as_of
):
    path = tmp_path / "app.py"
    path.touch()
    edit = ("Edit", {"file_path": str(path)})
    append(
        plain.project_dir / f"{plain.session_id}.jsonl",
        user("edit it"),
        assistant(edit, at=time.time() - 60),
    )
    other = plain.session(*exchange("hello", "hi"))
    assert "hello" in told(plain.run())
    assert plain.run() == b""
    state = json.loads(cursor_path(plain).read_text())
    as_of(state, plain.session_id)
    cursor_path(plain).write_text(json.dumps(state))
    append(other, *exchange("more", edit))
    path.write_text("x\n")
    text = told(plain.run())
    assert "! " in text
    assert "after you edited it" in text
    assert "2 messages" in text  # not the two of before
    aside = cursor_path(plain).with_suffix(".json.corrupt")
    assert json.loads(aside.read_text()) == state
    assert "renamed to .corrupt" in plain.log()[-1]


def test_the_hook_is_silent_where_nothing_can_be_written_and_doctor_says_why(plain):
    plain.session(*exchange("hello", "hi"))
    plain.place.mkdir()
    plain.place.chmod(0o500)
    for _ in range(2):
        assert bound(plain) == b""
    assert list(plain.place.iterdir()) == []
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from session_memory.cli import main; sys.exit(main())",
            "doctor",
        ],
        env={"HOME": str(plain.root), "PYTHONPATH": str(ROOT), "PATH": os.defpath},
        capture_output=True,
        text=True,
        preexec_fn=bind_permissions,
        check=False,
        timeout=60,
    )
    assert (
        "is not writable, so deliveries cannot be recorded and agents get no updates"
        in " ".join(done.stdout.split())
    )
    assert "Traceback" not in done.stderr


def test_a_transcript_whose_name_is_not_utf8_is_told_of(plain):
    with open(os.fsencode(plain.project_dir) + b"/caf\xe9.jsonl", "wb") as file:
        file.write(lines(*exchange("odd question", "odd answer")))
    plain.session(*exchange("usual question", "hi"))
    text = told(plain.run())
    assert "odd question" in text
    assert "usual question" in text
    assert plain.run() == b""
    assert plain.log() == []


def test_a_session_behind_a_large_snapshot_is_called_by_its_first_prompt(plain):
    snapshot = {
        "type": "file-history-snapshot",
        "messageId": "m",
        "snapshot": {"backup": "x" * 100_000},
    }
    earlier = [
        record for number in range(40) for record in exchange(f"step {number}", "done " * 400)
    ]
    plain.session(*[snapshot] * 5, *exchange("plan the garden", "yes"), *earlier)
    assert "plan the garden" in told(plain.run())


def bound(plain):
    """The hook's answer to a prompt where permissions hold, also where root runs the tests."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "hooks" / "user_prompt_submit.py"],
        input=json.dumps(plain.event()).encode(),
        capture_output=True,
        timeout=30,
        env={"HOME": str(plain.root), "CLAUDE_PID": "4711"},
        preexec_fn=bind_permissions,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout
