"""Checks a file's rules for `sessions` and `projects`; an invalid rule hides all it could mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ...common.system.files import expanded
from .keys import written
from .replaced_keys import FORMER_WORDS, replacement
from .rules import HIDDEN, SHARES, PatternRule, RuleWords

SESSIONS, PROJECTS = SECTIONS = ("sessions", "projects")
ALL = "*"
WORDS = ("ignore", "quote", "isolate_memories")
# also a word of rules, but it excludes nothing: it names who in a team may read the session
SHARE = "share"
_VALUE_CHARACTERS = 60
_STRICTEST = {"ignore": True, "quote": False, "isolate_memories": True}
# Words for excluding something: an unknown key similar to one of these may have been meant to.
_EXCLUDING = (
    *SECTIONS,
    "directories",
    *WORDS,
    *FORMER_WORDS,
    "exclude",
    "excluded",
    "hide",
    "hidden",
    "private",
    "privacy",
    "secret",
)
_EXAMPLES = {
    SESSIONS: "a name to its rule, such as {email: {quote: false}}",
    PROJECTS: "a directory to its rule, such as {~/private: {ignore: true}}",
}
_NO_PATH = "is not an absolute path, and does not begin with ~/"


class RulesCheck:
    """The rules of one file: `sessions`, `projects`, and the `faults`, each with its key's path."""

    def __init__(self) -> None:
        self.sessions: list[PatternRule] = []
        self.projects: list[PatternRule] = []
        self.faults: list[tuple[tuple[str, ...], str]] = []

    def take(self, section: str, value: object) -> None:
        if isinstance(value, dict):
            for name, rule in value.items():
                self._take_rule(section, name, rule)
        elif value is not None:
            names = _names_in(value)
            hidden = self.hide(section, names)
            self.faults.append(
                ((section,), f"{section} should map {_EXAMPLES[section]}; {hidden} is hidden")
            )

    def take_unknown(self, name: str, value: object) -> str:
        """Hide what an unknown key may have been meant to exclude; return it, or '' for nothing."""
        names = _excluded_by(name, value)
        if not names:
            return ""
        section = PROJECTS if closest(name, (PROJECTS, "directories")) else SESSIONS
        return self.hide(section, [pattern for pattern in names if pattern != ALL])

    def _take_rule(self, section: str, name: str, rule: object) -> None:
        at = (section, name)
        key = f"{section}.{name}"
        pattern = name.partition("*")[0] + "*" if "*" in name[:-1] else name
        if pattern != name:
            self.faults.append(
                (at, f"{key}: a * is allowed only at the end; the key is read as {pattern}")
            )
        if section == SESSIONS and is_path(pattern):
            self.faults.append(
                (at, f"{key} is a directory: move it to `projects`; it is read as if it were there")
            )
        if section == PROJECTS and not is_path(pattern) and pattern != ALL:
            hidden = self.hide(section, [pattern])
            self.faults.append((at, f"{key} {_NO_PATH}; {hidden} is hidden in every directory"))
        if not isinstance(rule, dict) or not rule:
            hidden = self.hide(section, [pattern])
            problem = f"{key} is {short(rule)}, not a rule such as {{ignore: true}}"
            self.faults.append((at, f"{problem}; {hidden} is hidden"))
            return
        self._add(section, pattern, self._words(at, key, pattern, rule))

    def _words(
        self, at: tuple[str, ...], key: str, pattern: str, rule: dict[str, object]
    ) -> RuleWords:
        words: RuleWords = {}
        for word, value in rule.items():
            if word == SHARE:
                share = SHARES[0] if value is False else value  # YAML reads `off` as false
                words[word] = share if share in SHARES else SHARES[0]
                if share not in SHARES:
                    problem = (
                        f"{key}: share is {short(value)}, not {', '.join(SHARES[:-1])} or "
                        f"{SHARES[-1]}"
                    )
                    self.faults.append((at, f"{problem}; using {SHARES[0]} instead"))
            elif word not in WORDS:
                meant = closest(word, (*WORDS, SHARE))
                hidden = self.hide(at[0], [pattern])
                text = f"{key}: unknown key {word}" + (
                    f", perhaps {meant}" if meant else replacement(word)
                )
                self.faults.append((at, f"{text}; {hidden} is hidden"))
            elif isinstance(value, bool):
                words[word] = value
            else:
                words[word] = _STRICTEST[word]
                held = written(words[word])
                self.faults.append(
                    (
                        at,
                        f"{key}: {word} is {short(value)}, not true or false; using {held} instead",
                    )
                )
        return words

    def hide(self, section: str, names: Sequence[str]) -> str:
        """Hide the sessions or projects `names`, or everything if it is empty; describe them."""
        for name in names or [ALL]:
            self._add(section if names else SESSIONS, name, HIDDEN)
        every = "every project" if section == PROJECTS and names else "every session"
        return every if not names or ALL in names else ", ".join(names)

    def _add(self, section: str, pattern: str, rule: RuleWords) -> None:
        if section == SESSIONS:
            self.sessions.append((pattern, rule))
        if section == PROJECTS or is_path(pattern):
            self.projects += [(spelling, rule) for spelling in _spellings(pattern)]


def is_path(name: str) -> bool:
    """Check if a name is a directory's path: absolute, or below the home directory."""
    return name.startswith(("/", "~/")) or (name[1:2] == ":" and name[2:3] in ("/", "\\"))


def closest(name: str, words: Iterable[str]) -> str:
    """Return the known word that is most similar to `name`; '' if none is similar."""
    from difflib import get_close_matches

    by_lower = {word.lower(): word for word in words}
    return next(
        (by_lower[word] for word in get_close_matches(name.lower(), list(by_lower), 1, 0.75)), ""
    )


def short(value: object) -> str:
    """Return a value as an error shows it."""
    text = repr(value)
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"


def _spellings(pattern: str) -> list[str]:
    """Return a pattern's directory as it is written, and as the target if it is a link."""
    path = pattern.replace("\\", "/")
    if pattern == ALL or not is_path(path):
        return [path.removeprefix("./").rstrip("/") or ALL]
    path = expanded(path, os.environ)
    above, _, name = path.rpartition("/")
    if path.endswith("*"):  # such a pattern is not a directory itself
        return list(
            dict.fromkeys([f"{spelled.rstrip('/')}/{name}" for spelled in _both(above or "/")])
        )
    return _both(path)


def _both(path: str) -> list[str]:
    if not path.startswith("/"):
        return [path]
    return list(dict.fromkeys([os.path.normpath(path), os.path.realpath(path)]))


def _excluded_by(name: str, value: object) -> list[str]:
    """Return the patterns that an unknown key may have been meant to exclude."""
    if isinstance(value, dict):
        # `email: {ignore: true}` outside `sessions`
        if any(closest(key, (*WORDS, *FORMER_WORDS)) for key in value):
            return [name]
        patterns = [pattern for key, inner in value.items() for pattern in _excluded_by(key, inner)]
        return patterns or (list(value) or [ALL] if closest(name, _EXCLUDING) else [])
    if (
        not closest(name, _EXCLUDING)
        or value is None
        or value is (closest(name, ("text", "quote")) != "")
    ):
        return []
    return _names_in(value) or [ALL]


def _names_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, list | tuple):
        return [name for item in value for name in _names_in(item)]
    return list(value) if isinstance(value, dict) else []
