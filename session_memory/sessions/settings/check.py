"""Checks a settings file: each correct key is used, each wrong key is a fault.

A wrong key affects only itself. If a rule was meant to exclude something but cannot be understood,
it hides everything it could have meant. A file that cannot be read at all hides everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...common.errors import ConfigError
from ...common.system.files import user_dir, write_atomically
from ...common.system.json import as_list, as_object, sealed
from .compiled import ONLY, SAME, Key, Kind, Section, Settings, stamps_of
from .keys import expected, written
from .replaced_keys import renamed, replacement
from .rules import UNLISTED, PatternRule
from .rules_check import SECTIONS as OF_RULES
from .rules_check import RulesCheck, closest, short
from .section_table import KEYS, SECTIONS
from .sections import BUILT_IN_STRATEGIES, confine, granted
from .yaml_file import KeyPath, has_parser, read_document

if TYPE_CHECKING:
    from .homes import Home

OwnSection = TypeVar("OwnSection", bound=Section)

_RESERVED_NAMES = ("User", "Task", "Tool")


_TRACKING = "tracking"  # a key that hides as rules do


class Fault(NamedTuple):
    """An invalid `key` ('' for the whole file), a line about it, and if rules depend on it."""

    key: str
    text: str
    is_of_rules: bool = False


class Checked(NamedTuple):
    """The valid part of the files.

    `values` has sections as dictionaries; `rules` are for sessions and `projects_by_file` for
    directories; `faults` has a line each."""

    values: dict[str, object]
    rules: list[PatternRule]
    faults: list[str]
    projects_by_file: list[list[PatternRule]]


class FileCheck:
    """The valid part of one file: `values`, and the `rules` of sessions and of `projects`.

    `faults` are in the order of the file; `lines` has the keys' line numbers, from 1."""

    def __init__(self, path: str, root: str = "", person_file: str = "") -> None:
        self.path = path
        self.values: dict[str, object] = {}
        self._rules = RulesCheck()
        self.rules, self.projects = self._rules.sessions, self._rules.projects
        self.faults: list[Fault] = []
        self.lines: dict[KeyPath, int] = {}
        try:
            document = renamed(read_document(path))
        except OSError as error:
            self._give_up(f"{path}: {error.strerror or error}")
        except ConfigError as error:
            self._give_up(f"{error}" + (f" ({error.hint})" if error.hint else ""))
        else:
            self.lines = document.lines
            self.values = self._section("", document.values)
        if root:
            self._confine(root, person_file)

    @property
    def projects_with_tracking(self) -> list[PatternRule]:
        """The rules for directories, with one for UNLISTED if only the listed are tracked."""
        is_only = self.values.get(_TRACKING) == ONLY
        return [*self.projects, (UNLISTED, {"ignore": True})] if is_only else self.projects

    def _confine(self, root: str, person_file: str) -> None:
        """Drop keys that the file of the home `root` may not set without the person's grant."""
        person = user_dir(os.environ)
        grants = granted(
            FileCheck(person_file).values if os.path.exists(person_file) else {}, root, person
        )
        for key, grant in confine(self.values, [*self.rules, *self.projects], root, grants, person):
            problem = f"{key} is only accepted in your own settings"
            how = (
                f"; to let this file set it: session-memory config homes '{{{root}: "
                f"[{grant}]}}' --home ~"
            )
            self._fault(key, problem + (how if grant else ""))

    def _give_up(self, problem: str) -> None:
        self._rules.hide("", [])
        self.values = {
            key.name: key.if_wrong for key in KEYS if not key.section and key.if_wrong is not SAME
        }
        self.faults.append(
            Fault("", f"{problem}; until it can be read, all sessions are hidden", True)
        )

    def _section(self, section: str, values: Mapping[str, object]) -> dict[str, object]:
        known = {key.last_name: key for key in SECTIONS[section].table()}
        accepted: dict[str, object] = {}
        for name, value in values.items():
            full = f"{section}.{name}" if section else name
            if full in OF_RULES:
                self._take_rules(full, value)
            elif name in known:
                self._take(known[name], value, accepted)
            elif value is None and full in SECTIONS:
                continue
            elif full in SECTIONS:
                accepted[name] = self._subsection(full, value)
            elif section == "memories" and name in [
                *BUILT_IN_STRATEGIES,
                *as_list(values.get("strategies")),
            ]:
                accepted[name] = value  # which the strategy checks
            else:
                inner = [
                    name.rpartition(".")[2]
                    for name in SECTIONS
                    if name and name.rpartition(".")[0] == section
                ]
                meant = closest(name, [*known, *inner])
                self._unknown(full, value, meant)
                if meant in known and meant not in values and known[meant].if_wrong is not SAME:
                    accepted[meant] = known[meant].fallback
        return accepted

    def _take(self, key: Key, value: object, accepted: dict[str, object]) -> None:
        if value is None:
            return
        value = as_meant(key, value)
        problem = problem_with(key, value)
        if not problem:
            accepted[key.last_name] = value
            return
        accepted[key.last_name] = key.fallback
        if key.kind == Kind.PATHS and isinstance(value, list):
            accepted[key.last_name] = [path for path in value if not problem_with(key, path)]
        self._fault(key.name, f"{problem}; using {written(accepted[key.last_name])} instead")

    def _subsection(self, section: str, value: object) -> object:
        is_strategy = section.removeprefix("memories.") in BUILT_IN_STRATEGIES
        if isinstance(value, dict):
            accepted = self._section(section, value)
            return value if is_strategy else accepted
        names = [key.name for key in KEYS if key.name.startswith(section + ".")]
        self._fault(section, f"{section} should be keys and values")
        if is_strategy:
            return value
        wrong: dict[str, object] = {}
        for key in KEYS:
            if key.name in names and key.if_wrong is not SAME:
                at = wrong
                for part in (
                    key.section[len(section) + 1 :].split(".") if key.section != section else []
                ):
                    at = as_object(at.setdefault(part, {}))
                at[key.last_name] = key.if_wrong
        return wrong

    def _unknown(self, name: str, value: object, meant: str) -> None:
        hidden = self._rules.take_unknown(name.rpartition(".")[2], value)
        text = f"unknown key {name}" + (
            replacement(name) or (f", perhaps {meant}" if meant else "")
        )
        if hidden:
            text += f"; since it may be meant to exclude something, {hidden} is hidden"
        self._fault(name, text, is_of_rules=bool(hidden))

    def _take_rules(self, section: str, value: object) -> None:
        self._rules.take(section, value)
        for at, text in self._rules.faults:
            self._fault(".".join(at), text, at, is_of_rules=True)
        self._rules.faults.clear()

    def _fault(self, key: str, text: str, at: KeyPath = (), *, is_of_rules: bool = False) -> None:
        line = self.lines.get(at or tuple(key.split(".")))
        where = f"{self.path}:{line}" if line else self.path
        self.faults.append(Fault(key, f"{where}: {text}", is_of_rules))


