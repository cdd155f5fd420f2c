"""`session-memory status`: the last run of upkeep, what waits for it, its errors, its cost, and where the data is."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import NAME, __version__
from ..errors import SessionMemoryError, described
from ..settings.homes import host_of
from ..settings.notices import notices
from ..store.location import find_location
from ..system.terminal import Terminal, byte_size
from ..text.format import counted
from ..text.timestamps import age, iso_time
from ..upkeep.runs import upkeep_runs
from .arguments import add_common
from .opened_store import with_store

if TYPE_CHECKING:
    import argparse

    from ..store.location import StoreLocation
    from ..store.values import Counts
    from ..upkeep.overview import Spent, Waiting
    from ..upkeep.runs import UpkeepRun, UpkeepRuns
    from .opened_store import OpenStore

SUMMARY = "show the last upkeep, what waits, errors, costs, and where the data is"
SHOWN = 3
_MODES = {"sessions": "with the start and end of sessions", "watch": "by `session-memory watch`", "off": "switched off"}
_BY_HOST = "by the host, while it runs"
_WHEN, _WHEN_HOST = "when a session starts or ends", "while the host runs"


class Kept(NamedTuple):
    """The number of files below a path, and their bytes."""

    path: str
    files: int
    bytes: int


class _InStore:
    """The part of the status that is in the store."""

    def __init__(self, waits: Waiting, spent: Spent | None, counts: Counts) -> None:
        self.waits = waits
        self.spent = spent
        self.counts = counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the state of things; 1 if the last run of upkeep failed. Raises SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    location = find_location(arguments.home, os.environ)
    runs = upkeep_runs(location)
    found, problems = _in_store(arguments, location)
    problems = [*_problems(runs, found), *problems, *notices(location.home)]
    terminal.line(terminal.paint("bold", f"{NAME} {__version__}"))
    terminal.line()
    _show_upkeep(runs, terminal, is_host=bool(host_of(location.home.root)))
    terminal.item("waits", _waits(found.waits) if found else _all_of(location))
    for problem in problems[:SHOWN] or ["nothing"]:
        terminal.item("went wrong", terminal.short(problem))
    if len(problems) > SHOWN:
        terminal.item("", f"and {len(problems) - SHOWN} more: see --json")
    if found and found.spent:
        terminal.item("spent", _cost(found.spent))
    places = _places(location)
    for label, place in places.items():
        what = f"{counted(place.files, 'file')}, {byte_size(place.bytes)}" if place.files else "nothing yet"
        terminal.item("" if label[-1].isdigit() else label, terminal.short(f"{place.path}: {what}"))
    if found:
        terminal.item("holds", _holds(found.counts))
    terminal.result(_as_json(runs, found, problems, places))
    return 1 if runs.runs and runs.runs[-1].problem else 0


def _in_store(arguments: argparse.Namespace, location: StoreLocation) -> tuple[_InStore | None, list[str]]:
    """Read the store, if there is one; return its part and the obstacles to reading it."""
    if find_spec("apsw") is None:
        return None, ["apsw is not installed, so that the store can be neither made nor read"]
    if not os.path.exists(location.database):
        return None, []
    found: list[_InStore] = []
    problems: list[str] = []

    def look(opened: OpenStore) -> int:
        from ..store.sqlite.queue_file import UnreadableQueueError
        from ..upkeep.overview import in_queue, waiting

        conversations: dict[str, int] = {}
        spent = None
        try:
            conversations, spent = in_queue(location)
        except UnreadableQueueError as error:
            problems.append(f"{error}; {error.hint}")
        store = opened.store
        found.append(_InStore(waiting(store, location, conversations), spent, store.counts(location.homes)))
        return 0

    try:
        with_store(arguments, look)
    except (SessionMemoryError, OSError) as error:
        return None, [described(error)]
    return found[0], problems


def _problems(runs: UpkeepRuns, found: _InStore | None) -> list[str]:
    """Return the errors of the last run, of its strategies and of files; then those of earlier runs, each once."""
    last = runs.runs[-1] if runs.runs else None
    said = [f"{age(time.time() - last.began)}: {last.problem}"] if last and last.problem else []
    said += last.stopped if last else []
    said += [f"{path}: {why}" for path, why in found.waits.unread.items()] if found else []
    before = {run.problem: run for run in runs.runs[:-1] if run.problem and not (last and run.problem == last.problem)}
    return [*said, *(f"{age(time.time() - run.began)}: {problem}" for problem, run in reversed(before.items()))]


def _show_upkeep(runs: UpkeepRuns, terminal: Terminal, *, is_host: bool) -> None:
    mode = _BY_HOST if is_host and runs.mode == "sessions" else _MODES[runs.mode]
    if runs.watcher:
        mode += f"; process {runs.watcher} watches"
    last = runs.runs[-1] if runs.runs else None
    if last is None:
        terminal.item("upkeep", f"{mode}; it has not run yet")
        return
    terminal.item("upkeep", f"{mode}; last {age(time.time() - last.began)}, {_done(last)}")
    if runs.mode == "sessions" and runs.not_before > time.time():
        begins = time.strftime("%H:%M", time.localtime(runs.not_before))
        terminal.item("next", f"from {begins} on, {_WHEN_HOST if is_host else _WHEN}")


def _done(run: UpkeepRun) -> str:
    """Describe the work of a run and its duration."""
    if not run.ended:
        return run.problem or "still at work"
    did = [
        text
        for number, text in (
            (run.files, f"{counted(run.files, 'file')} ({byte_size(run.bytes)})"),
            (run.archived, counted(run.archived, "archive")),
            (run.memories, counted(run.memories, "memory", "memories")),
        )
        if number
    ]
    cut_short = ", with more to do" if run.is_cut_short else ""
    return f"{run.ended - run.began:.1f} s: {', '.join(did) or 'nothing new'}{cut_short}"


def _waits(waits: Waiting) -> str:
    files = f"{counted(waits.files, 'file')} ({byte_size(waits.bytes)}) to be ingested" if waits.files else ""
    each = [
        f"{counted(number, 'conversation')} for memories ({id})" for id, number in waits.conversations.items() if number
    ]
    return "; ".join(filter(None, [files, ", ".join(each)])) or "nothing"


def _all_of(location: StoreLocation) -> str:
    """Return what waits if there is no store."""
    if not any(one.is_expected() for one in location.watched):
        return "nothing: no session was there yet"
    files = [file for one in location.watched if one.is_expected() for file in one.files([])]
    return f"{counted(len(files), 'file')} ({byte_size(sum(file.size for file in files))}): there is no store yet"


def _cost(spent: Spent) -> str:
    if not spent.tokens:
        return "no tokens in seven days"
    today = f"{spent.tokens_today:,} tokens (${spent.dollars_today:.2f}) today"
    unpriced = f", without the price of {' and '.join(spent.unpriced)}" if spent.unpriced else ""
    return f"{today}, {spent.tokens:,} (${spent.dollars:.2f}{unpriced}) in seven days"


def _holds(counts: Counts) -> str:
    talks = counted(sum(counts.conversations.values()), "conversation")
    return f"{counted(counts.files, 'transcript')}, {talks}, {byte_size(counts.text_bytes)} of text"


def _places(location: StoreLocation) -> dict[str, Kept]:
    """Return the places of session data and their sizes; the transcripts, which are only read, come first."""
    home = location.home
    roots = [one.root for one in location.watched if os.path.isdir(one.root)]
    read = {f"transcripts{f' {number}' if number > 1 else ''}": root for number, root in enumerate(roots, 1)}
    own = {"store": os.path.dirname(location.database)}
    if host_of(home.root):
        own["groups"] = f"{home.root}/groups"  # with the archives and memories of each
    else:
        own |= {"archives": home.conversations_dir, "memories": home.memories_dir}
    own["state"] = home.state_dir
    return {label: _kept(path) for label, path in {**read, **own}.items()}


def _kept(path: str) -> Kept:
    """Return the size of the files below `path`, which may be a file."""
    files = size = 0
    for directory, _, names in os.walk(path):
        for name in names:
            try:
                size += os.lstat(os.path.join(directory, name)).st_size
                files += 1
            except OSError:  # it has gone meanwhile
                continue
    return Kept(path, files, size)


def _as_json(
    runs: UpkeepRuns, found: _InStore | None, problems: list[str], places: dict[str, Kept]
) -> dict[str, Any]:  # fmt: skip
    return {
        "version": __version__,
        "upkeep": runs.mode,
        "watcher": runs.watcher or None,
        "not_before": iso_time(runs.not_before) if runs.not_before else None,
        "runs": [
            {**vars(run), "began": iso_time(run.began), "ended": iso_time(run.ended) if run.ended else None}
            for run in runs.runs
        ],
        "waiting": found.waits._asdict() if found else None,
        "problems": problems,
        "spent": found.spent._asdict() if found and found.spent else None,
        "holds": found.counts._asdict() if found else None,
        "places": {label: place._asdict() for label, place in places.items()},
    }
