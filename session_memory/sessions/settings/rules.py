"""The privacy rules of a person, which exclude sessions and projects.

Each keyword is decided on its own. Of one file's rules for projects, the most specific one that
has the keyword decides; otherwise, and across files, the strictest value applies."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.system.files import os

RuleWords = dict[str, "bool | str"]  # the words of a rule, such as {"ignore": True}
PatternRule = tuple[str, RuleWords]  # a pattern with the words of its rule
Rank = tuple[int, bool, int]  # of a pattern that fits a directory


class Rule:
    """The visibility of a session: hidden, without its text, or full.

    `ignore` hides it; with `quote` false only who, when and how much is shown. With
    `isolate_memories`, its memories are kept apart from all others. `share` is one of SHARES, or ''
    if no rule says who in a team may read it."""

    def __init__(
        self,
        ignore: bool = False,
        quote: bool = True,
        isolate_memories: bool = False,
        share: str = "",
    ) -> None:
        self.ignore = ignore
        self.quote = quote
        self.isolate_memories = isolate_memories
        self.share = share

    @property
    def is_private(self) -> bool:
        return self.ignore or not self.quote


# a pattern for the directories that no other pattern of the same file lists
UNLISTED = ""

# The members of a team who may read a session, the strictest first: nobody, its owner on all their
# machines, everybody.
SHARES = ("off", "mine", "team")

# Applies if somebody meant to exclude something but it is unclear how: it is hidden.
# `isolate_memories` is not used, because it decides where memories are stored, and correcting the
# rule would not undo that.
HIDDEN: RuleWords = {"ignore": True, "quote": False}


class NameRules:
    """The rules for names and ids.

    Whole names have a table, because a prompt looks up each of perhaps 1,000 sessions."""

    def __init__(self, rules: Iterable[PatternRule]) -> None:
        self._whole: dict[str, list[RuleWords]] = {}
        self._beginnings: list[PatternRule] = []
        for pattern, rule in rules:
            wanted = _folded(pattern)
            if wanted.endswith("*"):
                self._beginnings.append((wanted[:-1], rule))
            else:
                self._whole.setdefault(wanted, []).append(rule)

    def strictest(self, names: Iterable[str]) -> Rule:
        """Return the rule for a session known by any of `names`."""
        folded_names = [_folded(name) for name in names]
        matching = [rule for name in folded_names for rule in self._whole.get(name, ())]
        matching += [
            rule
            for begin, rule in self._beginnings
            if any([name.startswith(begin) for name in folded_names])
        ]
        return _joined(matching)


def rule_in(
    files: Iterable[Iterable[PatternRule]], spellings: Iterable[str], known: KnownDirectories
) -> Rule:
    """Return the rule for a directory, given in several spellings, by the projects of each file."""
    directories = [path.replace("\\", "/").rstrip("/") for path in spellings]
    strictest = Rule()
    for projects in files:
        for rule in _rules_in(list(projects), directories, known):
            strictest = stricter(strictest, rule)
    return strictest


def _rules_in(
    projects: list[PatternRule], directories: Iterable[str], known: KnownDirectories
) -> Iterable[Rule]:
    """Return the rule of one file for each spelling that it lists; if none, that for UNLISTED."""
    rules = []
    for directory in directories:
        fitting = [
            (rank, rule)
            for pattern, rule in projects
            if pattern != UNLISTED and (rank := _rank(pattern, directory, known))
        ]
        if fitting:
            rules.append(_most_specific(fitting))
    return rules or [_joined([rule for pattern, rule in projects if pattern == UNLISTED])]


def _most_specific(fitting: list[tuple[Rank, RuleWords]]) -> Rule:
    """Return the rule that has each keyword from the rules with the lowest rank that state it."""
    decided = Rule()
    for word in {word for _, rule in fitting for word in rule}:
        stating = [(rank, rule) for rank, rule in fitting if word in rule]
        lowest = min([rank for rank, _ in stating])
        for rank, rule in stating:
            if rank == lowest:
                decided = stricter(decided, _joined([{word: rule[word]}]))
    return decided


def _rank(pattern: str, directory: str, known: KnownDirectories) -> Rank | None:
    """Return how specific a pattern is for a directory, lower for more; None if it does not fit.

    The rank has the number of steps from the highest fitting directory down to this one, whether
    the pattern is open at its end, and how few characters of a name it has there. A pattern that is
    not a path is a mistake, and counts as the most specific."""

    def fits(path: str) -> bool:
        return covers(pattern, path) or known.holds(pattern, path)

    if not fits(directory):
        return None
    if not pattern.startswith("/") and pattern[1:2] != ":" and pattern != "*":
        return -1, False, 0
    steps = 0
    above = directory.rpartition("/")[0]
    while above and fits(above):
        steps += 1
        above = above.rpartition("/")[0]
    is_open = pattern.endswith("*")
    return steps, is_open, -len(pattern.rpartition("/")[2]) if is_open else 0


def stricter(rule: Rule, other: Rule) -> Rule:
    """Return both rules at once."""
    share = _stricter_share(rule.share, other.share)
    isolate = rule.isolate_memories or other.isolate_memories
    return Rule(rule.ignore or other.ignore, rule.quote and other.quote, isolate, share)


def _folded(name: str) -> str:
    """Return a name in its form for comparison: in one case and one form of Unicode."""
    return name.lower() if name.isascii() else _composed(_composed(name).casefold())


def _composed(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def covers(pattern: str, directory: str) -> bool:
    """Return whether `directory` is `pattern` or below it, as both are spelled.

    If the pattern ends in `*`, return whether the directory begins with it. A relative pattern may
    begin at any step of the path."""
    path, pattern = _composed(directory.replace("\\", "/").rstrip("/")) + "/", _composed(pattern)
    start = pattern[:-1] if pattern.endswith("*") else pattern.rstrip("/") + "/"
    if start[:1] == "/" or start[1:2] == ":" or not start:
        return path.startswith(start)
    return f"/{start}" in f"/{path}"


class KnownDirectories:
    """Directories by device and inode, because links, case and Unicode allow many spellings.

    Each is read once."""

    def __init__(self) -> None:
        self._identities: dict[str, tuple[int, int] | None] = {}

    def holds(self, pattern: str, directory: str) -> bool:
        """Return whether `directory` is at or below the absolute path `pattern`, links included.

        If the pattern ends in `*`, return whether the directory is in one whose path begins with
        it."""
        if not (pattern.startswith("/") and directory.startswith("/")):
            return False
        wanted, _, beginning = (
            pattern[:-1].rpartition("/") if pattern.endswith("*") else (pattern, "", "")
        )
        identity = self._identity(wanted)
        path, name = directory.rstrip("/"), ""
        while identity is not None:
            if self._identity(path) == identity and (
                not beginning or self._begins(path, name, beginning)
            ):
                return True
            if not path:
                break
            path, _, name = path.rpartition("/")
        return False

    def _begins(self, path: str, name: str, beginning: str) -> bool:
        """Return whether a spelling of the directory `name` in `path` begins with `beginning`."""
        if _composed(name).startswith(_composed(beginning)):
            return True
        is_alike = _folded(name).startswith(_folded(beginning))
        respelled = f"{path}/{beginning}{_composed(name)[len(_composed(beginning)) :]}"
        return is_alike and self._identity(respelled) == self._identity(f"{path}/{name}")

    def _identity(self, path: str) -> tuple[int, int] | None:
        """Return device and inode of the file at a path; None if there is none."""
        if path not in self._identities:
            try:
                status = os.stat(path or "/")
                self._identities[path] = status.st_dev, status.st_ino
            except (OSError, ValueError):
                self._identities[path] = None
        return self._identities[path]


def _joined(rules: Iterable[RuleWords]) -> Rule:
    joined = Rule()
    for rule in rules:
        joined.ignore = joined.ignore or bool(rule.get("ignore"))
        joined.quote = joined.quote and bool(rule.get("quote", True))
        joined.isolate_memories = joined.isolate_memories or bool(rule.get("isolate_memories"))
        joined.share = _stricter_share(joined.share, str(rule.get("share", "")))
    return joined


def _stricter_share(share: str, other: str) -> str:
    return min(share, other, key=SHARES.index) if share and other else share or other
