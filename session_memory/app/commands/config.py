"""`session-memory config`: shows all values in force with the files they come from, or sets one."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...awareness.activity.delivery import kind_of_delivery
from ...awareness.events.log import notices
from ...common.errors import WrongCallError
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import enumerated
from ...common.text.sanitize import for_people, name_for_people
from ...history.store.location import StoreLocation, find_location
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.check import FileCheck, as_meant, problem_with, refused
from ...sessions.settings.compiled import NOTICES_WITHOUT_WATCH, Key, Kind
from ...sessions.settings.homes import Home, person_home
from ...sessions.settings.keys import parsed, set_key, unset_key, written
from ...sessions.settings.replaced_keys import current
from ...sessions.settings.rules import SHARES
from ...sessions.settings.rules_check import PROJECTS, SECTIONS, SHARE, WORDS, closest, is_path
from ...sessions.settings.section_table import KEYS
from ...sessions.settings.section_table import SECTIONS as SECTION_CLASSES
from ..install._notice_hooks import switch_notice_hooks
from ..install._status_line import switch_status_line
from .arguments import add_common

SUMMARY = "show all settings and where each comes from, or change one"
VALUE_CHARACTERS = 12
_TEXT_KINDS = (Kind.ASSISTANT, Kind.DATABASE, Kind.MODEL, Kind.TEXT, Kind.URL, Kind.VARIABLE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key", metavar="KEY", nargs="?", default="", help="such as scope, store.watch_path"
    )
    parser.add_argument(
        "value", metavar="VALUE", nargs="?", help="the new value, written as in the file"
    )
    parser.add_argument(
        "--unset",
        action="store_true",
        help="remove the key from the file, so its default applies again",
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the settings of a home, or set one; return 1 if one is invalid.

    Raises SessionMemoryError, OSError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    home, name = find_location(arguments.home, os.environ).caller_home, current(arguments.key)
    if arguments.unset and (not name or arguments.value is not None):
        raise WrongCallError(
            "--unset needs exactly one key", "for example: session-memory config scope --unset"
        )
    if arguments.value is not None or arguments.unset:
        return _change(home, name, arguments, terminal)
    settings = _settings(home)
    if name:
        result = settings.only(name)
        terminal.show(result)
        return int(bool(result.notices))
    terminal.show(settings)
    return int(bool(settings.notices))


def _settings(home: Home) -> ShownSettings:
    """Return the settings of a home and the rules that apply in it."""
    confined = (home.root, home.rules_files[0]) if home.is_confined else ()
    own_file = FileCheck(home.config_file, *confined) if os.path.lexists(home.config_file) else None
    values = {
        key.name: _value(key, own_file) for key in KEYS if key.name not in SECTIONS and key.about
    }
    return ShownSettings(home, values, _rules(home, own_file), own_file)


def _change(home: Home, name: str, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Set a key of the home's file, or remove it with --unset."""
    at, value = _meant(name, arguments.value)
    changed: list[Path] = []
    refusals: list[str] = []
    if at == ("statusline",):  # fails if no runtime shows it
        changed, refusals = switch_status_line(home, os.environ, is_on=value)
    was_set = True
    if not arguments.unset:
        set_key(home.config_file, at, value)
    else:
        was_set = unset_key(home.config_file, at)
    if at == ("notices",) and home.config_file == person_home(os.environ).config_file:
        # after the file, so no hook is added for a setting that could not be written
        is_on = value in NOTICES_WITHOUT_WATCH
        changed, refusals = switch_notice_hooks(os.environ, is_on=is_on)
    key = ".".join(at)
    notices = [*refused(home, key), *refusals]
    change = ChangedKey(
        key,
        value,
        home.config_file,
        arguments.unset,
        was_set,
        [str(path) for path in changed],
        notices,
    )
    terminal.show(change)
    if at[0] in SECTIONS:
        _follow_rules(find_location(arguments.home, os.environ), terminal)
        if at[0] == PROJECTS and not arguments.unset and (names := _mirrored_runtimes()):
            terminal.note(
                f"sessions that {enumerated(names, 'or')} has deleted are known only by the "
                "directory where they started"
            )
    return 0


def _follow_rules(location: StoreLocation, terminal: Terminal) -> None:
    """Apply changed rules at once to mirrors, archives and memories.

    Mirrors note by what a rule hides their sessions, which only the runtime knows, before it deletes
    them."""
    from ..upkeep.rules import follow_rules  # only here: values are shown without the store

    for runtime in all_runtimes():
        runtime.refresh(runtime.config_dir(os.environ), everything=True)
    follow_rules(location, terminal.note)


