"""Public functions: each has users outside its module, and rarely used names only decrease.

A function without an underscore at the top level of a public module is public. It is used if
another module imports it, a row of `extension_points` leads to it, or a program, a page or a script
names it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_trees import tree_of
from test_doors import SOURCES, imported, is_private, module_of
from test_house import LOOSE, MODULES, ROOT
from test_paths_in_strings import IMPORT, places_in, texts

from session_memory import extension_points

# Other programs import their functions: those of `LOOSE`, and a suite that is imported by `*`.
FOR_OTHER_PROGRAMS = (*sorted(LOOSE), "former_names", "extras.conformance.")
# Public functions with few users, by the packages that use them. May only fall.
HIGHEST = {"own package": 278, "one other package": 285}
HOOKS_MODULE = "awareness.events.main"  # its functions are named by the programs in hooks/
Name = tuple[str, str]


def functions_in(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions at the top level of a module."""
    for node in tree_of(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_private(node.name):
            yield node


def public_functions() -> Iterator[tuple[Name, str]]:
    """Yield the public functions of public modules, each with its docstring."""
    for module, path in MODULES.items():
        is_public = module and not any(map(is_private, module.split(".")))
        if is_public and not module.startswith(FOR_OTHER_PROGRAMS):
            for node in functions_in(path.read_text()):
                yield (module, node.name), ast.get_docstring(node) or ""


@cache
def users() -> dict[Name, set[str]]:
    """Return the packages that import each name, by module and name; '' if it is used by name."""
    packages: dict[Name, set[str]] = defaultdict(set)
    for path in SOURCES:
        user = module_of(path)
        for module, name in imported(path.read_text(), path):
            if module != user:
                packages[module, name].add(package_of_file(path))
    for name in named_elsewhere():
        packages[name].add("")
    return packages


def package_of_file(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[:-1])


def named_elsewhere() -> Iterator[Name]:
    """Yield the names that rows, programs in texts, hooks and command lines lead to."""
    yield from rows_of_functions()
    yield from rows_of_modules()
    for file, text in texts():
        for module, words in IMPORT.findall(text) if not file.startswith("tests/") else ():
            yield from ((module.partition(".")[2], word.strip()) for word in words.split(","))
    for path in sorted((ROOT / "hooks").glob("*.py")):
        yield from ((HOOKS_MODULE, name) for name in re.findall(r'run\("(\w+)"', path.read_text()))
    source = "".join(map(Path.read_text, SOURCES))
    for module, name in re.findall(r"\b(\w+)\.(\w+)\(", source):
        yield from ((dotted, name) for dotted in by_last_name()[module])
    for name in set(re.findall(r'getattr\(module, "(\w+)"', source)):
        yield from ((module, name) for module in MODULES)
    for module, path in MODULES.items():
        if "__main__" in path.read_text() or f'main_of("{module}"' in scripts():
            yield module, "main"


def rows() -> list[str]:
    """Return the places in all rows of `extension_points`."""
    kinds = [rows for kind, rows in vars(extension_points).items() if kind.isupper()]
    return [place for rows in kinds for place in places_in(rows)]


def rows_of_functions() -> Iterator[Name]:
    """Yield the attributes that rows name."""
    for place in rows():
        module, _, attribute = place.partition(":")
        if attribute:
            yield module, attribute


def rows_of_modules() -> Iterator[Name]:
    """Yield the functions of modules whose rows name no attribute, as its kind documents them."""
    for module in rows():
        if ":" not in module:
            yield from ((module, name) for name in names_of(module))


@cache
def by_last_name() -> dict[str, list[str]]:
    """Return the modules by the last part of their name."""
    modules: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        modules[module.rpartition(".")[2]].append(module)
    return modules


def names_of(module: str) -> list[str]:
    """Return the names of the public functions of a module."""
    return [node.name for node in functions_in(MODULES[module].read_text())]


@cache
def scripts() -> str:
    paths = [*sorted((ROOT / "scripts").glob("*.py")), ROOT / "install.py"]
    return "".join(path.read_text() for path in paths)


def test_a_public_function_is_used_outside_its_module() -> None:
    names = [name for name, _ in public_functions()]
    assert len(names) > 500
    assert [name for name in names if not users().get(name)] == [], "make it private"


def test_a_public_function_has_a_docstring() -> None:
    of_rows = {*rows_of_functions(), *rows_of_modules()}
    without = [name for name, docstring in public_functions() if not docstring]
    assert [name for name in without if name not in of_rows] == [], (
        "only the kind of a row explains"
    )


def test_functions_with_few_users_only_get_fewer() -> None:
    figures: dict[str, int] = dict.fromkeys(HIGHEST, 0)
    for name, _ in public_functions():
        others = users().get(name, set()) - {package_of_file(MODULES[name[0]])}
        if len(others) < 2 and "" not in others:
            figures["own package" if not others else "one other package"] += 1
    assert all(figures[kind] <= HIGHEST[kind] for kind in HIGHEST), figures
