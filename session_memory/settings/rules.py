"""The rules for sessions: what a person excludes, matched by patterns; where several fit, the strictest of each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Rule:
    """What may be told of a session: nothing at all (`ignore`), or only who, when and how much (`text` false). What is
    remembered of one that is `untrusted` is kept apart from the rest."""

    __slots__ = ("ignore", "text", "untrusted")

    def __init__(self, ignore: bool = False, text: bool = True, untrusted: bool = False) -> None:
        self.ignore = ignore
        self.text = text
        self.untrusted = untrusted


# What holds where somebody meant to exclude something and it is not clear how: it is hidden. It is not `untrusted`,
# since that decides where memories are kept, which mending the rule would not undo.
HIDDEN = {"ignore": True, "text": False}


def strictest(rules: Iterable[tuple[str, dict[str, bool]]], names: Iterable[str]) -> Rule:
    """The rule for a session known by any of `names`, where `rules` are patterns with the words of a rule each."""
    names = tuple(names)
    found = Rule()
    for pattern, rule in rules:
        if any(fits(pattern, name) for name in names):
            found.ignore = found.ignore or rule.get("ignore", False)
            found.text = found.text and rule.get("text", True)
            found.untrusted = found.untrusted or rule.get("untrusted", False)
    return found


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is `pattern`, or begins with it where it ends in `*`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