def _read(paths: Sequence[str], root: str = "") -> Checked:
    """Return the valid part of the first of these files, with the rules of all.

    '' means a missing file. The file of the home `root` may set only keys that the person's file,
    the second one, grants."""
    checked_files = Checked({}, [], [], [])
    for number, path in enumerate(paths):
        if path:
            checked = FileCheck(path, *((root, paths[1]) if root and not number else ()))
            checked_files.rules.extend(checked.rules)
            if checked.projects_with_tracking:
                checked_files.projects_by_file.append(checked.projects_with_tracking)
            checked_files.faults.extend(
                [fault.text for fault in checked.faults if fault.is_of_rules or not number]
            )
            checked_files.values.update({} if number else checked.values)
    return checked_files


def refused(home: Home, key: str) -> list[str]:
    """Return why the file of `home` may not set `key`: the person has not granted it."""
    if not home.is_confined:
        return []
    faults = FileCheck(home.config_file, home.root, home.rules_files[0]).faults
    return [fault.text for fault in faults if f"{key}.".startswith(f"{fault.key}.")]


def compile_files(
    config_file: str, compiled_file: str, rules_files: Sequence[str], root: str = ""
) -> Settings:
    """Return the settings in these files, and write them to `compiled_file` for `compiled.load`.

    They are confined to the home `root` unless it is ''. Invalid settings raise nothing: see
    `Settings.faults`."""
    stamps = stamps_of(config_file, rules_files)
    paths = [path if stamp else "" for path, stamp in zip((config_file, *rules_files), stamps)]
    checked = _read(paths, root)
    try:
        if has_parser():  # without it they are read again each time, until it is installed
            write_atomically(compiled_file, sealed({"stamps": stamps, **checked._asdict()}))
    except OSError:  # if the state directory is not writable, the next prompt reads the files again
        pass
    return Settings(*checked)


