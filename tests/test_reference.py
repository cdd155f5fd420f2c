"""The tables in docs/reference follow from the tables in the code.

`.venv/bin/python tests/test_reference.py` writes those of tools and runtimes, and README's;
tests/test_house.py writes the commands, `python -m session_memory.sessions.settings.keys` the settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


class Ability(NamedTuple):
    """A column of the table of abilities: its head, what that means, and the tests that show it."""

    name: str
    meaning: str
    cell: Callable[[Runtime, dict[str, Any]], str]
    tests: str


# ways other than `install`, by the names of runtimes
OTHER_INSTALLS = {
    "claude-code": "plugin, wheel",
    "pi": "package, template",
    "codex": "plugin",
    "qwen-code": "extension",
    "copilot": "plugin",
    "opencode": "plugin file",
    "kilo": "plugin file",
    "cline": "plugin file",
}
OTHER_TOOLS = {
    "claude-code": "plugin, by hand",
    "copilot": "plugin",
    "atif": "by hand",
    "hermes": "by hand",
}
UNTRIED_SUB_AGENTS = ("droid",)  # a service of the vendor runs them
DECLARED = (ROOT / "hooks" / "hooks.json").read_text()


def of_prompts(runtime: Runtime, _: dict[str, Any]) -> str:
    if runtime.TELLS_AT_START:
        return "yes (3)"
    return "yes" if runtime.PROMPT_EVENT else "no hooks"


def of_calls(runtime: Runtime, expected: dict[str, Any]) -> str:
    kinds = {kind for _, kind, _ in expected["calls"]}
    assert kinds in ({"edit", "command"}, set())
    if not runtime.PROMPT_EVENT:
        return of_prompts(runtime, expected)
    if runtime.REFUSES:
        return "yes (2)"
    return "yes" if kinds else "no (1)"


def of_confirmation(runtime: Runtime, _: dict[str, Any]) -> str:
    if runtime.SHOWS_WHAT_WAS_TOLD:
        return "yes"
    return "no (5)" if runtime.PROMPT_EVENT else "no"


def of_sub_agents(runtime: Runtime, expected: dict[str, Any]) -> str:
    if runtime.name in UNTRIED_SUB_AGENTS:
        return "not tried (4)"
    return "yes" if expected["subagent"] else "none recorded"


def of_forks(_: Runtime, expected: dict[str, Any]) -> str:
    return "yes" if expected.get("fork_copies", True) else "none"


def of_restore(runtime: Runtime, _: dict[str, Any]) -> str:
    if runtime.backup.CANNOT_PUT_BACK:
        return "no (6)"
    return "its import" if runtime.backup.IS_PUT_BACK else "a file"


def of_tools(runtime: Runtime, _: dict[str, Any]) -> str:
    ways = ("install" if runtime.install.MCP_KEY else "", OTHER_TOOLS.get(runtime.name, ""))
    return ", ".join(filter(None, ways))


def of_install(runtime: Runtime, _: dict[str, Any]) -> str:
    install = runtime.install
    wanted = install.wanted_hooks(DECLARED, "", "") or install.wanted_files(DECLARED, "", "")
    ways = ("install" if wanted else "", OTHER_INSTALLS.get(runtime.name, ""))
    return ", ".join(filter(None, ways)) or "nothing"


def of_uninstall(runtime: Runtime, _: dict[str, Any]) -> str:
    return "nothing." if runtime.PROMPT_EVENT else "was not installed."


ABILITIES = (
    Ability(
        "read",
        "Its sessions are read, archived and searched.",
        lambda *_: "yes",
        "test_conformance.py test_codex_client.py test_opencode_client.py test_openclaw_client.py test_cline_client.py test_hermes_client.py",
    ),
    Ability(
        "told",
        "An agent gets updates with a prompt.",
        of_prompts,
        "test_other_runtimes.py test_all_pairs.py",
    ),
    Ability(
        "confirmed",
        "Its transcript shows which updates arrived.",
        of_confirmation,
        "test_conformance.py test_acknowledgement.py",
    ),
    Ability(
        "warned",
        "An agent hears of a collision with an edit or git command.",
        of_calls,
        "test_all_pairs.py test_tool_hook.py",
    ),
    Ability(
        "heard",
        "Agents of other runtimes hear of its edits.",
        lambda *_: "yes",
        "test_pairs_of_runtimes.py test_all_pairs.py",
    ),
    Ability(
        "sub-agents",
        "The actions of its sub-agents are read.",
        of_sub_agents,
        "test_conformance.py test_sub_agents_of_runtimes.py",
    ),
    Ability(
        "forks",
        "Copies of messages in forks do not count twice.",
        of_forks,
        "test_conformance.py",
    ),
    Ability(
        "restored",
        "A deleted session is put back as a file, or by the import of the runtime.",
        of_restore,
        "test_restore.py",
    ),
    Ability(
        "tools",
        "The ways to the agent's tools.",
        of_tools,
        "test_mcp.py test_tools_of_runtimes.py test_plugin_start.py",
    ),
    Ability(
        "installed by",
        "The ways to install the hooks.",
        of_install,
        "test_install_runtimes.py test_packages.py test_wheel.py test_templates.py",
    ),
    Ability(
        "uninstall",
        "What remains afterwards.",
        of_uninstall,
        "test_install_runtimes.py",
    ),
)


def as_table(*rows: list[str]) -> str:
    """Return rows as a table; the first is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *others))


