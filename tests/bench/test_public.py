"""The public benchmark, on a small repository that keeps its sessions in git."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from checkpoint_branch import BRANCH, checkpoint, git
from records import assistant, lines, user

from bench.research.public.__main__ import main, readme_program
from bench.research.public.scoring import Corpus, Question, asked, graded, table
from bench.research.public.tasks import digest, made, written

START = time.time() - 5 * 3600  # the commits are made now
ERROR = "TypeError: harbour lamp frobnicates without its keeper"


def said(session: str, at: float, *words: Any) -> list[dict[str, Any]]:
    """A session in the clone of somebody else: a request, and the answer with its calls."""
    where = {"cwd": "/home/ann/harbour", "sessionId": session}
    request, *blocks = words
    return [user(request, at=at, **where), assistant(*blocks, at=at + 10, **where)]


def ran(
    session: str, at: float, command: str, output: str, is_error: bool = False
) -> list[dict[str, Any]]:
    """A command and its result."""
    where = {"cwd": "/home/ann/harbour", "sessionId": session}
    call = assistant(("Bash", {"command": command}), at=at, **where)
    id = call["message"]["content"][0]["id"]
    result = [{"tool_use_id": id, "type": "tool_result", "content": output, "is_error": is_error}]
    return [call, user(result, at=at + 1, **where)]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "ann+harbour"
    root.mkdir()
    git(root, "init", "-q", "-b", BRANCH, ".")
    git(root, "commit", "-q", "--allow-empty", "-m", "Start")
    git(root, "checkout", "-q", "-b", "work")
    text = "def lamp():\n    return 'the lamp shines brightly'\n"
    edit = (
        "Edit",
        {"file_path": "/home/ann/harbour/lamp.py", "old_string": "x", "new_string": text},
    )
    failed = f"Exit code 1\n{ERROR}"
    lamp = [
        *said("lamp", START, "make the lamp shine", edit),
        *ran("lamp", START + 20, "pytest lamp", failed, is_error=True),
        *ran("lamp", START + 30, "pytest lamp", "1 passed"),
    ]
    wall = [
        *said("wall", START + 7200, "paint the wall white", "I paint it."),
        *ran("wall", START + 7220, "pytest wall", failed, is_error=True),
    ]
    checkpoint(root, "aa1111111111", lamp=lines(*lamp))
    checkpoint(root, "bb2222222222", wall=lines(*wall))
    commit(root, "Let the lamp shine\n\nEntire-Checkpoint: aa1111111111", lamp=text)
    commit(
        root,
        "Paint the wall white\n\nEntire-Checkpoint: bb2222222222",
        wall="the wall is painted white\n",
    )
    commit(root, "Bump sail from 1.2.0 to 1.3.0", sail="the sail is of version 1.3.0\n")
    git(root, "branch", "fix")
    commit(root, "ours", wall="the wall is painted in our colour\n")
    git(root, "checkout", "-q", "fix")
    for name in ("their", "theirs"):
        commit(root, name, wall=f"the wall is painted in {name} colour\n")
    git(root, "checkout", "-q", "work")
    git(root, "merge", "-q", "-s", "ours", "-m", "merge fix", "fix")
    return root


def commit(root: Path, message: str, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


def test_tasks_hold_identifiers_and_labels_and_no_text(repository: Path, tmp_path: Path) -> None:
    tasks = made(repository, "test")
    lamp, wall = (
        git(repository, "log", "--format=%H", "-1", f"--grep={word}").strip()
        for word in ("shine", "Paint")
    )
    bump = git(repository, "log", "--format=%H", "-1", "--grep=Bump").strip()
    assert tasks["repository"] == "ann/harbour"
    assert [name for name, _ in tasks["sessions"]] == ["lamp", "wall"]
    assert sorted(tasks["commit"]) == sorted([[lamp, [0]], [wall, [1]], [bump, []]])
    # the wall's line is of no session any more
    assert sorted(answer for _, _, answer in tasks["line"]) == [[], [0]]
    assert [(asker, answer) for asker, _, answer in tasks["error"]] == [(1, [0])]
    assert [files for _, _, files in tasks["conflict"]] == [[digest("wall.py")]]
    text = written(tasks, tmp_path / "tasks").read_text()
    assert not [word for word in ("shine", "painted", "frobnicates", "lamp.py") if word in text]


def test_the_program_in_the_readme_gets_a_score(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = readme_program()
    assert len(program.splitlines()) <= 20
    (tmp_path / "tool.py").write_text(program)
    tool = shlex.join([sys.executable, str(tmp_path / "tool.py")])
    assert main("build", str(repository), split="test", tasks=tmp_path / "tasks") == 0
    assert main("score", str(repository), tool=[tool], tasks=tmp_path / "tasks") == 0
    printed = capsys.readouterr().out
    assert f"| commit to session | {tool} | 2 | 1.000 | 1.000 | 1.000 | 1 | 0.000 |" in printed
    assert f"| error to session | {tool} | 1 | 1.000 | 1.000 | 1.000 | 0 | - |" in printed
    assert "tips to conflict" not in printed


def test_the_tools_that_come_with_it_answer(repository: Path, tmp_path: Path) -> None:
    tasks = made(repository, "test")
    results = {}
    for name in ("date", "changed", "ours"):
        corpus = Corpus(tasks, repository, tmp_path / name)
        results[name] = asked(
            f"{shlex.quote(sys.executable)} -m bench.research.public.tools {name}", corpus
        )
    shares = table(results)
    assert "| commit to session | ours | 2 | 1.000 | 1.000 | 1.000 | 1 | 1.000 |" in shares
    assert "| line to session | ours | 1 | 1.000 | 1.000 | 1.000 | 1 | 1.000 |" in shares
    assert "| error to session | ours | 1 | 1.000 | 1.000 | 1.000 | 0 | - |" in shares
    assert "| tips to conflict | ours | 1 | 1.000 | 1.000 | 1.000 | 0 | - |" in shares
    assert "| tips to conflict | changed | 1 | 1.000 | 1.000 | 1.000 | 0 | - |" in shares
    assert "| commit to session | date | 2 |" in shares


def test_the_checkout_that_a_tool_gets_has_no_labels(repository: Path, tmp_path: Path) -> None:
    corpus = Corpus(made(repository, "test"), repository, tmp_path / "corpus")
    assert git(corpus.clone, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    moved = Path(corpus.sessions["lamp"]).read_text()
    assert json.loads(moved.splitlines()[0])["cwd"] == str(corpus.clone)
    assert "/home/ann" not in moved


def test_a_session_that_began_later_or_asks_itself_is_no_answer() -> None:
    question = Question({"task": "error"}, frozenset({"a"}), frozenset({"a", "b"}))
    [first, among, strict] = graded(question, {"sessions": ["asker", "later", "a"]})[2:]
    assert (first, among, strict) == (True, True, True)
    assert graded(question, {"sessions": ["b", "a"]})[2:] == (False, True, True)
    assert graded(question, {"sessions": []})[2:] == (False, False, False)
    assert graded(question, {"id": 1}) is None
    both = Question({"task": "commit"}, frozenset({"a", "b"}), frozenset({"a", "b"}))
    assert graded(both, {"sessions": ["a"]})[2:] == (True, True, False)
    nothing = Question({"task": "commit"}, frozenset(), frozenset({"a"}))
    assert graded(nothing, {"sessions": ["a"]})[2:] == (False, False, False)
    assert graded(nothing, {"sessions": []})[2:] == (True, True, True)


def test_deja_is_asked_as_its_documentation_tells(repository: Path, tmp_path: Path) -> None:
    hits = {
        "schema_version": 2,
        "tier": "exact",
        "total": 1,
        "hits": [{"session": {"harness": "claude", "id": "lamp"}}],
    }
    program = tmp_path / "deja"
    program.write_text(f"#!/bin/sh\n[ \"$1 $2\" = 'search --json' ] && echo '{json.dumps(hits)}'\n")
    program.chmod(0o755)
    corpus = Corpus(made(repository, "test"), repository, tmp_path / "corpus")
    tool = shlex.join([sys.executable, "-m", "bench.research.public.tools", "deja", str(program)])
    grades = [one for one in asked(tool, corpus) if one.task == "error"]
    assert [(one.first, one.strict) for one in grades] == [(True, True)]
