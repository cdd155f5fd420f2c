"""The table of runtimes in docs/inside/runtimes.md says what the code does, and what other tests
show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "sessions" / "runtimes" / "fixtures"
DECLARED = (ROOT / "hooks" / "hooks.json").read_text()


def table() -> dict[str, dict[str, str]]:
    """The cells, by the beginning of their line and the title of their runtime."""
    lines = (ROOT / "docs" / "inside" / "runtimes.md").read_text().splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("| | Claude Code"))
    titles = cells_of(lines[head])[1:]
    rows = [
        cells_of(line)
        for line in lines[head + 2 :][
            : next(n for n, one in enumerate(lines[head:]) if not one) - 2
        ]
    ]
    return {first: dict(zip(titles, cells)) for first, *cells in rows}


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_runtime_has_a_cell_in_every_line():
    titles = {one.TITLE for one in all_runtimes()}
    assert [
        name for name, cells in table().items() if set(cells) != titles or not all(cells.values())
    ] == []


def test_every_line_names_the_tests_that_show_it():
    text = (ROOT / "docs" / "inside" / "runtimes.md").read_text()
    shown = {
        name: re.findall(r"`(test_\w+\.py)`", said)
        for name, said in re.findall(r"- \*(.+?)\*: ([^;]*)", text)
    }
    assert set(shown) == {re.sub(r"\[(.+?)\]\(.+?\)", r"\1", name) for name in table()}
    assert all(shown.values())
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [name for name in re.findall(r"`(test_\w+\.py)`", text) if name not in there] == []


@pytest.mark.parametrize("one", all_runtimes(), ids=lambda one: one.name)
def test_what_it_says_of_a_runtime_is_so(one: Runtime):
    cells = {name: row[one.TITLE] for name, row in table().items()}
    expected = json.loads((FIXTURES / one.name / "expected.json").read_text())
    # by the fixture, which the conformance suite runs over
    assert cells["read, stored, archived, listed"] == "yes"
    assert cells["gets updates with a prompt"] == ("yes" if one.PROMPT_EVENT else "no")
    is_shown = one.SHOWS_WHAT_WAS_TOLD
    assert cells["its transcript shows which updates arrived"] == ("yes" if is_shown else "no")
    kinds = {kind for _, kind, _ in expected["calls"]}
    assert kinds in ({"edit", "command"}, set())
    assert cells["gets collisions"] == (
        "prompt, edit, git" if kinds else "prompt" if one.PROMPT_EVENT else "no"
    )
    wanted = one.install.wanted_hooks(DECLARED, "", "") or one.install.wanted_files(
        DECLARED, "", ""
    )
    assert ("install.py" in cells["installed by"]) == bool(wanted)
    assert ("install.py" in cells["tools of [tools.md](../reference/tools.md)"]) == bool(
        one.install.MCP_KEY
    )
