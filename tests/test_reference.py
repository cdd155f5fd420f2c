"""The tables in docs/reference follow from the tables in the code.

`.venv/bin/python tests/test_reference.py` writes those of tools and runtimes; tests/test_house.py
writes the commands, `python -m session_memory.sessions.settings.keys` the settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from session_memory.app.tools.definitions import ALL, Tool
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"


def tools_table(*audiences: str) -> str:
    """Return a row for each tool of these audiences: its call, and what its description begins
    with."""
    rows = [
        f"| `{tool.name}({arguments_of(tool)})` | {summary_of(tool)} |"
        for tool in ALL
        if tool.audience in audiences
    ]
    return "\n".join(["| Tool | What it does |", "|---|---|", *rows])


def arguments_of(tool: Tool) -> str:
    required = tool.schema["required"]
    return ", ".join(name if name in required else f"{name}?" for name in tool.schema["properties"])


def summary_of(tool: Tool) -> str:
    return re.split(r"\. |\.?\{of_main\}", tool.description)[0].rstrip(".") + "."


def runtimes_table() -> str:
    """Return a row for each runtime."""
    rows = [
        "| Runtime | Directory | News | Collisions | With `collisions: ask` | Status line |"
        " Resume a session |",
        "|---|---|---|---|---|---|---|",
        *map(runtime_row, all_runtimes()),
    ]
    return "\n".join(rows)


def runtime_row(runtime: Runtime) -> str:
    install = runtime.install
    directory = f"`~/{runtime.USUAL_DIR}`, `${runtime.CONFIG_VARIABLE}`"
    edits = any(kind == "edit" for kind, _ in runtime.TOOLS.values())
    asks = type(runtime).can_ask is not Runtime.can_ask
    cells = [
        runtime.TITLE,
        directory,
        "with prompts" if runtime.PROMPT_EVENT else "no",
        "with prompts and edits" if edits else "with prompts" if runtime.PROMPT_EVENT else "no",
        "asks you" if asks else "tells the agent" if edits else "no effect",
        "yes" if install.STATUS_LINE or install.SHOWS_STATUS else "no",
        f"`{install.RESUME.format(id='ID')}`" if install.RESUME else "",
    ]
    return f"| {' | '.join(cells)} |"


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("tools.md", "tools of every agent"): lambda: tools_table("everyone", "home", "graph", "team"),
    ("tools.md", "tools of a group"): lambda: tools_table("group"),
    ("tools.md", "tools of main"): lambda: tools_table("main"),
    ("runtimes.md", "runtimes"): runtimes_table,
}


def with_table(text: str, name: str, table: str) -> str:
    """Return the page `text` with the table between the marks of `name`."""
    begin, end = f"<!-- {name}: written by tests/test_reference.py -->\n", "<!-- end -->\n"
    before, mark, after = text.partition(begin)
    assert mark, name
    return before + begin + "\n" + table + "\n\n" + end + after.partition(end)[2]


@pytest.mark.parametrize(("page", "name"), TABLES)
def test_a_table_of_the_reference_is_as_the_code_says(page: str, name: str) -> None:
    text = (REFERENCE / page).read_text()
    assert with_table(text, name, TABLES[page, name]()) == text, (
        f"run .venv/bin/python {Path(__file__).relative_to(ROOT)}"
    )


if __name__ == "__main__":
    for (page, name), table in TABLES.items():
        path = REFERENCE / page
        path.write_text(with_table(path.read_text(), name, table()))
