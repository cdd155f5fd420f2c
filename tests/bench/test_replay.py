"""The replay of a history with checkpoints: which reports count, which are right, and false ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from checkpoint_branch import BRANCH, checkpoint, git
from records import assistant, lines, user

from bench.research.replay import History, plausible, remedies, wrong_paths

NOW = time.time() + 3600  # after the commit of the files, which a long run of tests makes late


@pytest.mark.parametrize(
    ("path", "known", "found"),
    [
        ("/app/x.py", ["/app/src/x.py", "/app/src/y.py"], "/app/src/x.py"),
        ("/wrong/src/db/x.py", ["/app/src/db/x.py"], "/app/src/db/x.py"),
        ("/app/x.py", ["/app/src/x.py", "/app/test/x.py"], ""),
        ("/app/src/x.py", ["/app/test/x.py"], ""),
        ("/app/x.py", ["/app/src/ax.py"], ""),
    ],
)
def test_a_path_is_meant_if_parts_of_it_were_left_out_or_its_end_is_the_same(path, known, found):
    assert plausible(path, known) == found


@pytest.fixture
def history(tmp_path: Path) -> History:
    repository = tmp_path / "repository"
    (repository / "src").mkdir(parents=True)
    git(repository, "init", "-q", "-b", "work")
    (repository / "src" / "x.py").write_text("1\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "begin")
    git(repository, "checkout", "-q", "--orphan", BRANCH)
    git(repository, "commit", "-q", "--allow-empty", "-m", "checkpoints")
    git(repository, "checkout", "-q", "work")
    made = [
        call("Bash", "make", "Exit code 2: no rule to make target install", at=1),
        call("Bash", "npm install", "", at=2),
        call("Bash", "make", "", at=3),
        call("Read", "/srv/app/x.py", "File does not exist.", at=4),
        call("Read", "/srv/app/src/x.py", "", at=5),
    ]
    for number in range(3):
        records = [user("go on", cwd="/srv/app", at=NOW + 1000 * number)]
        records += [one for pair in made for one in pair(NOW + 1000 * number)]
        checkpoint(repository, f"{number}a{'0' * 10}", **{f"s{number}": lines(*records)})
    return History(repository, tmp_path / "root")


def call(tool, argument, error, at):
    """A call and its result, some seconds after a time."""
    key = "command" if tool == "Bash" else "file_path"

    def records(begin):
        id = f"toolu_{begin + at}"
        asked = {"type": "tool_use", "id": id, "name": tool, "input": {key: argument}}
        result = {
            "tool_use_id": id,
            "type": "tool_result",
            "content": error or "done",
            "is_error": bool(error),
        }
        return [
            assistant(asked, cwd="/srv/app", at=begin + at),
            user([result], cwd="/srv/app", at=begin + at),
        ]

    return records


def test_a_wrong_path_is_right_if_the_session_opens_the_other_one_next(history):
    found = list(wrong_paths(history))
    assert [(one.text, one.is_right) for one in found] == [("/srv/app/src/x.py", True)] * 3


def test_a_remedy_is_told_from_the_third_session_on(history):
    (found,) = remedies(history)
    assert (found.call.session, found.text, found.is_right) == (
        "s2",
        "after running `npm install`",
        True,
    )


def test_nothing_is_told_with_a_call_that_succeeds(history):
    every = [one for kind in (wrong_paths, remedies) for one in kind(history)]
    assert {one.call.tool.outcome for one in every} == {"error"}
