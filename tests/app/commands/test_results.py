"""A command's result is a dataclass that gives both the text for people and the JSON."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from source_trees import tree_of

import session_memory
from session_memory.cli import COMMANDS
from session_memory.common.system.terminal import Result, Terminal
from session_memory.extension_points import COMMANDS as ROWS

PACKAGE = Path(session_memory.__file__).parent
PLACES = {name: place for rows in ROWS.values() for name, place in rows.items()}
# Modules that print and use JSON for something else.
WITH_JSON = {
    "app/commands/export.py": "JSON is a format of the export, which may be a file",
    "app/install/environment.py": "reads what pip prints",
    "app/install/example.py": "passes an example to the process that started it",
    "app/install/templates.py": "writes files of a home",
}
# Modules that may ask whether JSON was requested.
ASKING = {
    "app/commands/progress.py": "progress is for people",
    "app/commands/read.py": "JSON counts entries, text may count messages",
    "app/install/command.py": "an example is for people",
}
PRINTING = {"heading", "item", "line", "paragraph", "quote", "table", "verbatim"}
# Functions that print before they show their result, or instead.
PREVIEWING = {
    "app/commands/process.py:_work_off": "each piece of work as soon as it is done",
    "extras/proof/command.py:run": "only a picture, with --svg -",
    "extras/team/handing_over.py:hand_to_team": "the page, before the question",
}


@cache
def result_classes() -> list[type[Result]]:
    """All results of the package. Only a test asks: the modules of all extras import large
    packages."""
    for module in pkgutil.walk_packages([str(PACKAGE)], "session_memory."):
        if not module.name.startswith("session_memory.extras.conformance"):
            importlib.import_module(module.name)

    def below(parent: type[Result]) -> Iterator[type[Result]]:
        for child in parent.__subclasses__():
            yield child
            yield from below(child)

    return [one for one in below(Result) if one.__module__.startswith("session_memory.")]


def modules_that_print() -> list[Path]:
    """The modules of commands, and all others that have a terminal."""
    paths = [path for path in PACKAGE.rglob("*.py") if "templates" not in path.parts]
    return [
        path
        for path in sorted(paths)
        if path.parent == PACKAGE / "app/commands" or has_a_terminal(path.read_text())
    ]


def has_a_terminal(source: str) -> bool:
    """Check if a module imports one of these names."""
    return any(alias.name in ("Result", "Terminal") for alias in imported_names(source))


def imported_names(source: str) -> Iterator[ast.alias]:
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield from node.names


def hand_made_output(source: str) -> list[str]:
    """Return the places where a module prints something that is not a result: JSON, or by `print`."""
    ways = [alias.name for alias in imported_names(source) if alias.name in ("json", "dumps")]
    calls = [node.func for node in ast.walk(tree_of(source)) if isinstance(node, ast.Call)]
    ways += [func.id for func in calls if isinstance(func, ast.Name) and func.id == "print"]
    return ways


def asks_for_json(source: str) -> bool:
    """Check if a module asks whether JSON was requested."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "is_json"
        for node in ast.walk(tree_of(source))
    )


def functions_that_show_and_print(source: str) -> list[str]:
    """Return the functions that show a result and print lines that its JSON cannot have."""
    functions = [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.FunctionDef)]
    names = []
    for function in functions:
        called = {
            node.func.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value).endswith("terminal")
        }
        if "show" in called and called & PRINTING:
            names.append(function.name)
    return names


def test_a_command_prints_json_only_by_showing_a_result() -> None:
    sources = {
        path.relative_to(PACKAGE).as_posix(): path.read_text() for path in modules_that_print()
    }
    assert len(sources) > len(COMMANDS)
    for name in ("common/system/terminal.py", *WITH_JSON):
        sources.pop(name, None)
    assert {name: ways for name in sources if (ways := hand_made_output(sources[name]))} == {}
    assert [name for name in sources if asks_for_json(sources[name]) and name not in ASKING] == []
    shown = [
        f"{name}:{function}"
        for name, source in sources.items()
        for function in functions_that_show_and_print(source)
    ]
    assert [place for place in shown if place not in PREVIEWING] == []


def test_hand_made_output_is_noticed() -> None:
    assert hand_made_output("import json\nprint(json.dumps({}))") == ["json", "print"]
    assert asks_for_json("if terminal.is_json:\n    pass")
    source = "def run(terminal):\n    terminal.show(result)\n    terminal.line('and this')"
    assert functions_that_show_and_print(source) == ["run"]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_with_json_has_results(name: str) -> None:
    module = importlib.import_module(f"session_memory.{PLACES[name].partition(':')[0]}")
    source = inspect.getsource(module)
    if "export" in module.__name__ or not ("json" in source or "add_common" in source):
        return
    modules = {inspect.getmodule(value) for value in vars(module).values()} | {module}
    names = {found.__name__ for found in modules if found}
    assert any(result.__module__ in names for result in result_classes())


def test_a_result_is_a_dataclass_that_cannot_change_between_text_and_json() -> None:
    results = [result for result in result_classes() if not result.__subclasses__()]
    assert len(results) > len(COMMANDS)
    assert [result for result in results if result.show is Result.show] == []
    assert [result for result in results if not dataclasses.is_dataclass(result)] == []
    changing = [result for result in results if not result.__dataclass_params__.frozen]  # type: ignore[attr-defined]
    assert changing == []


def test_the_fields_of_a_result_are_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclasses.dataclass(frozen=True)
    class Counted(Result):
        files: int

        def show(self, terminal: Terminal) -> None:
            terminal.line(f"{self.files} files")

    Terminal({}).show(Counted(3))
    Terminal({}, is_json=True).show(Counted(3))
    assert capsys.readouterr().out == '3 files\n{\n  "files": 3\n}\n'
