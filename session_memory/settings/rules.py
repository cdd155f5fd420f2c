"""The rules for sessions: what a person excludes, matched by patterns; where several fit, the strictest of each."""

from __future__ import annotations

from .compiled import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# What holds where somebody meant to exclude something and it is not clear how: it is hidden. It is not `untrusted`,
# since that decides where memories are kept, which mending the rule would not undo.
HIDDEN = {"ignore": True, "text": False}


def strictest(rules: Iterable[tuple[str, Rule]], names: Iterable[str]) -> Rule:
    """The rule for a session known by any of `names`, where `rules` are patterns with a rule each."""
    names = tuple(names)
    found = Rule()
    for pattern, rule in rules:
        if any(fits(pattern, name) for name in names):
            found.ignore = found.ignore or rule.ignore
            found.text = found.text and rule.text
            found.untrusted = found.untrusted or rule.untrusted
    return found


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is `pattern`, or begins with it where it ends in `*`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
