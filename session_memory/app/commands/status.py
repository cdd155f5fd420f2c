"""The overview of the bare command, and the section `status` of `doctor`.

They show upkeep, its pending work, its errors, its cost, and where the data is."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import NAME, __version__
from ...awareness.events.delivery_state import delivery_state
from ...awareness.events.log import notices
from ...common.errors import SessionMemoryError, described
from ...common.system.files import is_file
from ...common.system.garbage import without_collection
from ...common.system.tables import AlignedRows, fitted
from ...common.system.terminal import Terminal, byte_size, called_as
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...history.disk import Sizes, over_limit, size_line
from ...history.store.location import StoreLocation, find_location
from ...sessions.settings.program import program_paths
from ...sessions.transcripts.sessions import UnknownSessionError, find_sessions
from ..upkeep._runs import UpkeepRun, UpkeepRuns, upkeep_runs
from .opened_store import OpenStore, with_store
from .output import CheckResult

if TYPE_CHECKING:  # these need apsw, which may be missing
    from ...history.copies.deletions import Kept, RuntimeDeletion
    from ...history.store.values import Counts
    from ._upkeep_overview import Spent, Waiting

SHOWN = 3
TITLE_CHARACTERS = 40
_MODES = {
    "sessions": "with the start and end of sessions",
    "watch": "by `session-memory watch`",
    "off": "switched off",
}
DAY_SECONDS = 24 * 3600
LISTED = 20  # sessions, for the overview
_NEXT_STEPS = (
    ("page", "show agents, work and updates in the browser"),
    ("search WORDS", "find messages of any session"),
    ("sessions", "list the sessions; `read WORD` shows one"),
    ("doctor", "find problems, and how to fix them"),
    ("help all", "all commands"),
)


class StoreState(NamedTuple):
    """The state of the store.

    It has the pending work, the strategies' spending (None if unreadable), the contents of the
    store, the runtimes that delete sessions, and how deleted sessions are kept."""

    waits: Waiting
    spent: Spent | None
    counts: Counts
    deletions: list[RuntimeDeletion]
    kept: Kept


@without_collection()
def check_status(arguments: argparse.Namespace) -> Status:
    """Return the state of upkeep and the store, for `doctor`. Raises SessionMemoryError."""
    location = find_location(arguments.home, os.environ)
    runs = upkeep_runs(location)
    for directory in location.watched:
        directory.statuses = {}
    contents, obstacles = _store_state(arguments, location)
    sizes = Sizes({path: status.st_size for path, status in _statuses(location).items()})
    usage, limit = sizes.usage(location), location.home.settings().disk_bytes
    problems = [
        *_problems(runs, contents),
        *obstacles,
        *notices(location.home),
        *_disk_problems(usage, limit),
    ]
    return Status(runs, contents, problems, usage, limit, _places(location, sizes), location)


@dataclass(frozen=True)
class Status(CheckResult):
    """The state of upkeep and the store.

    `contents` is None if the store cannot be read. `places` has a path, the number of files there
    and their bytes."""

    runs: UpkeepRuns
    contents: StoreState | None
    problems: list[str]
    usage: dict[str, int]
    limit: int
    places: dict[str, tuple[str, int, int]]
    location: StoreLocation

    @property
    def is_well(self) -> bool:
        """True if the last upkeep succeeded."""
        return not (self.runs.runs and self.runs.runs[-1].problem)

    def show(self, terminal: Terminal) -> None:
        contents, problems = self.contents, self.problems
        terminal.line(terminal.paint("bold", f"{NAME} {__version__}"))
        terminal.line()
        _show_upkeep(self.runs, terminal, is_shared=bool(self.location.home.shared_root))
        terminal.item("waits", _waits(contents.waits) if contents else _all_of(self.location))
        for problem in problems[:SHOWN] or ["nothing"]:
            terminal.item("went wrong", terminal.short(problem))
        if len(problems) > SHOWN:
            terminal.item("", f"and {len(problems) - SHOWN} more: see --json")
        if contents and contents.spent:
            terminal.item("spent", _cost(contents.spent))
        for label, (path, files, total) in self.places.items():
            what = f"{counted(files, 'file')}, {byte_size(total)}" if files else "nothing yet"
            terminal.item("" if label[-1].isdigit() else label, terminal.short(f"{path}: {what}"))
        if contents:
            _show_contents(contents, terminal)
        terminal.item("disk", size_line(self.usage, self.limit))

    def as_json(self) -> dict[str, Any]:
        """Return the state as values for JSON."""
        runs, contents = self.runs, self.contents
        return {
            "version": __version__,
            "upkeep": runs.mode,
            "watcher": runs.watcher or None,
            "not_before": iso_time(runs.not_before) if runs.not_before else None,
            "runs": [
                {
                    **vars(run),
                    "began": iso_time(run.began),
                    "ended": iso_time(run.ended) if run.ended else None,
                }
                for run in runs.runs
            ],
            "waiting": contents.waits._asdict() if contents else None,
            "problems": self.problems,
            "spent": contents.spent._asdict() if contents and contents.spent else None,
            "holds": contents.counts._asdict() if contents else None,
            "deletions": [each._asdict() for each in contents.deletions] if contents else [],
            "kept": contents.kept._asdict() if contents else None,
            "disk": {"bytes": self.usage, "limit": self.limit},
            "places": {
                label: dict(zip(("path", "files", "bytes"), place))
                for label, place in self.places.items()
            },
        }


def _show_contents(contents: StoreState, terminal: Terminal) -> None:
    from ...history.copies.deletions import deletion_lines, kept_line

    talks = counted(sum(contents.counts.conversations.values()), "conversation")
    size = byte_size(contents.counts.text_bytes)
    files = counted(contents.counts.files, "transcript")
    terminal.item("holds", f"{files}, {talks}, {size} of text")
    for number, line in enumerate(deletion_lines(contents.deletions)):
        terminal.item("" if number else "deleted by", terminal.short(line))
    terminal.item("keeps", kept_line(contents.kept))


@without_collection()
def show_overview() -> int:
    """Print the overview; return 1 if the last upkeep failed. Raises SessionMemoryError."""
    terminal = Terminal(os.environ)
    location = find_location(None, os.environ)
    for directory in location.watched:
        directory.statuses = {}
    runs = upkeep_runs(location)
    state, obstacles = _store_state(argparse.Namespace(home=None, json=False), location)
    disk = _disk_problems(Sizes().usage(location), location.home.settings().disk_bytes)
    problems = [*_problems(runs, state), *obstacles, *notices(location.home), *disk]
    is_installed = program_paths(os.environ).ledger_file.exists() or os.path.exists(
        location.home.state_dir
    )
    if not is_installed:
        problems.insert(0, "no agent has the hooks yet")
    about = "all is well" if not problems else counted(len(problems), "thing") + " to look at"
    holds = (
        f"; {counted(sum(state.counts.conversations.values()), 'conversation')} in the store"
        if state
        else ""
    )
    terminal.line(terminal.paint("bold", f"{NAME} {__version__}: {about}{holds}"))
    for problem in problems[:1]:
        more = f" (and {len(problems) - 1} more: {called_as()} doctor)" if len(problems) > 1 else ""
        room = terminal.width - len(more) - 4
        terminal.line(
            f"  {terminal.paint('yellow', '!')} "
            f"{shorten(terminal.short(one_line(problem)), room)}{more}"
        )
    _show_now(terminal, _statuses(location), of_all_projects=not location.home.sessions_dir)
    _show_next(terminal, state, is_installed=bool(is_installed))
    return 1 if runs.runs and runs.runs[-1].problem else 0


def _show_next(terminal: Terminal, state: StoreState | None, *, is_installed: bool) -> None:
    """Print what a person can do next, each step with its command."""
    steps = (
        [("install", "let your agents know what their other sessions do")]
        if not is_installed
        else []
    )
    soon = sum(deletion.soon for deletion in state.deletions) if state else 0
    if state and soon and state.kept.form in ("text", "none"):
        steps += [("config keep whole", f"keep {counted(soon, 'session')}, else deleted in 7 days")]
    steps += _NEXT_STEPS[: len(_NEXT_STEPS) - len(steps)]
    width = max(len(words) for words, _ in steps)
    terminal.heading("Next")
    for words, what in steps:
        terminal.line(f"  {called_as()} {words:<{width}}  {what}")


def _statuses(location: StoreLocation) -> dict[str, os.stat_result]:
    """Return the statuses of transcripts that were taken to see if the store is up to date."""
    statuses: dict[str, os.stat_result] = {}
    for directory in location.watched:
        statuses.update(directory.statuses or {})
    return statuses


def _show_now(
    terminal: Terminal, statuses: dict[str, os.stat_result], *, of_all_projects: bool
) -> None:
    """Print the sessions of the last day, else the latest ones, and the latest collision that a
    session will get."""
    now = time.time()
    try:
        sessions = find_sessions(None, of_all_projects, os.environ, most=LISTED, statuses=statuses)
    except UnknownSessionError:
        sessions = []
    listed = [session for session in sessions if session.last_at >= now - DAY_SECONDS]
    none = f"no session in the last day{'. The latest:' if sessions else ''}"
    more = (
        f"{'at least ' if len(listed) == LISTED else ''}{counted(len(listed), 'session')} in "
        f"the last day"
    )
    terminal.heading(f"Now: {more if listed else none}")
    rows = [
        (
            (age(now - session.last_at), session.runtime.TITLE, session.project),
            partial(fitted, session.title(terminal.width)),
        )
        for session in (listed or sessions)[:SHOWN]
    ]
    for line in AlignedRows(rows).lines(terminal.width - 2):
        terminal.line(f"  {line}")
    for session in listed if listed else ():
        if is_file(session.home.cursor_file(session.session.key) + ".lock"):
            waiting = delivery_state(session, os.environ).waiting.splitlines()
            collision = next((line for line in waiting if line.startswith("! ")), "")
            if collision:
                title = session.title(TITLE_CHARACTERS)
                text = f'  ! next update of "{title}": {for_people(collision[2:])}'
                terminal.line(fitted(text, terminal.width))
                return


def _store_state(
    arguments: argparse.Namespace, location: StoreLocation
) -> tuple[StoreState | None, list[str]]:
    """Return the state of the store, if there is one, and the problems with reading it."""
    if find_spec("apsw") is None:
        return None, ["apsw is not installed, so the store cannot be made or read"]
    if not os.path.exists(location.database):
        return None, []
    from ...history.copies.deletions import deletions, kept_or_why_not, problems_of
    from ._upkeep_overview import waiting

    def look(opened: OpenStore) -> tuple[StoreState, list[str]]:
        waits, spent, problems = waiting(opened.store, location)
        deleted = deletions(location, opened.store.directories(), _statuses(location))
        how, why_not = kept_or_why_not(location, location.home.settings())
        counts = opened.store.counts()
        return StoreState(waits, spent, counts, deleted, how), [
            *problems,
            *problems_of(deleted),
            *why_not,
        ]

    try:
        return with_store(arguments, look)
    except (SessionMemoryError, OSError) as error:
        return None, [described(error)]


def _problems(runs: UpkeepRuns, state: StoreState | None) -> list[str]:
    """Return the current problems, the most important first.

    They are the errors of the last run, its strategies and its files; the conversations that wait
    for a retry; and the errors of earlier runs, each once."""
    last = runs.runs[-1] if runs.runs else None
    said = [f"{age(time.time() - last.began)}: {last.problem}"] if last and last.problem else []
    said += last.stopped if last else []
    said += state.waits.retries if state else []
    said += [f"{path}: {why}" for path, why in state.waits.unread.items()] if state else []
    before = {
        run.problem: run
        for run in runs.runs[:-1]
        if run.problem and not (last and run.problem == last.problem)
    }
    return [
        *said,
        *(
            f"{age(time.time() - run.began)}: {problem}"
            for problem, run in reversed(before.items())
        ),
    ]


def _show_upkeep(runs: UpkeepRuns, terminal: Terminal, *, is_shared: bool) -> None:
    mode, when = (
        _MODES[runs.mode],
        "while the host runs" if is_shared else "when a session starts or ends",
    )
    if is_shared and runs.mode == "sessions":
        mode = "by the host, while it runs"
    if runs.watcher:
        mode += f"; process {runs.watcher} watches"
    last = runs.runs[-1] if runs.runs else None
    if last is None:
        terminal.item("upkeep", f"{mode}; it has not run yet")
        return
    terminal.item("upkeep", f"{mode}; last {age(time.time() - last.began)}, {_done(last)}")
    if runs.mode == "sessions" and runs.not_before > time.time():
        terminal.item(
            "next", f"from {time.strftime('%H:%M', time.localtime(runs.not_before))} on, {when}"
        )


def _done(run: UpkeepRun) -> str:
    if not run.ended:
        return run.problem or "still at work"
    did = [
        f"{counted(run.files, 'file')} ({byte_size(run.bytes)})" if run.files else "",
        counted(run.archived, "archive") if run.archived else "",
        counted(run.memories, "memory", "memories") if run.memories else "",
    ]
    cut_short = ", with more to do" if run.is_cut_short else ""
    return (
        f"{run.ended - run.began:.1f} s: {', '.join(filter(None, did)) or 'nothing new'}{cut_short}"
    )


def _waits(waits: Waiting) -> str:
    files = (
        f"{counted(waits.files, 'file')} ({byte_size(waits.bytes)}) to be ingested"
        if waits.files
        else ""
    )
    each = [
        f"{counted(number, 'conversation')} for memories ({id})"
        for id, number in waits.conversations.items()
        if number
    ]
    return "; ".join(filter(None, [files, ", ".join(each)])) or "nothing"


def _all_of(location: StoreLocation) -> str:
    """Return what waits if there is no store."""
    if not any(directory.is_expected() for directory in location.watched):
        return "nothing: there was no session yet"
    files = [
        file
        for directory in location.watched
        if directory.is_expected()
        for file in directory.files([])
    ]
    return (
        f"{counted(len(files), 'file')} ({byte_size(sum(file.size for file in files))}): "
        f"there is no store yet"
    )


def _cost(spent: Spent) -> str:
    if not spent.tokens:
        return "no tokens in seven days"
    today = f"{spent.tokens_today:,} tokens (${spent.dollars_today:.2f}) today"
    unpriced = f", without the price of {' and '.join(spent.unpriced)}" if spent.unpriced else ""
    return f"{today}, {spent.tokens:,} (${spent.dollars:.2f}{unpriced}) in seven days"


def _disk_problems(usage: dict[str, int], limit: int) -> list[str]:
    """Return a problem if the data takes more disk space than the person allows."""
    problem = over_limit(usage, limit)
    return [problem] if problem else []


def _places(location: StoreLocation, sizes: Sizes) -> dict[str, tuple[str, int, int]]:
    """Return the directories with session data, each with its number of files and its bytes.

    The transcripts come first, although they are only read."""
    home = location.home
    roots = [directory.root for directory in location.watched if os.path.isdir(directory.root)]
    paths = {
        f"transcripts{f' {number}' if number > 1 else ''}": root
        for number, root in enumerate(roots, 1)
    }
    paths["store"] = os.path.dirname(location.database)
    if home.shared_root:
        paths["groups"] = f"{home.root}/groups"  # with the archives and memories of each
    else:
        paths |= {"archives": home.conversations_dir, "memories": home.memories_dir}
    paths["state"] = home.state_dir
    return {label: _measured(path, sizes) for label, path in paths.items()}


def _measured(path: str, sizes: Sizes) -> tuple[str, int, int]:
    below = [size for _, size in sizes.below(path)]
    return path, len(below), sum(below)
