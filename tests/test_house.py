"""The house rules: imports point down and are not circular, and names are unique.

The map has every package and its layer, and the page of commands has every command.
`.venv/bin/python tests/test_house.py` writes the table in docs/reference/commands.md.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from source_trees import tree_of

from session_memory.cli import COMMANDS, parser_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "session_memory"
MAP = ROOT / "docs" / "architecture.md"
COMMANDS_PAGE = ROOT / "docs" / "reference" / "commands.md"
TABLE_HEAD = "| Command | What it does |\n|---|---|\n"

# The lowest first. A package imports from those before it; an extra not from another extra.
LAYERS = (
    "common",
    "extension_points",
    "sessions",
    "awareness",
    "history",
    "memory",
    "app",
    "extras",
)
LOOSE = {"cli", "session_monitor", "agent_sdk"}  # they may import all; only entries import them
# Imports that break the rule, by the packages that they join. May only get shorter.
UPWARD: set[tuple[str, str]] = set()

# Rooms whose docstrings are in plain English: add a room once none of its docstrings begins with a
# clause.
PLAIN_ROOMS = tuple([layer for layer in LAYERS if (PACKAGE / layer).is_dir()])
CLAUSES = {
    "as",
    "how",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whoever",
    "whom",
    "whose",
    "why",
}


def name_of(path: Path) -> str:
    """The dotted name of a module, without that of the package: `store.search.query`; '' for the
    package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    return module.partition(".")[0]


def imports_in(source: str, path: Path) -> set[str]:
    """The modules of the package that `source`, which lies at `path`, imports, at its head or
    later. What only a type checker reads does not count, nor does the import of a package that a
    module lies in."""
    own = path.relative_to(PACKAGE).with_suffix("").parts if path.is_relative_to(PACKAGE) else ()
    found = set()
    for node in statements(tree_of(source)):
        if isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("session_memory").lstrip(".")
                for alias in node.names
                if is_ours(alias.name)
            }
        elif isinstance(node, ast.ImportFrom) and (node.level or is_ours(node.module or "")):
            above = list(own[: len(own) - node.level]) if node.level else []
            named = (
                (node.module or "").split(".") if node.level else (node.module or "").split(".")[1:]
            )
            base = ".".join([*above, *(part for part in named if part)])
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                found.add(inner if inner in MODULES else base)
    return {module for module in found if module and not ".".join(own).startswith(module + ".")}


def is_ours(module: str) -> bool:
    return module == "session_memory" or module.startswith("session_memory.")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a tree, at any depth, without the blocks that only a type checker reads."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, field, ()):
            if not (
                isinstance(node, ast.If)
                and isinstance(node.test, ast.Name)
                and node.test.id == "TYPE_CHECKING"
            ):
                yield node
                yield from statements(node)


@cache
def imports() -> dict[str, set[str]]:
    """Return what each module imports of the package."""
    return {name: imports_in(path.read_text(), path) - {name} for name, path in MODULES.items()}


