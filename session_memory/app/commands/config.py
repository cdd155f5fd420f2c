"""`session-memory config`: every value in force and the file it comes from; sets one."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ...awareness.activity.delivery import kind_of_delivery
from ...awareness.events.log import notices
from ...common.errors import WrongCallError
from ...common.system.terminal import Terminal, called_as
from ...common.text.format import enumerated
from ...common.text.sanitize import for_people, name_for_people
from ...history.store.location import find_location
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.check import FileCheck, as_meant, problem_with, refused
from ...sessions.settings.compiled import Key, Kind
from ...sessions.settings.homes import Home
from ...sessions.settings.keys import parsed, set_key, unset_key, written
from ...sessions.settings.replaced_keys import current
from ...sessions.settings.rules import SHARES
from ...sessions.settings.rules_check import PROJECTS, SECTIONS, SHARE, WORDS, closest, is_path
from ...sessions.settings.section_table import KEYS
from ...sessions.settings.section_table import SECTIONS as SECTION_CLASSES
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
    """Show the settings of a home, or set one; return 1 if one is invalid. Raises
    SessionMemoryError, OSError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    home, name = find_location(arguments.home, os.environ).caller_home, current(arguments.key)
    if arguments.unset and (not name or arguments.value is not None):
        raise WrongCallError(
            "--unset goes with one key", "for example: session-memory config scope --unset"
        )
    if arguments.value is not None or arguments.unset:
        return _change(home, name, arguments, terminal)
    confined = (home.root, home.rules_files[0]) if home.is_confined else ()
    own = FileCheck(home.config_file, *confined) if os.path.lexists(home.config_file) else None
    rules = _rules(home, own)
    values = {key.name: _value(key, own) for key in KEYS if key.name not in SECTIONS and key.about}
    if name:
        wrong = [fault.text for fault in own.faults if fault.key in ("", name)] if own else []
        for text in wrong:
            terminal.note(for_people(text))
        return _show_one(name, values, rules, terminal) or bool(wrong)
    return _show_home(home, values, rules, terminal)


