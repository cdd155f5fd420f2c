"""Arguments that several commands share, and the values made of them."""

from __future__ import annotations

import argparse
import os

from ...common.errors import SessionMemoryError
from ...common.system.files import expanded, user_dir
from ...common.text.format import whole_number
from ...common.text.timestamps import EXAMPLES, last_millisecond, milliseconds_at
from ...history.store.location import StoreLocation
from ...history.store.values import Filter

HOME = (
    "an agent's home, a host, or a runtime's directory (~/.claude); default: found from the "
    "current directory"
)
NO_LIMIT = 10**9  # as a filter's limit
LARGEST = 10**12  # number that SQLite can still multiply


def add_common(
    parser: argparse.ArgumentParser,
    *,
    filter_limit: int = 0,
    limit: int = 0,
    team: bool = False,
    private: bool = False,
) -> None:
    """Add common options to a command.

    These are `--home` and `--json`; with a default of at most `filter_limit` results, the options
    of `filter_of`; with `limit`, only `--limit`; if wanted, `--team` and `--include-private`."""
    if filter_limit:
        add_filter(parser, filter_limit)
    if limit:
        add_limit(parser, limit)
    if team:
        parser.add_argument(
            "--team",
            action="store_true",
            help="search all machines: yours, and sessions that the team shares",
        )
    if private:
        add_private(parser)
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_home(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", metavar="PATH", help=HOME)


def add_filter(parser: argparse.ArgumentParser, limit: int) -> None:
    """Add the options of `filter_of`; `limit` is how many results are shown by default."""
    add_project(parser)
    parser.add_argument(
        "--session",
        metavar="S",
        default="",
        help="only this session: its id, or the beginning of it",
    )
    parser.add_argument(
        "--since", metavar="WHEN", type=point_in_time, help="2026-02-01, 3d, 2h, today, yesterday"
    )
    parser.add_argument(
        "--until", metavar="WHEN", type=end_of_time, help="the same; a day counts to its end"
    )
    add_limit(parser, limit)


def add_project(parser: argparse.ArgumentParser) -> None:
    project = "only the repository of the path P (such as .), or directories whose path contains P"
    parser.add_argument("--project", metavar="P", default="", help=project)


def add_private(parser: argparse.ArgumentParser) -> None:
    """Add `--include-private`, which docs/use/privacy.md explains.

    It has no help, because agents read that too."""
    parser.add_argument("--include-private", action="store_true", help=argparse.SUPPRESS)


class OnlyForPeopleError(SessionMemoryError):
    """An agent used an option that is only for people.

    The rule that permits the command permits any option."""

    def __init__(self, option: str) -> None:
        super().__init__(
            f"{option}: only for people", "ask the user to run it in a terminal of their own"
        )


def add_limit(parser: argparse.ArgumentParser, limit: int) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=limit, help=f"at most N ({limit})"
    )


def filter_of(arguments: argparse.Namespace, location: StoreLocation) -> Filter:
    """Return the filter for the arguments, within the groups visible from `location`."""
    from ...history.store.values import Filter  # imported late: not needed if nothing is new

    directories = repository_directories(arguments.project, location.home.repositories_file)
    folders = folders_of(directories)
    if directories and getattr(arguments, "team", False):
        from ...memory.shared_store import shared_engine

        directories = (shared_engine().project(location.home, directories[0]),)
    return Filter(
        project="" if directories else arguments.project,
        directories=directories,
        session=arguments.session,
        since=arguments.since,
        until=arguments.until,
        limit=arguments.limit,
        folders=folders,
    )


def repository_directories(path: str, notes_file: str) -> tuple[str, ...]:
    """Return the roots of all worktrees of a path's repository, then its earlier paths.

    The earlier paths are in `notes_file`. Return () if `path` is in no repository."""
    from ...common.system.git import find_worktree, worktrees_of
    from ...sessions.transcripts.earlier_paths import EarlierPaths

    path = expanded(path, os.environ)
    if not ("/" in path or path in (".", "..")) or not os.path.isdir(path):
        return ()
    found = find_worktree(os.path.realpath(path), user_dir(os.environ))
    if found is None:
        return ()
    roots = sorted({tree.root for tree in (found, *worktrees_of(found.common_dir)) if tree.root})
    return (*roots, *EarlierPaths(notes_file, found).paths)


def folders_of(directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the runtimes' folders for transcripts of sessions in these
    directories."""
    from ...sessions.runtimes.table import all_runtimes

    names = {
        runtime.project_dir("", directory)[len(runtime.transcripts_dir("")) + 1 :].partition("/")[0]
        for runtime in all_runtimes()
        if runtime.HAS_PROJECT_FOLDERS
        for directory in directories
    }
    return tuple(sorted(names))


def not_negative(text: str) -> int:
    """Return a whole number, LARGEST for a larger one. Raises ArgumentTypeError."""
    number = whole_number(text)
    if number is None or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return min(number, LARGEST)


def positive(text: str) -> int:
    """Return a whole number above 0, LARGEST for a larger one. Raises ArgumentTypeError."""
    number = whole_number(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return min(number, LARGEST)


def point_in_time(text: str, now: float | None = None) -> int:
    """Return a date, a time ago, today or yesterday, in milliseconds since 1970.

    It is in local time; `now` is in seconds. Raises ArgumentTypeError."""
    return _read_time(text, milliseconds_at(text, now))


def end_of_time(text: str, now: float | None = None) -> int:
    """Return the same for the end of a range: a day's last millisecond.

    Raises ArgumentTypeError."""
    return _read_time(text, last_millisecond(text, now))


def _read_time(text: str, at: int | None) -> int:
    if at is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write {EXAMPLES}")
    return at
