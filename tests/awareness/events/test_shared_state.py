"""A home that a plugin of 0.4.2 and a program of today share: each reads the state that the other
has written, nothing is lost, and nothing is told twice."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random, randrange

from hooks_scene import ROOT, PlainUser, told
from records import append, assistant, exchange, user
from upgrade_scene import former

__all__ = ["former"]


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
