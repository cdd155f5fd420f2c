"""A conflict names the session that provably wrote the lines, else only the branch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ..authors_scene import CLAUDE, CODEX, Authors

ON_BRANCH = "a.txt: your line 1 conflicts with line 1 changed just now on branch work"


@pytest.fixture
def authors(tmp_path: Path) -> Authors:
    found = Authors(tmp_path, **{"a.txt": "one line\n" + "more\n" * 9})
    found.session(CLAUDE, "Change it here", found.linked).edit(
        "a.txt", "one line", "a line of mine"
    )
    return found


def test_lines_that_a_shell_wrote_are_its_sessions_and_not_those_of_one_that_touched_nothing(
    authors: Authors,
) -> None:
    codex = authors.session(CODEX, "Write two")
    codex.shell("sed -i 's/one line/two lines/' a.txt && git commit -qam 'Two it is'")
    codex.says("Done.")
    authors.session(CLAUDE, "Good morning").says("Good morning.")
    [line] = authors.conflicts()
    assert (
        line
        == 'a.txt: your line 1 conflicts with line 1 changed just now by "Write two" (Codex, branch work)'
    )


def test_a_failed_edit_proves_nothing(authors: Authors) -> None:
    (authors.root / "a.txt").write_text("by hand\n")
    failed = authors.session(CLAUDE, "Write by hand")
    failed.edit("a.txt", "no such line", "by hand", fails=True)
    failed.shell("sed -i s/x/y/ no-such-directory/a.txt a.txt.none")
    assert authors.conflicts() == [ON_BRANCH]


def test_of_two_sessions_the_one_whose_edit_has_the_line_is_named(authors: Authors) -> None:
    first = authors.session(CLAUDE, "Write two")
    first.edit("a.txt", "one line", "two lines")
    second = authors.session(CLAUDE, "Add an end")
    second.shell("echo 'the end' >> a.txt")
    second.says("Done.")
    [line] = authors.conflicts()
    assert 'by "Write two" (Claude Code, branch work)' in line


def test_an_edit_of_other_lines_does_not_prove_who_wrote_this_one(authors: Authors) -> None:
    session = authors.session(CLAUDE, "Add an end")
    session.edit("a.txt", "one line\n", "one line\nthe end\n")
    (authors.root / "a.txt").write_text("by hand\nthe end\n")
    [line] = authors.conflicts()
    assert "changed just now on branch work" in line


def test_a_command_proves_nothing_if_the_file_was_written_later(authors: Authors) -> None:
    session = authors.session(CODEX, "Write two", ago=60)
    session.shell("sed -i 's/one line/two lines/' a.txt")
    time.sleep(2.2)  # file times count to two seconds
    (authors.root / "a.txt").write_text("by hand\n")
    assert authors.conflicts() == [ON_BRANCH]


def test_what_a_sub_agent_wrote_is_its_sessions(authors: Authors) -> None:
    session = authors.session(CLAUDE, "Ask an agent")
    session.says("I ask one.")
    folder = session.path.with_suffix("") / "subagents" / "workflows" / "wf_1"
    agent = authors.session(CLAUDE, "Write two")
    agent.edit("a.txt", "one line", "two lines")
    folder.mkdir(parents=True)
    records = (
        agent.path.read_text()
        .replace('"isSidechain":false', '"isSidechain":true')
        .replace(agent.id, session.id)
    )
    (folder / "agent-1.jsonl").write_text(records)
    agent.path.unlink()
    [line] = authors.conflicts()
    assert 'by "Ask an agent" (Claude Code, branch work)' in line


def test_a_command_that_changed_other_lines_of_the_file_did_not_write_this_one(
    authors: Authors,
) -> None:
    (authors.root / "a.txt").write_text("by hand\n" + "more\n" * 9)
    session = authors.session(CODEX, "Add an end")
    session.shell("sed -i '9s/more/the end/' a.txt")
    assert authors.conflicts() == [ON_BRANCH]