def strategy_settings(section: type[OwnSection], values: object) -> OwnSection:
    """Return the section of a built-in strategy with its defaults.

    Raises ConfigError for any wrong key, because a model costs money and reads conversations."""
    where = section.SECTION.replace(".", ": ")
    by_name = {key.last_name: key for key in section.table()}
    known = f"the keys are {', '.join(by_name)}"
    if not isinstance(values, dict):
        raise ConfigError(f"{where} should be keys and values", known)
    given = {key: value for key, value in values.items() if value is not None}
    for name in values:
        if name not in by_name:
            raise ConfigError(f"{where}: unknown key {name!r}", known)
        problem = problem_with(by_name[name], given[name]) if name in given else ""
        if problem:
            raise ConfigError(f"{where}: {problem}")
    return section(**given)


def as_meant(key: Key, value: object) -> object:
    """Return a value as it was typed: YAML reads `off` as false."""
    return "off" if value is False and "off" in key.choices else value


def problem_with(key: Key, value: object) -> str:
    """Return the problem with a value, such as `scope is 'galaxy', not project or all`, or ''."""
    if isinstance(value, tuple):
        return f"{key.name} is set twice, to different values"
    if _CHECKS[key.kind](key, value):
        return ""
    # The value may be a secret or contain one
    is_secret = key.kind in (Kind.VARIABLE, Kind.DATABASE)
    shown = "as it is" if is_secret else short(value)
    return f"{key.name} is {shown}, not {expected(key)}"


def _are_agents(key: Key, value: object) -> bool:
    grants = value.values() if isinstance(value, dict) else ()
    are_lists = all(words is None or isinstance(words, list) for words in grants)
    are_words = are_lists and all(isinstance(word, str) for words in grants for word in words or ())
    return (
        are_words and isinstance(value, dict | list) and (not value or _are_paths(key, list(value)))
    )


def _is_number(key: Key, value: object) -> bool:
    kinds = int if key.kind == Kind.WHOLE else int | float
    return isinstance(value, kinds) and not isinstance(value, bool) and key.low <= value <= key.high


def _are_paths(key: Key, value: object) -> bool:
    paths = value if isinstance(value, list) else [value]
    return bool(paths) and all(
        isinstance(path, str) and path.startswith(("/", "~")) for path in paths
    )


def _are_prices(key: Key, value: object) -> bool:
    models = list(value.values()) if isinstance(value, dict) else [None]
    prices = [price for model in models if isinstance(model, dict) for price in model.items()]
    are_prices = all(
        name in ("input", "output", "cached") and type(price) in (int, float)
        for name, price in prices
    )
    return (
        all(isinstance(model, dict) for model in models)
        and are_prices
        and all(price >= 0 for _, price in prices)
    )


def _is_database(value: str) -> bool:
    """Check if a text is a database address without a password.

    Passwords belong in libpq's password file."""
    from ...common.system.pgpass import address_of

    try:
        return not value or not address_of(value).password
    except ValueError:
        return False


_CHECKS: Mapping[str, Callable[[Key, object], object]] = {
    Kind.ANY_OF: lambda key, value: any(
        value == choice and type(value) is type(choice) for choice in key.choices
    ),
    Kind.WHOLE: _is_number,
    Kind.NUMBER: _is_number,
    Kind.FLAG: lambda key, value: isinstance(value, bool),
    Kind.TEXT: lambda key, value: isinstance(value, str),
    Kind.MODEL: lambda key, value: (
        isinstance(value, str) and value.strip() and not value.startswith("-")
    ),
    Kind.TEXTS: lambda key, value: (
        isinstance(value, list) and all(isinstance(text, str) and text for text in value)
    ),
    Kind.ASSISTANT: lambda key, value: (
        isinstance(value, str)
        and value.isprintable()
        and 0 < len(value) <= 40
        and "*" not in value
        and value not in _RESERVED_NAMES
    ),
    Kind.PATHS: _are_paths,
    Kind.PRICES: _are_prices,
    Kind.STRATEGIES: lambda key, value: (
        isinstance(value, list)
        and value
        and all(isinstance(strategy, str) and strategy for strategy in value)
        and len(set(value)) == len(value)
    ),
    Kind.DATABASE: lambda key, value: isinstance(value, str) and _is_database(value),
    Kind.NAMES: lambda key, value: (
        isinstance(value, dict)
        and all(isinstance(text, str) and text.strip() for pair in value.items() for text in pair)
    ),
    Kind.AGENTS: _are_agents,
    Kind.URL: lambda key, value: (
        isinstance(value, str) and (not value or value.startswith(("http://", "https://")))
    ),
    Kind.VARIABLE: lambda key, value: (
        isinstance(value, str) and value.isascii() and f"{value}_".isidentifier()
    ),
}
