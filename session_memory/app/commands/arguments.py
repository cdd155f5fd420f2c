"""Arguments that several commands share, and the values made of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.text.format import whole_number
from ...common.text.timestamps import EXAMPLES, last_millisecond, milliseconds_at

if TYPE_CHECKING:
    from ...history.store.location import StoreLocation
    from ...history.store.values import Filter
    from ..projects import Project

HOME = (
    "an agent's home, a host, or a runtime's directory (~/.claude); default: found from the "
    "current directory"
)
NO_LIMIT = 10**9  # as a filter's limit
LARGEST = 10**12  # number that SQLite can still multiply
AROUND = 6  # messages before and after the one that `read --around` names
MESSAGE_CHARACTERS = 2000  # of a conversation's message, without --full


def add_common(
    parser: argparse.ArgumentParser,
    *,
    filter_limit: int = 0,
    limit: int = 0,
    shared: bool = False,
    private: bool = False,
) -> None:
    """Add common options to a command.

    These are always `--home` and `--json`. With `filter_limit`, the default number of results, the
    options of `filter_of` are added; with `limit`, only `--limit`; if wanted, `--team` and
    `--include-private`."""
    if filter_limit:
        _add_filter(parser, filter_limit)
    if limit:
        _add_limit(parser, limit)
    if shared:
        parser.add_argument(
            "--team",
            dest="shared",
            action="store_true",
            help="search your machines and all sessions that the team shares",
        )
    if private:
        add_private(parser)
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add `--home`."""
    parser.add_argument("--home", metavar="PATH", help=HOME)


def _add_filter(parser: argparse.ArgumentParser, limit: int) -> None:
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
        "--until", metavar="WHEN", type=_end_of_time, help="as for --since; a day counts to its end"
    )
    _add_limit(parser, limit)


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add `--project`, whose value is a Project, or None."""
    parser.add_argument(
        "--project",
        metavar="P",
        type=_project,
        help="only the repository of the path P (such as .); outside a repository, the directory P and "
        "below; if P is not a path, directories whose path contains P",
    )


def add_project_directory(parser: argparse.ArgumentParser, help: str) -> None:
    """Add a `--project` that is always a path; its value is an exact Project, or None."""
    parser.add_argument("--project", metavar="P", type=_directory, help=help)


def add_private(parser: argparse.ArgumentParser) -> None:
    """Add `--include-private`, which docs/use/privacy.md explains.

    It has no help text, because agents read help too."""
    parser.add_argument("--include-private", action="store_true", help=argparse.SUPPRESS)


class OnlyForPeopleError(SessionMemoryError):
    """An agent used an option that only people may use.

    Permission rules name commands without options, so a rule cannot exclude this option."""

    def __init__(self, option: str) -> None:
        super().__init__(
            f"{option}: only for people", "ask the user to run it in their own terminal"
        )


def _add_limit(parser: argparse.ArgumentParser, limit: int) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=limit, help=f"at most N ({limit})"
    )


def filter_of(arguments: argparse.Namespace, location: StoreLocation) -> Filter:
    """Return the filter for the arguments, within the groups visible from `location`."""
    from ...history.store.values import Filter  # imported late: agents --short asks no store

    wanted = Filter(
        session=arguments.session,
        since=arguments.since,
        until=arguments.until,
        limit=arguments.limit,
    )
    if arguments.project is None:
        return wanted
    from ..projects import limited_to  # imported late: few searches need it

    wanted = limited_to(arguments.project, wanted, location.home)
    if not getattr(arguments, "shared", False):
        return wanted
    from ...memory.shared_store import of_shared_project

    return of_shared_project(wanted, location.home)


def _project(text: str) -> Project:
    """Return the named project. Raises ArgumentTypeError."""
    from ..projects import read_project

    return _read_project(text, read_project)


def _directory(text: str) -> Project:
    """Return the project that is exactly this directory. Raises ArgumentTypeError."""
    from ..projects import Project, directory_spellings

    def read(path: str, environ: Mapping[str, str]) -> Project:
        return Project(directory_spellings(path, environ), is_exact=True)

    return _read_project(text, read)


def _read_project(text: str, read: Callable[[str, Mapping[str, str]], Project]) -> Project:
    try:
        return read(text, os.environ)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "the project is empty; write . for the current directory"
        ) from None
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"the current directory is not available: {error.strerror}"
        ) from None


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
    """Return a date, a time ago, today, yesterday or a weekday, in milliseconds since 1970.

    It is in local time; `now` is in seconds. Raises ArgumentTypeError."""
    return _read_time(text, milliseconds_at(text, now))


def _end_of_time(text: str, now: float | None = None) -> int:
    """Return a point in time like `point_in_time`; for a date, the last millisecond of that day.

    Raises ArgumentTypeError."""
    return _read_time(text, last_millisecond(text, now))


def _read_time(text: str, at: int | None) -> int:
    if at is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write {EXAMPLES}")
    return at