def _mirrored_runtimes() -> list[str]:
    """Return the titles of runtimes with mirrors: only these know a session's later directories."""
    return [
        runtime.TITLE
        for runtime in all_runtimes()
        if runtime.IS_MIRRORED
        and os.path.isdir(runtime.transcripts_dir(runtime.config_dir(os.environ)))
    ]


@dataclass(frozen=True)
class ChangedKey(Result):
    """A key that was set or (`was_set`) unset, and its new value.

    It includes the runtimes' settings that changed with it, and a notice for each refused change.
    """

    key: str
    value: Any
    source: str
    is_unset: bool
    was_set: bool
    changed: list[str]
    notices: list[str]

    def show(self, terminal: Terminal) -> None:
        key, file = self.key, terminal.short(self.source)
        if not self.is_unset:
            terminal.line(f"{key}: {written(self.value)}, in {file}, from the next prompt on")
        elif self.was_set:
            default = _default(self.value)
            terminal.line(f"{key}: removed from {file}; from the next prompt on: {default}")
        else:
            terminal.line(f"{key} is not set in {file}: {_default(self.value)}")
        for path in self.changed:
            terminal.line(f"  in {terminal.short(path)}, for sessions that start from now on")
        for text in self.notices:
            terminal.note(for_people(text))

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "value": self.value,
            "source": self.source,
            "changed": self.changed,
            "notices": self.notices,
        }


@dataclass(frozen=True)
class ShownSettings(Result):
    """All settings of a home, with their sources ('' for a default), the rules and the faults."""

    home: Home
    values: dict[str, tuple[Any, str]]
    rules: list[dict[str, Any]]
    own: FileCheck | None

    @cached_property
    def notices(self) -> list[str]:
        """The problems with the settings."""
        return notices(self.home)

    @property
    def deliveries(self) -> dict[str, str]:
        """The way in which updates reach the sessions of each runtime."""
        return {
            runtime.name: kind_of_delivery(runtime)
            for runtime in all_runtimes()
            if runtime.PROMPT_EVENT
        }

    def only(self, name: str) -> ShownKey | ShownRules:
        """Return only one key, or the rules of one section. Raises WrongCallError."""
        faults = self.own.faults if self.own else ()
        wrong = [fault.text for fault in faults if fault.key in ("", name)]
        if name in SECTIONS:
            return ShownRules(name, [rule for rule in self.rules if rule["section"] == name], wrong)
        key = _key(name)
        return ShownKey(key.name, *self.values[key.name], wrong)

    def show(self, terminal: Terminal) -> None:
        ways = self.deliveries
        with terminal.paged():
            _show_all(self, terminal)
            for kind in dict.fromkeys(ways.values()):
                names = enumerated(name for name, its_kind in ways.items() if its_kind == kind)
                terminal.line(terminal.paint("dim", f"Delivery of updates in {names}: {kind}."))
            for notice in self.notices:
                terminal.note(for_people(notice))

    def as_json(self) -> dict[str, Any]:
        values = {
            name: {"value": value, "source": source or None}
            for name, (value, source) in self.values.items()
        }
        return {
            "file": self.home.config_file,
            "values": values,
            "rules": self.rules,
            "delivery": self.deliveries,
            "notices": self.notices,
        }


@dataclass(frozen=True)
class ShownKey(Result):
    """A key with its value, the file that sets it, and the faults in that file."""

    key: str
    value: Any
    source: str
    notices: list[str]

    def show(self, terminal: Terminal) -> None:
        for text in self.notices:
            terminal.note(for_people(text))
        source = terminal.short(self.source) or "default"
        terminal.line(f"{name_for_people(written(self.value))}  ({source})")

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "source": self.source or None}


@dataclass(frozen=True)
class ShownRules(Result):
    """The rules of a section of the settings, and the faults of that section."""

    key: str
    rules: list[dict[str, Any]]
    notices: list[str]

    def show(self, terminal: Terminal) -> None:
        for text in self.notices:
            terminal.note(for_people(text))
        for rule in self.rules:
            text = f"{rule['pattern']}: {written(rule['rule'])}  ({terminal.short(rule['source'])})"
            terminal.line(name_for_people(text))


def _value(key: Key, file: FileCheck | None) -> tuple[Any, str]:
    """Return the current value of a key, and the file that sets it, or ''."""
    value: Any = file.values if file else {}
    for part in key.name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None or file is None:
        return key.default, ""
    line = file.lines.get(tuple(key.name.split(".")))
    return value, f"{file.path}:{line}" if line else file.path


