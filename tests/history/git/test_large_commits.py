"""A commit of very many lines: the first of each file are compared, the others counted."""

from __future__ import annotations

from pathlib import Path

from git_scene import git, repository

from session_memory.history.git.commits import MOST_ADDED_TO_FILE, Repository


def test_lines_after_those_that_are_too_many_are_found_and_the_others_counted(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "repo", **{"a.txt": "one\ntwo\nthree\n", "z.txt": "1\n2\n"})
    many = [f"+ {number}" for number in range(MOST_ADDED_TO_FILE + 500)]
    (root / "a.txt").write_text("\n".join(["one", *many, "two", "new", "three", ""]))
    (root / "z.txt").write_text("1\n-- a\n++ b\n")
    git(root, "commit", "-qam", "Take in many lines")
    repo = Repository(str(root), str(root))
    commit = repo.resolved("HEAD")
    added, removed = repo.added(commit)
    of_first = [line for line in added if line.path == "a.txt"]
    assert [line.text for line in of_first] == many[:MOST_ADDED_TO_FILE]
    assert [line.number for line in of_first] == list(range(2, MOST_ADDED_TO_FILE + 2))
    assert [(line.number, line.text) for line in added if line.path == "z.txt"] == [
        (2, "-- a"),
        (3, "++ b"),
    ]
    assert removed == ["2"]
    assert repo.not_added[commit] == 500 + 1  # `new`
