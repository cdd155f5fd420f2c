"""The line about a conflict can be understood alone: both sides, when, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from session_memory.awareness.activity.conflicts import KeptConflict

NOW = 1_760_000_000.0
LINES = [[45, 60], [40, 52]]
NONE = [[0, 0], [0, 0]]
PIP = 'by "Two slots" (Codex, branch fix)'


def kept(**values: Any) -> KeptConflict:
    """Return a conflict from the form in which upkeep keeps it."""
    conflict = {
        "path": "cart.ts",
        "lines": LINES,
        "deleted_by": None,
        "at": NOW - 7200,
        "name": '"Two slots"',
        "runtime": "Codex",
        "branch": "fix",
        "commits": 0,
    }
    return KeptConflict.load({**conflict, **values})


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, f"your lines 45-60 conflict with lines 40-52 changed 2h ago {PIP}"),
        ({"lines": [[9, 9], [4, 4]]}, f"your line 9 conflicts with line 4 changed 2h ago {PIP}"),
        (
            {"is_certain": False, "lines": [[9, 9], [4, 5]]},
            f"your line 9 may conflict with lines 4-5 changed 2h ago {PIP}",
        ),
        ({"lines": NONE}, f"your change conflicts with a change made 2h ago {PIP}"),
        ({"deleted_by": 0}, f"your deletion conflicts with the edit made 2h ago {PIP}"),
        ({"deleted_by": 1}, f"your edit conflicts with the deletion made 2h ago {PIP}"),
        (
            {"name": ""},
            "your lines 45-60 conflict with lines 40-52 changed 2h ago on branch fix",
        ),
        (
            {"name": "", "branch": "", "lines": NONE},
            "your change conflicts with a change made 2h ago in another worktree",
        ),
        (
            {"commits": 1, "branch": "main"},
            "main has a newer commit that changes files you edited; your branch lacks it",
        ),
        (
            {"commits": 3, "branch": "main"},
            "main has 3 newer commits that change files you edited; your branch lacks them",
        ),
    ],
)
def test_the_line_names_both_sides(values: dict[str, Any], line: str) -> None:
    assert kept(**values).line(NOW) == f"! cart.ts: {line}"


def test_a_conflict_survives_being_kept() -> None:
    conflict = kept(hunks=[LINES, NONE], sessions=["a", "b"], file="/srv/cart.ts", key="1")
    assert KeptConflict.load(conflict.dump()).dump() == conflict.dump()


def test_a_conflict_that_a_later_version_kept_is_read() -> None:
    later = {**kept().dump(), "certainty": 0.9}
    assert KeptConflict.load(later).dump() == kept().dump()
