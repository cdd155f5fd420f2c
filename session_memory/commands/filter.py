"""`session-memory filter`: shows the text of a transcript that a model reads, and how much shorter it is."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from ..errors import SessionMemoryError, WrongCallError
from ..memories.filtering import filtered
from ..memories.reduction import Reduction, measured, transcript_entries
from ..memories.runner import settings_of
from ..settings.sections import MemorySettings
from ..store.location import StoreLocation, find_location
from ..store.rules import ReadRules
from ..system.terminal import Terminal
from ..text.format import counted
from .arguments import add_common, transcripts_below
from .sessions import chosen_session

SUMMARY = "show the part of conversations that a model reads, and how much shorter it is"
SUFFIX = ".jsonl"
NAME_CHARACTERS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="*", help="a transcript, a directory of them, or a session")
    parser.add_argument("--all", action="store_true", help="all transcripts that go into the store")
    parser.add_argument("--show", action="store_true", help="print the remaining text instead of its size")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    location = find_location(arguments.home, os.environ)
    settings = settings_of(location)
    if not arguments.path and not arguments.all:
        raise WrongCallError("no transcript was named", "name one, or a directory of them, or use --all")
    named = [_path_of(word, arguments) for word in arguments.path]
    paths = [*transcripts_below(named), *(_all(location) if arguments.all else ())]
    if not paths:
        raise SessionMemoryError("there is no transcript to look at", f"a transcript's name ends with {SUFFIX}")
    if arguments.show:
        _show(paths, settings, location.rules(), terminal)
    else:
        _measure(paths, settings, location.rules(), terminal)
    return 0


def _path_of(word: str, arguments: argparse.Namespace) -> str:
    """Return the path of a transcript: the word itself, if it is one, or that of the session which it means."""
    if os.path.exists(word) or os.sep in word:
        return word
    named = argparse.Namespace(home=arguments.home, all=False)
    return chosen_session(word, named, os.environ).session.path


def _all(location: StoreLocation) -> Iterator[str]:
    for watched in location.watched:
        try:
            yield from (file.path for file in watched.files())
        except OSError:
            continue  # a runtime makes its directory with its first session


def _show(paths: list[str], settings: MemorySettings, rules: ReadRules, terminal: Terminal) -> None:
    told = {path: transcript_entries(path, rules) for path in paths}
    texts = {path: filtered(entries, settings.filtering) for path, entries in told.items() if entries}
    for path, text in texts.items():
        if len(texts) > 1:
            terminal.heading(terminal.short(path))
        terminal.line(text)
    terminal.result({"transcripts": [{"path": path, "text": text} for path, text in texts.items()]})


def _measure(paths: list[str], settings: MemorySettings, rules: ReadRules, terminal: Terminal) -> None:
    rows = [(path, size) for path in paths if (size := measured(path, settings, rules))]
    total = Reduction()
    for _, size in rows:
        total = total.plus(size)
    shown = [*rows, *([("all", total)] if len(rows) > 1 else [])]
    table: list[tuple[str, ...]] = [("TRANSCRIPT", "BEFORE", "TOKENS", "AFTER", "TOKENS", "LESS")]
    for path, size in shown:
        name = path.removesuffix(SUFFIX)
        name = name if len(name) < NAME_CHARACTERS else f"…{name[-NAME_CHARACTERS + 2 :]}"  # the end tells more
        numbers = (size.characters_before, size.tokens_before, size.characters_after, size.tokens_after)
        table.append((name, *[f"{number:,}" for number in numbers], f"{size.reduction:.1%}"))
    terminal.table(table, range(1, 6))
    terminal.line()
    share = f"{total.reduction:.1%} less to read: {total.characters_before:,} characters before, "
    pieces = f"{counted(total.exchanges, 'exchange')} in {counted(total.chunks, 'chunk')}"
    terminal.line(f"{share}{total.characters_after:,} after ({pieces}).")
    terminal.line("Before counts the content of messages: text, thinking, tool parameters, tool results; no images.")
    if total.file_bytes:
        share = f"{max(0.0, 1 - total.characters_after / total.file_bytes):.1%}"
        terminal.line(f"That is {share} less than the files themselves, which are {total.file_bytes:,} bytes.")
    left_out = len(paths) - len(rows)
    if left_out:
        terminal.note(f"{counted(left_out, 'file')} skipped: excluded by rules, or of no known runtime")
    terminal.result({"transcripts": [_as_json(path, size) for path, size in rows], "all": _as_json("", total)})


def _as_json(path: str, size: Reduction) -> dict[str, object]:
    sizes = {**size._asdict(), "reduction": round(size.reduction, 4)}
    return {"path": path, **sizes} if path else sizes
