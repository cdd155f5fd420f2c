"""The syntax trees of sources: tests that read all modules parse each once in a process."""

from __future__ import annotations

import ast
from functools import cache


@cache
def tree_of(source: str) -> ast.Module:
    """Return the tree of a source. All callers share it, so nobody may change it."""
    return ast.parse(source)
