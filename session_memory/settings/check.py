"""What of a file of settings holds: every key that is as documented, for itself; what is not is a fault.

A wrong key costs that key alone. A rule that was meant to exclude something and cannot be understood hides what it
could have meant; a file that cannot be read at all hides everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..system.files import write_atomically
from ..system.json import encode
from . import keys
from .compiled import Settings, stamps_of
from .keys import KEYS, SECTIONS, Key
from .rules import HIDDEN
from .yaml_file import KeyPath, read_document

ALL_SESSIONS = "*"
_VALUE_CHARACTERS = 60
_RULE_KEYS = ("ignore", "text", "untrusted")
_STRICTEST = {"ignore": True, "text": False, "untrusted": True}
# Words for excluding something: an unknown key like one of these may have been meant to.
_EXCLUDING = ("sessions", *_RULE_KEYS, "exclude", "excluded", "hide", "hidden", "private", "privacy", "secret")
_RESERVED_NAMES = ("User", "Tool")

PatternRule = tuple[str, dict[str, bool]]


class Fault(NamedTuple):
    """What could not be understood: the `key` ('' for the whole file), a line about it, whether rules depend on it."""

    key: str
    text: str
    is_of_rules: bool = False


class Checked(NamedTuple):
    """What of the files holds: `values`, in which sections are dictionaries; `rules`; `faults`, a line each."""

    values: dict[str, Any]
    rules: list[PatternRule]
    faults: list[str]


class FileCheck:
    """What of one file holds. `faults` are in the order of the file; `lines` are those of the keys, from 1."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        self.rules: list[PatternRule] = []
        self.faults: list[Fault] = []
        self.lines: dict[KeyPath, int] = {}
        try:
            document = read_document(path)
        except OSError as error:
            self._give_up(f"{path}: {error.strerror or error}")
        except ConfigError as error:
            self._give_up(f"{error}" + (f" ({error.hint})" if error.hint else ""))
        else:
            self.lines = document.lines
            self.values = self._section("", document.values)

    def _give_up(self, problem: str) -> None:
        self.rules.append((ALL_SESSIONS, HIDDEN))
        self.faults.append(Fault("", f"{problem}; until it can be read nothing is told of any session", True))

    def _section(self, section: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """What of a section holds."""
        known = {key.last_name: key for key in KEYS if key.section == section}
        found: dict[str, Any] = {}
        for name, value in values.items():
            full = f"{section}.{name}" if section else name
            if full == "sessions":
                self._take_rules(value)
            elif name in known:
                self._take(known[name], value, found)
            elif value is None and full in SECTIONS:
                continue
            elif full in SECTIONS:
                found[name] = self._subsection(full, value)
            elif section == "memories" and name in _strategies(values):
                found[name] = value  # which the strategy checks
            else:
                meant = closest(name, [*known, *(one.rpartition(".")[2] for one in _below(section))])
                self._unknown(full, value, meant)
                if meant in known and meant not in values and known[meant].if_wrong is not keys.SAME:
                    found[meant] = known[meant].fallback
        return found

    def _take(self, key: Key, value: Any, found: dict[str, Any]) -> None:
        if value is None:
            return
        problem = problem_with(key, value)
        if not problem:
            found[key.last_name] = value
            return
        found[key.last_name] = key.fallback
        if key.kind == keys.PATHS and isinstance(value, list):
            found[key.last_name] = [path for path in value if not problem_with(key, path)]
        self._fault(key.name, f"{problem}; {keys.written(found[key.last_name])} holds")

    def _subsection(self, section: str, value: Any) -> Any:
        is_strategy = section.removeprefix("memories.") in keys.BUILT_IN_STRATEGIES
        if isinstance(value, dict):
            found = self._section(section, value)
            return value if is_strategy else found
        names = [key.name for key in KEYS if key.name.startswith(section + ".")]
        self._fault(section, f"{section} should be keys and values")
        if is_strategy:
            return value
        wrong: dict[str, Any] = {}
        for key in KEYS:
            if key.name in names and key.if_wrong is not keys.SAME:
                at = wrong
                for part in key.section[len(section) + 1 :].split(".") if key.section != section else []:
                    at = at.setdefault(part, {})
                at[key.last_name] = key.if_wrong
        return wrong

    def _unknown(self, name: str, value: Any, meant: str) -> None:
        patterns = _excluded_by(name.rpartition(".")[2], value)
        self.rules += [(pattern, HIDDEN) for pattern in patterns]
        text = f"unknown key {name}" + (f", perhaps {meant}" if meant else "")
        if patterns:
            text += f"; since it may be meant to exclude something, nothing is told of {_enumerated(patterns)}"
        self._fault(name, text, is_of_rules=bool(patterns))

    def _take_rules(self, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, dict):
            for name, rule in value.items():
                self._take_rule(name, rule)
            return
        patterns = _names_in(value) or [ALL_SESSIONS]
        self._hide(patterns, "sessions", "sessions should map a name to its rule, such as {email: {text: false}}")

    def _take_rule(self, name: str, rule: Any) -> None:
        key = f"sessions.{name}"
        pattern = name.partition("*")[0] + "*" if "*" in name[:-1] else name
        if pattern != name:
            self._fault(key, f"{key}: a * may stand at the end alone; it is taken for {pattern}", is_of_rules=True)
        if not isinstance(rule, dict) or not rule:
            self._hide([pattern], key, f"{key} is {_short(rule)}, not a rule such as {{ignore: true}}")
            return
        taken = {}
        for word, value in rule.items():
            if word not in _RULE_KEYS:
                meant = closest(word, _RULE_KEYS)
                text = f"{key}: unknown key {word}" + (f", perhaps {meant}" if meant else "")
                self._hide([pattern], key, text)
            elif isinstance(value, bool):
                taken[word] = value
            else:
                taken[word] = _STRICTEST[word]
                text = f"{key}: {word} is {_short(value)}, not true or false; {keys.written(taken[word])} holds"
                self._fault(key, text, is_of_rules=True)
        self.rules.append((pattern, taken))

    def _hide(self, patterns: list[str], key: str, problem: str) -> None:
        self.rules += [(pattern, HIDDEN) for pattern in patterns]
        self._fault(key, f"{problem}; nothing is told of {_enumerated(patterns)}", is_of_rules=True)

    def _fault(self, key: str, text: str, *, is_of_rules: bool = False) -> None:
        path = tuple(key.split(".")) if not key.startswith("sessions.") else ("sessions", key[len("sessions.") :])
        line = self.lines.get(path)
        where = f"{self.path}:{line}" if line else self.path
        self.faults.append(Fault(key, f"{where}: {text}", is_of_rules))


def read(paths: Sequence[str]) -> Checked:
    """What holds of the first of these files, with the rules of all; '' stands for a file that is not there."""
    own = FileCheck(paths[0]) if paths[0] else None
    values = own.values if own else {}
    rules = list(own.rules) if own else []
    faults = [fault.text for fault in own.faults] if own else []
    for path in paths[1:]:
        if path:
            shared = FileCheck(path)
            rules += shared.rules
            faults += [fault.text for fault in shared.faults if fault.is_of_rules]
    return Checked(values, rules, faults)


def compile_files(config_file: str, compiled_file: str, rules_files: Sequence[str]) -> Settings:
    """The settings in these files, which `compiled.load` finds in `compiled_file` from now on. Nothing is raised for
    what cannot be understood: see `Settings.faults`."""
    stamps = stamps_of(config_file, rules_files)
    paths = [path if stamp else "" for path, stamp in zip((config_file, *rules_files), stamps)]
    values, rules, faults = read(paths)
    text = encode({"stamps": stamps, "values": values, "rules": rules, "faults": faults})
    try:
        write_atomically(compiled_file, text.encode())
    except OSError:  # a state directory that cannot be written costs the next prompt the same again
        pass
    return Settings(values, rules, faults)


def require(table: Iterable[Key], values: Any, where: str) -> dict[str, Any]:
    """`values` with the defaults of the keys in `table`, for those who work with none but right settings.

    Raises ConfigError for the first that is not as documented.
    """
    by_name = {key.last_name: key for key in table}
    known = f"the keys are {', '.join(by_name)}"
    if not isinstance(values, dict):
        raise ConfigError(f"{where} should be keys and values", known)
    for name, value in values.items():
        if name not in by_name:
            raise ConfigError(f"{where}: unknown key {name!r}", known)
        problem = problem_with(by_name[name], value) if value is not None else ""
        if problem:
            raise ConfigError(f"{where}: {problem}")
    given = {name: value for name, value in values.items() if value is not None}
    return {**{name: key.default for name, key in by_name.items()}, **given}


def problem_with(key: Key, value: Any) -> str:
    """What is wrong with a value, as `scope is 'galaxy', not project or all`; '' if nothing is."""
    if isinstance(value, tuple):
        return f"{key.name} stands there twice, with different values"
    if _CHECKS[key.kind](key, value):
        return ""
    shown = "as it is" if key.kind == keys.VARIABLE else _short(value)  # it may be the secret itself
    return f"{key.name} is {shown}, not {key.expected}"


def _is_number(key: Key, value: Any) -> bool:
    kinds = int if key.kind == keys.WHOLE else int | float
    return isinstance(value, kinds) and not isinstance(value, bool) and key.low <= value <= key.high


def _is_assistant(key: Key, value: Any) -> bool:
    is_name = isinstance(value, str) and value.isprintable() and 0 < len(value) <= 40 and "*" not in value
    return is_name and value not in _RESERVED_NAMES


def _are_paths(key: Key, value: Any) -> bool:
    paths = value if isinstance(value, list) else [value]
    return bool(paths) and all(isinstance(one, str) and one.startswith(("/", "~")) for one in paths)


def _are_strategies(key: Key, value: Any) -> bool:
    is_list = isinstance(value, list) and value and all(isinstance(one, str) and one for one in value)
    return bool(is_list) and len(set(value)) == len(value)


def _are_prices(key: Key, value: Any) -> bool:
    def is_price(name: str, price: Any) -> bool:
        is_number = isinstance(price, int | float) and not isinstance(price, bool)
        return name in ("input", "output", "cached") and is_number and price >= 0

    return isinstance(value, dict) and all(
        isinstance(prices, dict) and all(is_price(name, price) for name, price in prices.items())
        for prices in value.values()
    )


def _is_variable(key: Key, value: Any) -> bool:
    return isinstance(value, str) and (not value or (value.isascii() and value.isidentifier()))


_CHECKS = {
    keys.ANY_OF: lambda key, value: any(value == one and type(value) is type(one) for one in key.choices),
    keys.WHOLE: _is_number,
    keys.NUMBER: _is_number,
    keys.FLAG: lambda key, value: isinstance(value, bool),
    keys.TEXT: lambda key, value: isinstance(value, str),
    keys.MODEL: lambda key, value: isinstance(value, str) and value.strip() and not value.startswith("-"),
    keys.TEXTS: lambda key, value: isinstance(value, list) and all(isinstance(one, str) and one for one in value),
    keys.ASSISTANT: _is_assistant,
    keys.PATHS: _are_paths,
    keys.PRICES: _are_prices,
    keys.STRATEGIES: _are_strategies,
    keys.URL: lambda key, value: isinstance(value, str) and (not value or value.startswith(("http://", "https://"))),
    keys.VARIABLE: _is_variable,
}


def _strategies(values: Mapping[str, Any]) -> list[Any]:
    """The ids under which strategies may have keys of their own."""
    chosen = values.get("strategies")
    return [*keys.BUILT_IN_STRATEGIES, *(chosen if isinstance(chosen, list) else [])]


def _below(section: str) -> list[str]:
    return [one for one in SECTIONS if one.rpartition(".")[0] == section]


def _excluded_by(name: str, value: Any) -> list[str]:
    """The patterns of what an unknown key may have been meant to exclude."""
    if isinstance(value, dict):
        if any(closest(key, _RULE_KEYS) for key in value):  # `email: {ignore: true}` outside of `sessions`
            return [name]
        found = [pattern for key, one in value.items() for pattern in _excluded_by(key, one)]
        return found or (list(value) or [ALL_SESSIONS] if closest(name, _EXCLUDING) else [])
    if not closest(name, _EXCLUDING) or value is None or value is (closest(name, ("text",)) != ""):
        return []
    return _names_in(value) or [ALL_SESSIONS]


def _names_in(value: Any) -> list[str]:
    """The names of sessions in a value that should have been rules."""
    if isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    if isinstance(value, list | tuple):
        return [name for one in value for name in _names_in(one)]
    return list(value) if isinstance(value, dict) else []


def closest(name: str, words: Iterable[str]) -> str:
    """The word that somebody may have meant by `name`; '' if none is like it."""
    from difflib import get_close_matches

    by_lower = {word.lower(): word for word in words}
    return next((by_lower[one] for one in get_close_matches(name.lower(), list(by_lower), 1, 0.75)), "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"


def _enumerated(patterns: Sequence[str]) -> str:
    return "any session" if ALL_SESSIONS in patterns else ", ".join(patterns)
