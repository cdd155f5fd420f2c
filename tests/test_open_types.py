"""Open types are not allowed in packages that keep state.

A record of a runtime is an open dictionary; our own state is a class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_trees import tree_of

PACKAGE = Path(__file__).resolve().parents[1] / "session_memory"
CONVERTERS = ("load", "dump")
DECODERS = "sessions/runtimes/"  # of a runtime's records, events and settings
# How many are left. Only fewer.
MOST = {
    "awareness/activity": 0,
    "awareness/events": 0,
    "sessions/settings": 0,
    "sessions/transcripts": 0,
}


def open_types(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each function or attribute whose annotation has `Any`, except in
    functions that convert a class to its kept form and back."""
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            kinds = [
                one.annotation for one in (*arguments, node.args.vararg, node.args.kwarg) if one
            ]
            if node.name.lstrip("_") not in CONVERTERS and any(
                map(_is_open, [*kinds, node.returns])
            ):
                yield node.lineno, node.name
        elif isinstance(node, ast.AnnAssign) and _is_open(node.annotation):
            yield node.lineno, ast.unparse(node.target)


def _is_open(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation)
    )


def test_functions_and_attributes_that_are_open_are_found() -> None:
    source = """
class Kept:
    parts: dict[str, Any]
    def load(self, kept: dict[str, Any]) -> None: ...
    def take(self, kept: dict[str, Any]) -> None: ...
    def give(self) -> Mapping[str, Any]: ...
    def typed(self, names: list[str]) -> dict[str, object]: ...
"""
    assert [name for _, name in open_types(source)] == ["parts", "take", "give"]


@pytest.mark.parametrize("package", MOST)
def test_a_package_has_no_more_open_types(package: str) -> None:
    found = [
        f"{name}:{line} {what}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith(DECODERS)
        for line, what in open_types(path.read_text())
    ]
    assert len(found) <= MOST[package], "\n".join(found)
