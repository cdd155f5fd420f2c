"""The tables in docs/reference follow from the tables in the code.

`.venv/bin/python tests/test_reference.py` writes those of tools and runtimes; tests/test_house.py
writes the commands, `python -m session_memory.sessions.settings.keys` the settings.
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
    """A row of the table of abilities: its cell for a runtime, and the tests that show it."""

    name: str
    cell: Callable[[Runtime, dict[str, Any]], str]
    tests: str


# ways other than `install`, by the names of runtimes
OTHER_INSTALLS = {
    "claude-code": "plugin",
    "pi": "package, template",
    "codex": "plugin",
    "qwen-code": "extension",
    "copilot": "plugin",
    "opencode": "plugin file",
}
OTHER_TOOLS = {
    "claude-code": "plugin, by hand",
    "pi": "commands",
    "copilot": "plugin",
    "atif": "by hand",
}
DECLARED = (ROOT / "hooks" / "hooks.json").read_text()


def of_prompts(runtime: Runtime, _: dict[str, Any]) -> str:
    return "yes" if runtime.PROMPT_EVENT else "no: it has no hooks."


def of_calls(runtime: Runtime, expected: dict[str, Any]) -> str:
    kinds = {kind for _, kind, _ in expected["calls"]}
    assert kinds in ({"edit", "command"}, set())
    if not runtime.PROMPT_EVENT:
        return "no: it has no hooks."
    return "yes" if kinds else "no: a hook's text does not reach the agent."


def of_confirmation(runtime: Runtime, _: dict[str, Any]) -> str:
    return "yes" if runtime.SHOWS_WHAT_WAS_TOLD else "no"


def of_forks(_: Runtime, expected: dict[str, Any]) -> str:
    return "left out" if expected.get("fork_copies", True) else "none"


def of_restore(runtime: Runtime, _: dict[str, Any]) -> str:
    return "by its own import" if runtime.backup.IS_PUT_BACK else "as a file"


def of_tools(runtime: Runtime, _: dict[str, Any]) -> str:
    ways = ("install" if runtime.install.MCP_KEY else "", OTHER_TOOLS.get(runtime.name, ""))
    return ", ".join(filter(None, ways))


def of_install(runtime: Runtime, _: dict[str, Any]) -> str:
    install = runtime.install
    wanted = install.wanted_hooks(DECLARED, "", "") or install.wanted_files(DECLARED, "", "")
    ways = ("install" if wanted else "", OTHER_INSTALLS.get(runtime.name, ""))
    return ", ".join(filter(None, ways)) or "nothing"


def of_uninstall(runtime: Runtime, _: dict[str, Any]) -> str:
    return "leaves no trace" if runtime.PROMPT_EVENT else "nothing is installed"


ABILITIES = (
    Ability(
        "read, archived, searched",
        lambda *_: "yes",
        "test_conformance.py test_codex_client.py test_opencode_client.py",
    ),
    Ability("told with a prompt", of_prompts, "test_other_runtimes.py test_all_pairs.py"),
    Ability(
        "its transcript shows which updates arrived",
        of_confirmation,
        "test_conformance.py test_acknowledgement.py",
    ),
    Ability("warned with an edit or git command", of_calls, "test_all_pairs.py test_tool_hook.py"),
    Ability(
        "others hear of its edits",
        lambda *_: "yes",
        "test_pairs_of_runtimes.py test_all_pairs.py",
    ),
    Ability(
        "sub-agents' actions are read",
        lambda runtime, expected: "yes" if expected["subagent"] else "no: it records none.",
        "test_conformance.py test_sub_agents_of_runtimes.py",
    ),
    Ability("copies in forks", of_forks, "test_conformance.py"),
    Ability("restored", of_restore, "test_restore.py"),
    Ability(
        "tools by",
        of_tools,
        "test_mcp.py test_tools_of_runtimes.py test_plugin_start.py",
    ),
    Ability(
        "installed by",
        of_install,
        "test_install_runtimes.py test_packages.py test_wheel.py test_templates.py",
    ),
    Ability("uninstall", of_uninstall, "test_install_runtimes.py"),
)


def abilities_table() -> str:
    """Return a row for each ability, with a column for each runtime and one for the tests."""
    runtimes = all_runtimes()
    fixtures = ROOT / "tests" / "sessions" / "runtimes" / "fixtures"
    expected = {
        runtime.name: json.loads((fixtures / runtime.name / "expected.json").read_text())
        for runtime in runtimes
    }
    head = ["", *[runtime.TITLE for runtime in runtimes], "Shown by"]
    rows = [
        [
            ability.name,
            *[ability.cell(runtime, expected[runtime.name]) for runtime in runtimes],
            ", ".join(f"`{test}`" for test in ability.tests.split()) + ".",
        ]
        for ability in ABILITIES
    ]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)
    ).replace("|  |", "| |")


def test_the_other_ways_are_of_runtimes_that_there_are() -> None:
    assert {*OTHER_INSTALLS, *OTHER_TOOLS} <= {runtime.name for runtime in all_runtimes()}


def test_every_ability_names_tests_that_there_are() -> None:
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [
        test for ability in ABILITIES for test in ability.tests.split() if test not in there
    ] == []


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("tools.md", "tools of every agent"): lambda: tools_table("everyone", "home", "graph", "team"),
    ("tools.md", "tools of a group"): lambda: tools_table("group"),
    ("tools.md", "tools of main"): lambda: tools_table("main"),
    ("runtimes.md", "runtimes"): runtimes_table,
    ("runtimes.md", "abilities"): abilities_table,
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
