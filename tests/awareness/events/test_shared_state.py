"""A home shared by a plugin of 0.4.2 and a present program.

Each reads the other's state. Nothing is lost, and nothing is reported twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random, randrange

from git_scene import repository
from hooks_scene import ROOT, PlainUser, told
from records import append, assistant, exchange, new_id, user
from upgrade_scene import former

from session_memory.awareness.activity.conflicts import KeptConflict
from session_memory.extras.team.handoffs import OfferedHandoff, handoffs_file
from session_memory.sessions.settings.homes import person_home

__all__ = ["former"]
LINE = (
    'ann@laptop (Claude Code) handed over "Show the cart": `session-memory handoff a1` prints it.'
)


def test_programs_of_both_versions_take_turns(
    plain: PlainUser, tmp_path: Path, former: Path, request: object
) -> None:
    seed = randrange(2**32)
    print(f"seed {seed}")
    random = Random(seed)
    own = plain.project_dir / f"{plain.session_id}.jsonl"
    append(own, *exchange("begin", "yes"))
    others = [plain.session(*exchange(f"task {number}", "begun")) for number in range(3)]
    plain.run(program=former)
    prompts = 1000 if request.config.getoption("--all") else 40  # type: ignore[attr-defined]
    for number in range(prompts):
        other = random.choice(others)
        news = random.choice(("nothing", "answer", "answer", "collision"))
        if news == "answer":
            append(other, *exchange(f"question {number}", f"answer {number}x"))
        elif news == "collision":
            collide(tmp_path / f"{number}.py", own, other)
        output = plain.run(program=random.choice((former, ROOT)))
        text = told(output) if output else ""
        assert text.count("answer ") == (news == "answer"), (seed, number, news, text)
        assert (f"answer {number}x" in text) is (news == "answer"), (seed, number, news, text)
        assert text.count("\n! ") == (news == "collision"), (seed, number, news, text)
    assert plain.log() == []


def collide(path: Path, own: Path, other: Path) -> None:
    """The session edits a file, and another one after it."""
    path.touch()
    edit = ("Edit", {"file_path": str(path)})
    append(own, user("edit it"), assistant(edit, at=time.time() - 60))
    append(other, user("edit it too"), assistant(edit))
    path.write_text("x\n")
    os.utime(path)


def test_notes_that_either_version_keeps_are_told_once(
    plain: PlainUser, tmp_path: Path, former: Path, request: object
) -> None:
    seed = randrange(2**32)
    print(f"seed {seed}")
    random = Random(seed)
    shop = repository(tmp_path / "shop")
    place = {"cwd": str(shop)}
    append(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("begin", "yes"))
    home = person_home({"HOME": str(plain.root)})
    conflicts: list[KeptConflict] = []
    plain.config("upkeep: off\n")  # a search for real conflicts would find none
    plain.run(program=former, **place)
    for number in range(1000 if request.config.getoption("--all") else 30):  # type: ignore[attr-defined]
        is_new = random.random() < 0.7
        if is_new:
            conflict = KeptConflict(f"f{number}.py", time.time(), root=str(shop), key=f"{number}")
            conflicts = [*conflicts[-2:], conflict]
        writer, reader = random.choice((former, ROOT)), random.choice((former, ROOT))
        if writer == ROOT:
            KeptConflict.keep(home, conflicts, [])
        else:
            keep_as_former(former, plain.root, conflicts)
        output = plain.run(program=reader, **place)
        text = told(output) if output else ""
        assert text.count("\n! ") == is_new, (seed, number, text)
        assert (f"! f{number}.py: " in text) is is_new, (seed, number, text)
    assert plain.log() == []


def test_a_handoff_is_offered_once_whichever_versions_answer(
    plain: PlainUser, tmp_path: Path, former: Path
) -> None:
    shop = repository(tmp_path / "shop")
    home = person_home({"HOME": str(plain.root)})
    row = {"repository": f"{shop}/.git", "branch": "main", "session": "a1", "page": "all of it"}
    plain.state_dir.mkdir(parents=True)
    Path(handoffs_file(home)).write_text(json.dumps([{**row, "line": LINE}]))
    OfferedHandoff.keep(home, [OfferedHandoff("a1", f"{shop}/.git", "main", LINE)])
    for first in (former, ROOT):
        for second in (former, ROOT):
            plain.session_id = new_id()
            append(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("begin", "yes"))
            outputs = [plain.run(program=program, cwd=str(shop)) for program in (first, second)]
            assert LINE in told(outputs[0]), (first, second)
            assert LINE.encode() not in outputs[1], (first, second)
    assert plain.log() == []


def keep_as_former(former: Path, user: Path, conflicts: list[KeptConflict]) -> None:
    """Upkeep of 0.4.2 stores the conflicts."""
    code = (
        "import importlib, json, sys; sys.path.insert(0, sys.argv[1])\n"
        "def load(name): return importlib.import_module('session_memory.' + name)\n"
        "home = load('settings.homes').person_home({'HOME': sys.argv[2]})\n"
        "load('activity.conflicts').keep(home, json.loads(sys.argv[3]), [])"
    )
    dumped = json.dumps([conflict.dump() for conflict in conflicts])
    words = [sys.executable, "-I", "-c", code, str(former), str(user), dumped]
    subprocess.run(words, check=True)
