"""Files that a call looked for in the wrong place."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SHARED = 3  # parts at the end of two paths, the name among them


def plausible(path: str, known: Iterable[str]) -> str:
    """Return the one of the `known` paths that is meant by a `path` at which there is no file: it has the same name,
    and either all its directories in the same order with others between them, or the same last two. '' if none or
    several do."""
    parts = path.split("/")
    found = {one for one in known if one.endswith(f"/{parts[-1]}") and one != path and _is_meant(parts, one.split("/"))}
    return found.pop() if len(found) == 1 else ""


def _is_meant(parts: list[str], others: list[str]) -> bool:
    if parts[-_SHARED:] == others[-_SHARED:] and len(parts) >= _SHARED:
        return True
    rest = iter(others)
    return all([part in rest for part in parts])
