"""Shared by all processes of a run: the share of long tests (all with `--all`), and a directory."""

from __future__ import annotations

DIRECTORY = "SESSION_MEMORY_TESTS_DIRECTORY"  # the variable that names it
seed = 0  # of what is drawn at random; conftest.py sets it to the time with `--fuzz`
is_all = False  # conftest.py sets it before it imports a test


def some(count: int, sample: int | None = None) -> int:
    """Return how many of `count` attempts to make: without `--all` the number `sample`, or a fifth."""
    return count if is_all else -(-count // 5) if sample is None else sample
