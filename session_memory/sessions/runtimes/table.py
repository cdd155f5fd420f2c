"""The runtimes by their transcript format.

These are the rows of `extension_points.RUNTIMES`, and the runtimes of other packages that an install
has noted (see outside.py)."""

from __future__ import annotations

from ...common.system.files import is_directory, is_file, user_dir
from .base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .outside import NotedRuntimes

    Row = tuple[str, ...]  # a runtime's place, and the two signs of its use


def _rows() -> dict[str, tuple[str, str, str]]:
    from ...extension_points import RUNTIMES

    return RUNTIMES


_PACKAGE = __name__.partition(".")[0]
PREBUILT = _rows()  # so a bundle has the rows without the module
_loaded: dict[str, Runtime] = {}  # of this package: importing a name again takes 2 microseconds
_outside: list[NotedRuntimes | None] = []  # once the note was read


def runtime(format: str) -> Runtime:
    """Return the runtime of a transcript format.

    Formats: `agent-sdk` (Claude Code and claude-agent-sdk), `pi`, `codex`, `qwen`, `copilot`,
    `opencode`, `kilo`, `gemini`, `droid`, `cline`, `openclaw`, `omp`, `kimi`, `hermes`, `atif`,
    and the names of runtimes in other packages. Raises ValueError."""
    if format in _loaded:
        return _loaded[format]
    if format in PREBUILT:
        module, _, attribute = PREBUILT[format][0].partition(":")
        # as common.extensions.load does, but without one more module for a prompt
        _loaded[format] = getattr(
            __import__(f"{_PACKAGE}.{module}", fromlist=[attribute]), attribute
        )
        return _loaded[format]
    known = {other.name: other for other in _of_other_packages()}
    if format not in known:
        raise ValueError(
            f"unknown transcript format {format!r}: choose one of {', '.join([*PREBUILT, *known])}"
        )
    return known[format]


def all_runtimes() -> list[Runtime]:
    """Return all runtimes: this package's in the order of the table, then other packages'."""
    return [*built_in_runtimes(), *_of_other_packages()]


def built_in_runtimes() -> list[Runtime]:
    """Return the runtimes of this package, in the order of the table."""
    return [runtime(format) for format in PREBUILT]


def runtimes_here(environ: Mapping[str, str]) -> list[Runtime]:
    """Return the runtimes that the user with this environment may have used; load no others."""
    home = user_dir(environ)

    def is_here(row: Row) -> bool:
        return row[2] in environ or is_directory(f"{home}/{row[1]}")

    used = [runtime(format) for format, row in PREBUILT.items() if is_here(row)]
    return used + _of_other_packages(is_here, environ)


def outside_file(environ: Mapping[str, str]) -> str:
    """Return the file in which an install notes the runtimes of other packages.

    It is the person's, because it names code that is run. Raises SessionMemoryError."""
    from ..settings.homes import person_home

    return person_home(environ).state_dir + "/runtimes.json"


def read_outside_again() -> None:
    """Read the noted runtimes again when they are next asked for."""
    _outside.clear()


def _of_other_packages(
    is_wanted: Callable[[Row], bool] = lambda row: True, environ: Mapping[str, str] | None = None
) -> list[Runtime]:
    """Return the noted runtimes of other packages whose rows are wanted, by default all."""
    if not _outside:
        _outside.append(_noted(environ))
    noted = _outside[0]
    return noted.usable(is_wanted) if noted is not None else []


def _noted(environ: Mapping[str, str] | None) -> NotedRuntimes | None:
    from ...common.errors import SessionMemoryError
    from ..settings.homes import environment

    try:
        path = outside_file(environment() if environ is None else environ)
    except SessionMemoryError:  # no home directory is known
        return None
    if not is_file(path):
        return None
    from .outside import NotedRuntimes

    return NotedRuntimes(path, PREBUILT)


def sender_of(
    event: Mapping[str, Any], environ: Mapping[str, str], expected: Runtime
) -> Runtime | None:
    """Return the runtime that sent an event to a hook of the runtime `expected`.

    It is `expected` itself, or another runtime that takes its plugins or runs the hooks in its
    settings. Return None if no known runtime sent it, or if the event must not be answered."""
    # Cursor: too little is known about it to answer
    if "cursor_version" in event or "conversation_id" in event:
        return None
    if expected.is_own(event, environ):
        return expected
    return next((other for other in all_runtimes() if other.is_own(event, environ)), None)