def package_of(module: str) -> str:
    """The package of a module, with the extra's name for one of extras."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "extras" else 1])


def is_allowed(module: str, imported: str) -> bool:
    here, there = package_of(module), package_of(imported)
    top, other = here.partition(".")[0], there.partition(".")[0]
    if top in LOOSE or other in LOOSE or here == there:
        return top in LOOSE or here == there
    return top in LAYERS and other in LAYERS and LAYERS.index(other) < LAYERS.index(top)


def test_a_module_imports_only_from_packages_above_its_own() -> None:
    wrong = {
        (module, imported)
        for module in filter(None, MODULES)
        if module != "former_names"
        for imported in imports()[module]
        if not is_allowed(module, imported)
    }
    assert wrong == UPWARD, "add none; delete those that are mended"


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {name: set(imported) for name, imported in imports().items()}
    while free := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in free:
            del left[name]
    assert left == {}


def test_an_import_that_points_up_would_be_found() -> None:
    path = PACKAGE / "common" / "text" / "format.py"
    assert imports_in("from ...awareness.events import prompt", path) == {"awareness.events.prompt"}
    assert imports_in("def f():\n    from ...sessions.settings.homes import Home", path) == {
        "sessions.settings.homes"
    }
    assert imports_in("import session_memory.app.install.program", path) == {"app.install.program"}
    assert imports_in("from session_memory import cli", ROOT / "hooks" / "x.py") == {"cli"}
    assert imports_in("if TYPE_CHECKING:\n    from ... import cli", path) == set()


def test_the_installer_knows_a_runtime_by_what_all_of_them_offer() -> None:
    folders = tuple(
        [
            f"sessions.runtimes.{path.parent.name}."
            for path in (PACKAGE / "sessions" / "runtimes").glob("*/__init__.py")
        ]
    )
    assert len(folders) > 1
    named = [
        (module, one)
        for module, imported in imports().items()
        for one in imported
        if module.startswith("app.install.") and one.startswith(folders)
    ]
    assert named == []


def test_no_class_name_occurs_twice() -> None:
    places = defaultdict(list)
    for name, path in MODULES.items():
        for node in tree_of(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("room", PLAIN_ROOMS)
def test_no_docstring_of_a_plain_room_begins_with_a_clause(room: str) -> None:
    paths = sorted((PACKAGE / room).rglob("*.py"))
    assert paths, "the room is gone"
    assert not [f"{path}:{line}" for path in paths for line in clauses_in(path.read_text())]


def test_a_docstring_that_begins_with_a_clause_would_be_found() -> None:
    assert list(clauses_in('def is_old():\n    """Whether it is old."""\n')) == [1]
    assert not list(clauses_in('def is_old():\n    """Return whether it is old."""\n'))


def clauses_in(source: str) -> Iterator[int]:
    """Yield the lines of the definitions whose docstring begins with a subordinate clause."""
    tree = tree_of(source)
    for node in (tree, *statements(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0].strip(",.:").lower() in CLAUSES:
                yield getattr(node, "lineno", 1)


def test_the_map_shows_every_room_and_none_that_is_gone() -> None:
    tree = MAP.read_text().partition("```\n")[2].partition("```")[0]
    shown = re.findall(r"(\w+)/", tree)
    rooms = [path.parent.name for path in PACKAGE.rglob("__init__.py")]
    assert sorted(shown) == sorted(rooms)


def test_the_map_shows_the_layers_as_they_are() -> None:
    lines = re.findall(
        r"^\d+\. (.*)$",
        MAP.read_text().partition("## Layers")[2].partition("\n## ")[0],
        re.MULTILINE,
    )
    assert [re.findall(r"`(\w+)`", line) for line in lines] == [[name] for name in LAYERS]


def test_every_file_that_the_map_names_is_there() -> None:
    named = re.findall(r"`(\w+/[\w/]+\.py)`", MAP.read_text())
    assert named
    missing = [
        name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()
    ]
    assert missing == []


def test_the_map_fits_two_screens() -> None:
    assert MAP.read_text().count("\n") <= 150


def test_a_process_that_a_test_starts_with_an_environment_gets_a_home() -> None:
    """Without one Python takes the real one, and a hook writes into it."""
    without = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(tree_of(source)) if "env={" in source else ():
            if (
                isinstance(node, ast.keyword)
                and node.arg == "env"
                and isinstance(node.value, ast.Dict)
            ):
                names = {
                    key.value if isinstance(key, ast.Constant) else None for key in node.value.keys
                }
                if not names & {"HOME", "SESSION_MEMORY_DIR", None}:
                    without.append(f"{path.relative_to(ROOT)}:{node.value.lineno}")
    assert without == []


def test_every_command_stands_in_the_documentation_with_what_it_does() -> None:
    assert command_table() in COMMANDS_PAGE.read_text(), (
        f"run .venv/bin/python {Path(__file__).relative_to(ROOT)}"
    )


def command_table() -> str:
    """A row for each command, as docs/reference/commands.md shows them."""
    return (
        TABLE_HEAD
        + "".join([f"| `{name}` | {parser_of(name).description} |\n" for name in COMMANDS])
        + "\n"
    )


def write_command_table() -> None:
    """Write the table of commands into docs/reference/commands.md."""
    before, _, rest = COMMANDS_PAGE.read_text().partition(TABLE_HEAD)
    COMMANDS_PAGE.write_text(before + command_table() + rest.partition("\n\n")[2])


ENTRIES = [
    path
    for path in (*ROOT.glob("hooks/*.py"), *ROOT.glob("scripts/*.py"))
    if path.name != "old_python.py"
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_imports_one_module(entry: Path) -> None:
    imported = imports_in(entry.read_text(), entry)
    assert len(imported) == (0 if "from entry import run" in entry.read_text() else 1)
    through = {"common.system.terminal"}  # whose main_of imports the rest
    assert {room_of(one) for one in imported - through} <= {"awareness", "app", "cli"}


if __name__ == "__main__":
    write_command_table()
