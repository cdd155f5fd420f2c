"""The rules of a person: what they exclude of sessions and projects. Where several fit, the strictest of each word."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    PatternRule = tuple[str, dict[str, Any]]  # a pattern with the words of its rule


class Rule:
    """What may be told of a session: nothing at all (`ignore`), or only who, when and how much (`text` false). What is
    remembered of one that is `untrusted` is kept apart from the rest. `share` is one of SHARES, '' where no rule says
    who of a team may read it."""

    __slots__ = ("ignore", "share", "text", "untrusted")

    def __init__(self, ignore: bool = False, text: bool = True, untrusted: bool = False, share: str = "") -> None:
        self.ignore = ignore
        self.text = text
        self.untrusted = untrusted
        self.share = share

    @property
    def is_private(self) -> bool:
        """Whether nothing of what was said may be told."""
        return self.ignore or not self.text


# Who of a team may read a session, the strictest first: nobody, its owner on all their machines, everybody.
SHARES = ("off", "mine", "team")

# What holds where somebody meant to exclude something and it is not clear how: it is hidden. It is not `untrusted`,
# since that decides where memories are kept, which mending the rule would not undo.
HIDDEN = {"ignore": True, "text": False}


def strictest(rules: Iterable[PatternRule], names: Iterable[str]) -> Rule:
    """The rule for a session known by any of `names`."""
    names = tuple(names)
    return _joined([rule for pattern, rule in rules if any(fits(pattern, name) for name in names)])


def strictest_in(projects: Iterable[PatternRule], directories: Iterable[str]) -> Rule:
    """The rule for what is done in a directory, of which `directories` are the spellings."""
    directories = tuple(directories)
    return _joined([rule for pattern, rule in projects if any(covers(pattern, one) for one in directories)])


def stricter(one: Rule, other: Rule) -> Rule:
    """Both rules at once."""
    share = _stricter_share(one.share, other.share)
    return Rule(one.ignore or other.ignore, one.text and other.text, one.untrusted or other.untrusted, share)


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is `pattern`, or begins with it where it ends in `*`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def covers(pattern: str, directory: str) -> bool:
    """Whether `directory` is `pattern` or lies below it; where that ends in `*`, whether it begins so. A pattern that
    does not begin at the root may begin at any step of the path."""
    path = directory.replace("\\", "/").rstrip("/") + "/"
    start = pattern[:-1] if pattern.endswith("*") else pattern.rstrip("/") + "/"
    if start[:1] == "/" or start[1:2] == ":" or not start:
        return path.startswith(start)
    return f"/{start}" in f"/{path}"


def _joined(rules: Iterable[dict[str, Any]]) -> Rule:
    found = Rule()
    for rule in rules:
        found.ignore = found.ignore or rule.get("ignore", False)
        found.text = found.text and rule.get("text", True)
        found.untrusted = found.untrusted or rule.get("untrusted", False)
        found.share = _stricter_share(found.share, rule.get("share", ""))
    return found


def _stricter_share(one: str, other: str) -> str:
    return min(one, other, key=SHARES.index) if one and other else one or other