def _change(home: Home, name: str, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Set a key of the home's file, or remove it with --unset."""
    at, value = _meant(name, arguments.value)
    key, file = ".".join(at), terminal.short(home.config_file)
    changed, refusals = (
        switch_status_line(home, os.environ, is_on=value) if at == ("statusline",) else ([], [])
    )
    if not arguments.unset:
        set_key(home.config_file, at, value)
        terminal.line(f"{key}: {written(value)}, in {file}, from the next prompt on")
    elif unset_key(home.config_file, at):
        terminal.line(f"{key}: taken out of {file}; from the next prompt on: {_default(value)}")
    else:
        terminal.line(f"{key} is not set in {file}: {_default(value)}")
    for path in changed:
        terminal.line(f"  in {terminal.short(str(path))}, for sessions that start from now on")
    for text in [*refused(home, key), *refusals]:
        terminal.note(for_people(text))
    terminal.result({"key": key, "value": value, "source": home.config_file})
    if at[0] in SECTIONS:
        # only here: values are shown without the store
        from ..upkeep.rules import follow_rules

        follow_rules(find_location(arguments.home, os.environ), os.environ, terminal.note)
    return 0


def _show_home(
    home: Home,
    values: dict[str, tuple[Any, str]],
    rules: list[dict[str, Any]],
    terminal: Terminal,
) -> int:
    """Show all settings of a home; return 1 if one is invalid."""
    invalid = notices(home)
    ways = {
        runtime.name: kind_of_delivery(runtime)
        for runtime in all_runtimes()
        if runtime.PROMPT_EVENT
    }
    with terminal.paged():
        _show_all(home, values, rules, terminal)
        for kind in dict.fromkeys(ways.values()):
            names = enumerated(name for name, its_kind in ways.items() if its_kind == kind)
            terminal.line(terminal.paint("dim", f"Delivery of updates in {names}: {kind}."))
        for notice in invalid:
            terminal.note(for_people(notice))
    shown = {
        name: {"value": value, "source": source or None} for name, (value, source) in values.items()
    }
    terminal.result(
        {
            "file": home.config_file,
            "values": shown,
            "rules": rules,
            "delivery": ways,
            "notices": invalid,
        }
    )
    return 1 if invalid else 0


def _value(key: Key, own: FileCheck | None) -> tuple[Any, str]:
    """Return the current value of a key, and the file that sets it, or ''."""
    found: Any = own.values if own else {}
    for part in key.name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None or own is None:
        return key.default, ""
    line = own.lines.get(tuple(key.name.split(".")))
    return found, f"{own.path}:{line}" if line else own.path


def _rules(home: Home, own: FileCheck | None) -> list[dict[str, Any]]:
    """Return the rules that apply in a home, each with its file."""
    shared = [FileCheck(path) for path in home.rules_files if os.path.lexists(path)]
    files = [*([own] if own else []), *shared]
    return [
        {"section": section, "pattern": pattern, "rule": rule, "source": file.path}
        for section in SECTIONS
        for file in files
        for pattern, rule in (file.projects if section == PROJECTS else file.rules)
    ]


def _show_all(
    home: Home, values: dict[str, tuple[Any, str]], rules: list[dict[str, Any]], terminal: Terminal
) -> None:
    there = "" if os.path.lexists(home.config_file) else ", which is not there yet"
    terminal.line(terminal.paint("bold", f"{terminal.short(home.config_file)}{there}"))
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
    if rules:
        terminal.heading("Rules: sessions and projects that others see only in part, or not at all")
    for one in rules:
        rule = name_for_people(f"{one['section']}.{one['pattern']}: {written(one['rule'])}")
        terminal.line(f"  {rule}  ({terminal.short(one['source'])})")
    terminal.line()
    terminal.line(
        f"{called_as()} config KEY VALUE sets one, config KEY --unset takes it out again."
    )


def _show_key(key: Key, width: int, value: str, source: str, terminal: Terminal) -> None:
    """Print a key with its value and a sentence about it; its file if it has one."""
    from_file = f" (set in {for_people(source)})" if source else ""
    about = f"{_sentence(key.about)}{from_file}"
    first = f"  {key.last_name:<{width}}{for_people(value):<{VALUE_CHARACTERS}}  "
    terminal.paragraph(about, indent=" " * (width + VALUE_CHARACTERS + 4), first=first)


def _sentence(about: str) -> str:
    """Return the first sentence of a text, on one line."""
    text = " ".join(about.split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""


def _show_one(
    name: str, values: dict[str, tuple[Any, str]], rules: list[dict[str, Any]], terminal: Terminal
) -> int:
    if name in SECTIONS:
        found = [one for one in rules if one["section"] == name]
        for one in found:
            rule = f"{one['pattern']}: {written(one['rule'])}  ({terminal.short(one['source'])})"
            terminal.line(name_for_people(rule))
        terminal.result({"key": name, "rules": found})
        return 0
    key = _key(name)
    value, source = values[key.name]
    terminal.line(f"{name_for_people(written(value))}  ({terminal.short(source) or 'default'})")
    terminal.result({"key": key.name, "value": value, "source": source or None})
    return 0


def _meant(name: str, text: str | None) -> tuple[tuple[str, ...], Any]:
    """Return the key's path and the value of `text`.

    To unset the key, `text` is None: then the value is its default, or None for a rule. Raises
    WrongCallError."""
    section, _, rest = name.partition(".")
    pattern, _, rule_key = rest.rpartition(".")
    if section in SECTIONS:
        if text is None and not pattern:
            hint = "for example: session-memory config sessions.email.quote --unset"
            raise WrongCallError(f"{name}: one part of a rule is unset at a time", hint)
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
    """Return the key called `name`, with its sections, or without them if unambiguous. Raises
    WrongCallError."""
    found = [key for key in KEYS if key.name == name] or [
        key for key in KEYS if key.last_name == name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise WrongCallError(f"{name} could be any of {', '.join(key.name for key in found)}")
    meant = closest(name, [key.name for key in KEYS]) or closest(
        name, [key.last_name for key in KEYS]
    )
    hint = f"did you mean {meant}?" if meant else "session-memory config shows all keys"
    raise WrongCallError(f"there is no key {name!r}", hint)
