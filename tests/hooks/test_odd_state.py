"""State of ours that is not as we wrote it: it is healed at the next prompt, and does not fail at every one for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hooks_scene import ROOT, told
from permissions import bind_permissions
from records import append, exchange

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


@pytest.mark.parametrize("part", PARTS)
def test_a_cursor_with_a_wrong_part_is_as_good_as_none(plain, part):
    path = plain.session(*exchange("hello", "hi"))
    assert "hello" in told(plain.run())
    whole = json.loads(cursor_path(plain).read_text())
    # A file with an offset that is no number is set aside whole: see tests/activity.
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


def bound(plain):
    """The hook's answer to a prompt where permissions hold, also where root runs the tests."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "hooks" / "user_prompt_submit.py"],
        input=json.dumps(plain.event()).encode(), capture_output=True, env={"HOME": str(plain.root)}, timeout=30,
        preexec_fn=bind_permissions, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout
