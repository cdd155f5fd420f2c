"""The kinds of events that a reader wants, which each decoder asks by name."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest
from source_trees import tree_of

from session_memory.sessions.runtimes.records import (
    CALLS,
    INJECTED,
    LINKS,
    MESSAGES,
    RESULTS,
    SUB_AGENTS,
    TURNS,
    USAGE,
    Wanted,
)

KINDS = (MESSAGES, CALLS, RESULTS, INJECTED, LINKS, TURNS, USAGE, SUB_AGENTS)
ALL = {name for name, value in vars(Wanted).items() if value is False}
RUNTIMES = Path(__file__).resolve().parents[3] / "session_memory" / "sessions" / "runtimes"


def names(wanted: Wanted) -> set[str]:
    return {name for name in ALL if getattr(wanted, name)}


def test_each_constant_wants_a_kind_of_its_own() -> None:
    assert [len(names(kind)) for kind in KINDS] == [1] * len(KINDS)
    assert set().union(*map(names, KINDS)) == ALL


@pytest.mark.parametrize(("first", "second"), [*product(KINDS, KINDS)])
def test_two_wanted_together_are_the_kinds_of_both_and_leave_each_as_it_is(
    first: Wanted, second: Wanted
) -> None:
    before = names(first), names(second)
    assert names(first | second) == before[0] | before[1]
    assert (names(first), names(second)) == before


def test_no_decoder_computes_with_bits() -> None:
    for path in RUNTIMES.glob("*/records.py"):
        computed = [
            node
            for node in ast.walk(tree_of(path.read_text()))
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)
        ]
        assert not [node for node in computed if "wanted" in ast.unparse(node)], path
