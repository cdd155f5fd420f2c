"""The doors of a package: the names that others may import, and where a reader finds them.

Nobody outside a layer or an extra imports a module or a name that begins with an underscore. The
docstring of a package lists its public modules, a line each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_trees import tree_of
from test_house import MODULES, PACKAGE, ROOT, name_of, package_of

# The folder of a runtime has its class in `__init__.py`, as the table expects, so a runtime is one
# folder and one row.
FOLDERS_OF_RUNTIMES = tuple(
    f"sessions.runtimes.{path.parent.name}"
    for path in (PACKAGE / "sessions" / "runtimes").glob("*/__init__.py")
)
# Their modules are loaded by a table or by name: the docstring says so and lists none.
BY_TABLE = {
    "app.commands",
    "extras.page.views",
    "extras.host.channels",
    *FOLDERS_OF_RUNTIMES,
}
# It lists files that an install packs, of whichever layer; it imports none of them.
BUNDLE = PACKAGE / "awareness" / "events" / "bundle.py"
LISTED = re.compile(r"\n(\w+): \S.*")  # a line of the list: `name: what it gives`
PACKAGES = sorted(name for name, path in MODULES.items() if name and path.name == "__init__.py")
SOURCES = [
    path
    for part in ("session_memory", "bench", "hooks", "scripts")
    for path in sorted((ROOT / part).rglob("*.py"))
] + [ROOT / "install.py"]


def module_of(path: Path) -> str:
    """Return the name of a module of ours, without the package; '' for a file of another folder."""
    return name_of(path) if path.is_relative_to(PACKAGE) else ""


def imported(source: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that a file imports or names in a string, each with the name that it
    takes of it, or ''. An import for a type checker counts."""
    own = path.relative_to(PACKAGE).parts[:-1] if path.is_relative_to(PACKAGE) else ()
    tree = tree_of(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            above = own[: len(own) + 1 - node.level]
            base = ".".join(["session_memory", *above, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = re.split("[: ]", node.value) if "." in node.value else []
            if "session_memory." not in node.value:
                names = [f"session_memory.{name}" for name in names[:1]]
        else:
            continue
        for name in names:
            found = member_of(name.removesuffix("."))
            if found:
                yield found
        if isinstance(node, ast.ImportFrom):
            for alias, name in zip(node.names, names, strict=True):
                aliases[alias.asname or alias.name] = name.removeprefix("session_memory.")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = aliases.get(node.value.id, "")
            if module and module in MODULES:
                yield module, node.attr


def member_of(dotted: str) -> tuple[str, str] | None:
    """Return the module of ours that a dotted name leads to, and the next name in it."""
    first, _, module = dotted.partition(".")
    names: list[str] = []
    while first == "session_memory" and module and module not in MODULES:
        module, _, name = module.rpartition(".")
        names.insert(0, name)
    return (module, names[0] if names else "") if module and first == "session_memory" else None


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def intruders(source: str, path: Path) -> list[str]:
    """Return the private modules and names of other layers or extras that a file takes."""
    here = package_of(module_of(path))
    return [
        f"{path.relative_to(ROOT)}: {module} {name}"
        for module, name in imported(source, path)
        if package_of(module) != here and any(map(is_private, (*module.split("."), name)))
    ]


def test_nobody_outside_a_layer_or_an_extra_takes_what_is_private_to_it() -> None:
    sources = [path for path in SOURCES if path != BUNDLE]
    assert [name for path in sources for name in intruders(path.read_text(), path)] == []


@pytest.mark.parametrize(
    "source",
    [
        "from session_memory.sessions.runtimes import _mirrored",
        "from session_memory.sessions.runtimes._mirrored import MirroredSessions",
        "import session_memory.sessions.runtimes._mirrored",
        "from ..sessions.runtimes._mirrored import MirroredSessions",
        "from ..sessions.settings.homes import _read",
        "if TYPE_CHECKING:\n    from ..sessions.runtimes._mirrored import MirroredSessions",
        "def f():\n    from ..sessions.runtimes._mirrored import MirroredSessions",
        "from ..sessions.settings import homes\nhomes._read()",
        "load('sessions.runtimes._mirrored')",
        "load('session_memory.sessions.runtimes._mirrored:MirroredSessions')",
    ],
)
def test_an_intruder_would_be_found(source: str) -> None:
    assert intruders(source, PACKAGE / "history" / "costs.py")


def test_a_layer_takes_what_is_private_to_it() -> None:
    source = "from ..runtimes._mirrored import MirroredSessions"
    assert intruders(source, PACKAGE / "sessions" / "transcripts" / "log.py") == []


def listed(docstring: str) -> list[str]:
    """Return the modules that a docstring lists below its first line: `name: what it is for`."""
    return LISTED.findall(docstring)


def public_modules(package: str) -> list[str]:
    folder = MODULES[package].parent
    return sorted(
        path.stem
        for path in folder.iterdir()
        if not path.name.startswith((".", "_"))
        and not f"{package}.{path.name}".startswith(FOLDERS_OF_RUNTIMES)
        and (path.suffix == ".py" or (path / "__init__.py").exists())
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_its_public_modules(package: str) -> None:
    docstring = ast.get_docstring(tree_of(MODULES[package].read_text())) or ""
    assert len(LISTED.sub("", docstring).splitlines()) <= 12
    names = listed(docstring)
    if package in BY_TABLE:
        assert names == [], "a table or a name loads them"
    else:
        assert names == public_modules(package)


@pytest.mark.parametrize("package", sorted({*PACKAGES} - {*FOLDERS_OF_RUNTIMES}))
def test_a_package_imports_nothing(package: str) -> None:
    statements = tree_of(MODULES[package].read_text()).body[1:]
    assert statements == []
