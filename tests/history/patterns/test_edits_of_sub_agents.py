"""A sub-agent's edits are its session's for `why`, the handoff, the page, conflicts and reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from authors_scene import CLAUDE, CODEX, Author, Authors, next_second
from git_scene import git
from page_scene import ServedPage
from store_scene import StoreUser

from session_memory.history.store.sqlite.engine import SqliteStore

CART = "".join(f"line {number}\n" for number in range(1, 10))


@pytest.fixture
def authors(tmp_path: Path) -> Authors:
    return Authors(
        tmp_path, **{"cart.ts": CART, "shop.ts": CART, "a.txt": "one line\n" + "more\n" * 9}
    )


@pytest.fixture
def session(authors: Authors) -> Author:
    """A session whose sub-agent edits by a tool and by a command, and commits; another one does nothing."""
    next_second()
    found = authors.session(CLAUDE, "Ask an agent", ago=5)
    agent = found.sub_agent("Write nine")
    agent.edit("cart.ts", "line 9", "nine")
    agent.shell("sed -i 's/line 1/eins/' shop.ts && git commit -qam 'Write nine and one'")
    agent.edit("shop.ts", "no such line", "x", fails=True)
    found.goes_on()
    authors.session(CODEX, "Good morning").says("Good morning.")
    return found


def test_why_names_the_session_for_a_short_line_a_command_and_a_commit_of_its_sub_agent(
    authors: Authors, session: Author
) -> None:
    assert authors.named("cart.ts:9") == (session.id, "command")
    assert authors.named("shop.ts:1") == (session.id, "command")
    assert authors.named("HEAD")[0] == session.id
    said = authors.why("shop.ts:1")
    assert "asked: “Ask an agent”" in said
    assert "its command wrote the file: `sed -i 's/line 1/eins/' shop.ts && git commit" in said


def test_a_handoff_lists_the_files_of_its_sub_agents(authors: Authors, session: Author) -> None:
    page = authors.run("handoff", session.id)
    assert "- cart.ts: committed" in page
    assert "- shop.ts: committed" in page


def test_the_page_has_the_files_of_sub_agents_in_files_and_in_the_session(
    authors: Authors, session: Author
) -> None:
    with ServedPage(StoreUser(authors.home)) as page:
        page.until("cart.ts", "/files")
        files = page.view("/files").text
        assert 'aria-label="cart.ts"' in files
        assert 'aria-label="shop.ts"' in files
        outline = page.view(f"/session/{session.id}/outline").text
        assert "cart.ts" in outline
        assert "shop.ts" in outline


def test_a_conflict_names_the_session_whose_sub_agent_wrote_the_line(authors: Authors) -> None:
    authors.session(CLAUDE, "Change it here", authors.linked).edit(
        "a.txt", "one line", "a line of mine"
    )
    session = authors.session(CLAUDE, "Ask an agent")
    session.sub_agent("Write two").shell("sed -i 's/one line/two lines/' a.txt")
    session.goes_on()
    [line] = authors.conflicts()
    assert 'by "Ask an agent" (Claude Code, branch work)' in line


def test_what_a_sub_agent_edits_in_another_worktree_is_its_sessions(authors: Authors) -> None:
    next_second()
    session = authors.session(CLAUDE, "Ask an agent", ago=5)
    agent = session.sub_agent("Write nine", authors.linked)
    agent.edit("cart.ts", "line 9", "nine")
    agent.shell("git commit -qam 'Write nine'")
    session.goes_on()
    git(authors.root, "merge", "-q", "other")
    assert authors.named("cart.ts:9") == (session.id, "command")


def test_a_forgotten_session_leaves_no_call_of_its_sub_agents(
    authors: Authors, session: Author
) -> None:
    authors.run("ingest")
    [database] = (authors.home / ".session-memory").rglob("memory.db")
    assert _arguments(database)
    authors.run("forget", session.id, "--yes")
    authors.run("ingest")
    assert _arguments(database) == []


def test_an_excluded_session_shows_no_file_of_its_sub_agents(
    authors: Authors, session: Author
) -> None:
    authors.run("ingest")
    (authors.home / ".session-memory" / "config.yaml").write_text(
        f"sessions: {{{session.id}: {{ignore: true}}}}"
    )
    assert authors.named("cart.ts:9")[0] != session.id
    assert authors.named("shop.ts:1")[0] != session.id


def _arguments(database: Path) -> list[str]:
    store = SqliteStore(str(database))
    try:
        return [
            argument for (argument,) in store.rows("SELECT argument FROM memory_sub_agent_calls")
        ]
    finally:
        store.close()