def _rules(home: Home, own_file: FileCheck | None) -> list[dict[str, Any]]:
    """Return the rules that apply in a home, each with its file."""
    shared = [FileCheck(path) for path in home.rules_files if os.path.lexists(path)]
    files = [*([own_file] if own_file else []), *shared]
    return [
        {"section": section, "pattern": pattern, "rule": rule, "source": file.path}
        for section in SECTIONS
        for file in files
        for pattern, rule in (file.projects if section == PROJECTS else file.rules)
    ]


def _show_all(settings: ShownSettings, terminal: Terminal) -> None:
    file, values = settings.home.config_file, settings.values
    there = "" if os.path.lexists(file) else ", which is not there yet"
    terminal.line(terminal.paint("bold", f"{terminal.short(file)}{there}"))
    shown = [key for key in KEYS if key.name in values]
    names = max(len(key.last_name) for key in shown) + 2
    for section in dict.fromkeys(key.section for key in shown):
        terminal.heading(
            f"{section}: {_sentence(SECTION_CLASSES[section].ABOUT)}".rstrip(": ")
            or "Updates and upkeep"
        )
        for key in [key for key in shown if key.section == section]:
            value, source = values[key.name]
            _show_key(key, names, written(value), terminal.short(source), terminal)
    if settings.rules:
        terminal.heading(
            "Rules: sessions and projects that other sessions see only in part or not at all"
        )
    for each in settings.rules:
        rule = name_for_people(f"{each['section']}.{each['pattern']}: {written(each['rule'])}")
        terminal.line(f"  {rule}  ({terminal.short(each['source'])})")
    terminal.line()
    terminal.line(
        f"To set a key: {called_as()} config KEY VALUE. To remove it again: config KEY --unset."
    )


def _show_key(key: Key, width: int, value: str, source: str, terminal: Terminal) -> None:
    """Print a key with its value, a sentence about it, and its file if there is one."""
    from_file = f" (set in {for_people(source)})" if source else ""
    about = f"{_sentence(key.about)}{from_file}"
    first = f"  {key.last_name:<{width}}{for_people(value):<{VALUE_CHARACTERS}}  "
    terminal.paragraph(about, indent=" " * (width + VALUE_CHARACTERS + 4), first=first)


def _sentence(about: str) -> str:
    """Return the first sentence of a text, on one line."""
    text = " ".join(about.split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""


def _meant(name: str, text: str | None) -> tuple[tuple[str, ...], Any]:
    """Return the path of a key, and the value that `text` means for it.

    With None as `text` the key is unset: its value is its default, or None for a rule. Raises
    WrongCallError."""
    section, _, pattern_and_key = name.partition(".")
    pattern, _, rule_key = pattern_and_key.rpartition(".")
    if section in SECTIONS:
        if text is None and not pattern:
            hint = "for example: session-memory config sessions.email.quote --unset"
            raise WrongCallError(f"{name}: you can unset only one part of a rule at a time", hint)
        if text is None:
            return (section, pattern, rule_key), None
        value = parsed(text)
        is_right = bool(pattern) and (section != PROJECTS or is_path(pattern))
        if (
            is_right
            and rule_key == SHARE
            and (share := "off" if value is False else value) in SHARES
        ):
            return (section, pattern, rule_key), share
        if rule_key not in WORDS or not is_right or not isinstance(value, bool):
            example = (
                "projects.~/private.ignore true"
                if section == PROJECTS
                else "sessions.email.quote false"
            )
            hint = f"for example: session-memory config {example}"
            words = (
                "a rule is ignore, quote or isolate_memories (true or false) or share (off, "
                "mine or team)"
            )
            raise WrongCallError(f"{name} {text}: {words}", hint)
        return (section, pattern, rule_key), value
    key = _key(name)
    if text is None:
        return tuple(key.name.split(".")), key.default
    value = text if key.kind in _TEXT_KINDS else as_meant(key, parsed(text))
    if problem := problem_with(key, value):
        raise WrongCallError(problem)
    return tuple(key.name.split(".")), value


def _default(value: Any) -> str:
    return "no rule" if value is None else f"the default, {written(value)}"


def _key(name: str) -> Key:
    """Return the key called `name`, which may lack its sections if it is unambiguous.

    Raises WrongCallError."""
    keys = [key for key in KEYS if key.name == name] or [
        key for key in KEYS if key.last_name == name
    ]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise WrongCallError(f"{name} could be any of {', '.join(key.name for key in keys)}")
    meant = closest(name, [key.name for key in KEYS]) or closest(
        name, [key.last_name for key in KEYS]
    )
    hint = f"did you mean {meant}?" if meant else "session-memory config shows all keys"
    raise WrongCallError(f"there is no key {name!r}", hint)
