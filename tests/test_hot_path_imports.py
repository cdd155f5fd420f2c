"""What a prompt loads, and which way imports point: what the hook's speed and the house's order hang on."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import append, exchange
from plain_user import PlainUser

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "session_memory"
HOOK = ROOT / "hooks" / "user_prompt_submit.py"

# Every prompt pays for these, about a hundredth of a bare interpreter each. One more needs a good reason.
EVERY_PROMPT = {
    "__future__", "_json", "fcntl",
    "session_memory", "session_memory.awareness", "session_memory.cursors", "session_memory.entries",
    "session_memory.errors", "session_memory.fastjson", "session_memory.files", "session_memory.home",
    "session_memory.hook", "session_memory.names", "session_memory.runtimes", "session_memory.runtimes.claude",
    "session_memory.settings", "session_memory.timestamps",
}  # fmt: skip
# Those with something to tell pay for these too.
SOMETHING_NEW = {
    "session_memory.entry_reader", "session_memory.identity", "session_memory.news", "session_memory.sanitize",
    "session_memory.secrets", "session_memory.secrets._literals",
    "session_memory.summary", "session_memory.tail", "session_memory.telling", "session_memory.text",
}  # fmt: skip

# From the edges down. What a layer holds may import from its own layer and from those below it. A folder stands for all
# that is in it.
LAYERS = {
    "edges": {
        "agent_sdk", "archive_hooks", "cli", "commands", "finding", "hook", "host", "memory_folders", "memory_search",
        "pi_to_claude", "plugin_start", "reader", "session_monitor", "setup", "store_place", "tools",
    },
    "home": {"home"},
    "use cases": {
        "archive", "archive_writing", "awareness", "conversations", "memories", "news", "pointers", "prompt_memories",
        "store", "telling", "transcript", "transcript_log",
    },
    "runtimes and files": {
        "config", "cursors", "database", "entry_reader", "files", "identity", "inside", "runtimes", "settings",
        "tail",
    },
    "pure": {
        "__init__", "answering", "archive_text", "entries", "errors", "failures", "fastjson", "markdown",
        "memories_section", "named_tuple", "names", "patterns", "plugin_data", "sanitize", "secrets", "shell_commands", "summary",
        "text", "timestamps",
    },
}  # fmt: skip


class TestHotPath:
    def test_a_prompt_with_nothing_new_loads_these_modules_and_no_others(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        an_hour_ago = time.time() - 3600  # what was written just now would be looked at once more
        os.utime(path, (an_hour_ago, an_hour_ago))
        plain.run()
        output, loaded = run_hook(plain)
        assert output == b""
        assert loaded == not_built_in(EVERY_PROMPT)

    def test_a_prompt_with_something_new_loads_these_modules_and_no_others(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        plain.run()
        append(path, *exchange("how is it going?", "Fine."))
        output, loaded = run_hook(plain)
        assert b"how is it going?" in output
        assert loaded == not_built_in(EVERY_PROMPT | SOMETHING_NEW)

    def test_the_first_prompt_ever_loads_no_more_than_any_with_something_new(self, plain):
        plain.session(*exchange("hello", "hi"))
        output, loaded = run_hook(plain)
        assert b"hello" in output
        assert loaded == not_built_in(EVERY_PROMPT | SOMETHING_NEW)


class TestDirection:
    def test_every_module_has_a_layer(self):
        known = set().union(*LAYERS.values())
        for name in {unit_of(path) for path in modules()}:
            assert name in known, (
                f"session_memory/{name} is in no layer: add it to LAYERS in {Path(__file__).name}, "
                "as far down as what it imports allows"
            )

    def test_no_layer_names_a_module_that_is_not_there(self):
        assert set().union(*LAYERS.values()) == {unit_of(path) for path in modules()}

    def test_imports_point_down(self):
        order = list(LAYERS)
        for path in modules():
            own = layer_of(unit_of(path))
            for imported in imports_of(path):
                assert order.index(layer_of(imported)) >= order.index(own), (
                    f"{path.relative_to(ROOT)} ({own}) imports {imported} ({layer_of(imported)}): imports point from "
                    f"{', then '.join(order)}"
                )

    def test_only_edges_import_home(self):
        importers = {unit_of(path) for path in modules() if "home" in imports_of(path)}
        assert importers <= LAYERS["edges"], "paths and environment come down as arguments"

    @pytest.mark.parametrize(
        "entry", [*ROOT.glob("hooks/*.py"), *ROOT.glob("scripts/*.py")], ids=lambda path: path.stem
    )
    def test_entries_import_nothing_but_an_edge(self, entry):
        imported = imports_of(entry)
        assert imported
        assert imported <= LAYERS["edges"]

    def test_an_import_that_points_up_would_be_found(self):
        assert imports_in("from . import hook", PACKAGE / "text.py") == {"hook"}
        assert imports_in("def f():\n    from ..home import Home", PACKAGE / "runtimes" / "pi.py") == {"home"}
        assert imports_in("import session_memory.setup.places", PACKAGE / "text.py") == {"setup"}
        assert imports_in("from session_memory import cli", ROOT / "hooks" / "x.py") == {"cli"}
        assert imports_in("if TYPE_CHECKING:\n    from .hook import Place", PACKAGE / "text.py") == set()


def run_hook(plain: PlainUser) -> tuple[bytes, set[str]]:
    """What the hook prints, and the modules that it loads beyond those of an interpreter that does nothing."""
    output, loaded = run_python([str(HOOK)], plain)
    return output, not_built_in(loaded - run_python(["-c", "pass"], plain)[1])


def not_built_in(names: set[str]) -> set[str]:
    """`names` without the modules in the interpreter's own file: they take no time, and each system has others."""
    return names - set(sys.builtin_module_names)


def run_python(arguments: list[str], plain: PlainUser) -> tuple[bytes, set[str]]:
    """What a program prints, and the modules that it loads, by what `-X importtime` reports."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", *arguments]
    event = json.dumps(plain.event()).encode()
    done = subprocess.run(command, input=event, capture_output=True, env={"HOME": str(plain.root)}, check=True)
    return done.stdout, set(re.findall(r"^import time: .*\| +(\S+)$", done.stderr.decode(), re.MULTILINE))


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit_of(path: Path) -> str:
    """What stands in LAYERS for a module of the package: the folder that it lies in, else its own name."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def layer_of(unit: str) -> str:
    return next((layer for layer, units in LAYERS.items() if unit in units), "no layer")


def imports_of(path: Path) -> set[str]:
    """The other units that a module imports, at its head or later; what only a type checker reads does not count."""
    return imports_in(path.read_text(), path) - ({unit_of(path)} if path.is_relative_to(PACKAGE) else set())


def imports_in(source: str, path: Path) -> set[str]:
    found = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {unit for alias in node.names for unit in units_of(alias.name.split("."), [])}
        elif isinstance(node, ast.ImportFrom):
            package = ["session_memory", *path.parent.relative_to(PACKAGE).parts] if node.level else []
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            found |= units_of(base, [alias.name for alias in node.names])
    return found


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree without the blocks that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            yield from statements(node)


def units_of(module: list[str], names: list[str]) -> set[str]:
    """The units behind an import of `names` from a dotted `module`; none where that is not of this package."""
    if module[:1] != ["session_memory"]:
        return set()
    if len(module) > 1:
        return {module[1]}
    here = {unit_of(path) for path in modules()}
    return {name if name in here else "__init__" for name in names}
