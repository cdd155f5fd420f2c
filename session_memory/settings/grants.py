"""Keeps an agent home's own file from setting what is read beyond the home, what is sent and what is spent.

A repository or an agent can write that file. So these keys count from the person's file, which may let a home's own
file set them: `homes: {~/agents/anna: [team]}`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .rules import PatternRule
from .sections import BUILT_IN_STRATEGIES

WATCH_PATH, TEAM, KEEP = "watch_path", "team", "keep"  # what may be granted, beside the ids of strategies
FREE_STRATEGY = "extractive"  # the one that asks no model


def homes_in(values: Mapping[str, Any], user_dir: str) -> dict[str, tuple[str, ...]]:
    """Return the homes that the person's settings list, by path, with what each is granted."""
    listed = values.get("homes") or {}
    homes = listed if isinstance(listed, dict) else dict.fromkeys(listed, ())
    return {_expanded(home, user_dir): tuple(grants or ()) for home, grants in homes.items()}


def granted(values: Mapping[str, Any], root: str, user_dir: str) -> tuple[str, ...]:
    """Return what the person's settings grant the home at `root`."""
    real = os.path.realpath(root)
    return next((had for home, had in homes_in(values, user_dir).items() if os.path.realpath(home) == real), ())


def confine(
    values: dict[str, Any], rules: Iterable[PatternRule], root: str, grants: Collection[str], user_dir: str
) -> Iterator[tuple[str, str]]:
    """Take out of a home's settings and rules what it may not set; yield the key and the missing grant of each."""
    store, memories = values.get("store", {}), values.get("memories", {})
    if WATCH_PATH not in grants and store.get(WATCH_PATH):
        paths = store[WATCH_PATH] if isinstance(store[WATCH_PATH], list) else [store[WATCH_PATH]]
        inside = [path for path in paths if is_inside(_expanded(path, user_dir), root)]
        if inside != paths:
            store[WATCH_PATH] = inside or None
            yield "store.watch_path", WATCH_PATH
    if TEAM not in grants:
        if values.pop("team", {}).get("url"):
            yield "team.url", TEAM
        for rule in [rule for _, rule in rules if rule.get("share") == TEAM]:
            del rule["share"]
    for key in ("keep", "keep_bytes"):
        if KEEP not in grants and values.pop(key, None) is not None:
            yield key, KEEP
    chosen = memories.get("strategies", [])
    for strategy in dict.fromkeys([*chosen, *BUILT_IN_STRATEGIES]):
        if strategy not in (FREE_STRATEGY, *grants):
            if strategy in chosen:
                memories["strategies"] = [one for one in memories["strategies"] if one != strategy] or [FREE_STRATEGY]
            if memories.pop(strategy, None) or strategy in chosen:
                yield "memories.strategies" if strategy in chosen else f"memories.{strategy}", strategy
    if values.pop("homes", None):
        yield "homes", ""


def is_inside(path: str, root: str) -> bool:
    """Return True if `path` leads to `root` or below it, whatever symlinks are on the way."""
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return real == real_root or real.startswith(real_root + os.sep)


def _expanded(path: str, user_dir: str) -> str:
    return os.path.normpath(user_dir + path[1:] if path == "~" or path.startswith("~/") else path)