def abilities_table() -> str:
    """Return a row for each runtime, with a column for each ability."""
    fixtures = ROOT / "tests" / "sessions" / "runtimes" / "fixtures"
    rows = []
    for runtime in all_runtimes():
        expected = json.loads((fixtures / runtime.name / "expected.json").read_text())
        cells = [ability.cell(runtime, expected) for ability in ABILITIES]
        rows.append([runtime.TITLE, *cells])
    return as_table(["Runtime", *[ability.name for ability in ABILITIES]], *rows)


def shown_by_table() -> str:
    """Return a row for each ability, with the tests that show it."""
    rows = [
        [
            ability.name,
            ability.meaning,
            ", ".join(f"`{test}`" for test in ability.tests.split()) + ".",
        ]
        for ability in ABILITIES
    ]
    return as_table(["Column", "Meaning", "Shown by"], *rows)


# the rows of README's table that are not of runtimes
OTHER_ROWS = (
    [
        "claude-agent-sdk",
        "by callbacks",
        "prompt, edit",
        "`python3 install.py new ~/my-agent --template agent-sdk`",
    ],
    ["any MCP client", "", "", "`session-memory mcp`"],
)
# as README names them, if not by their title
TITLES = {"atif": "any agent that writes ATIF into `~/.atif`"}


def readme_table() -> str:
    """Return a row for all runtimes that get the same, in the order of the first of them."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for runtime in all_runtimes():
        title = TITLES.get(runtime.name, runtime.TITLE)
        titles.setdefault(readme_cells(runtime), []).append(title)
    rows = [[", ".join(named), *cells] for cells, named in titles.items()]
    text = as_table(["", "updates", "collisions", "install"], *rows, *OTHER_ROWS)
    return text.replace("plugin", "[plugin](docs/use/packages.md)", 1)


def readme_cells(runtime: Runtime) -> tuple[str, ...]:
    edits = any(kind == "edit" for kind, _ in runtime.TOOLS.values())
    collisions = "prompt, edit, git" if edits else "prompt" if runtime.PROMPT_EVENT else "no"
    ways = of_install(runtime, {}).replace("install", "`install.py`", 1)
    return "yes" if runtime.PROMPT_EVENT else "read only", collisions, ways


def test_the_other_ways_are_of_runtimes_that_there_are() -> None:
    assert {*OTHER_INSTALLS, *OTHER_TOOLS} <= {runtime.name for runtime in all_runtimes()}


def test_every_ability_names_tests_that_there_are() -> None:
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [
        test for ability in ABILITIES for test in ability.tests.split() if test not in there
    ] == []


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("../../README.md", "runtimes"): readme_table,
    ("tools.md", "tools of every agent"): lambda: tools_table("everyone", "home", "graph", "team"),
    ("tools.md", "tools of a group"): lambda: tools_table("group"),
    ("tools.md", "tools of main"): lambda: tools_table("main"),
    ("runtimes.md", "runtimes"): runtimes_table,
    ("runtimes.md", "abilities"): abilities_table,
    ("runtimes.md", "shown by"): shown_by_table,
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
