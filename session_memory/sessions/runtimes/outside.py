"""Runtimes in other packages: loads them, and keeps their faults from everything else.

An install notes them in a file of the person's state directory (see app/install/_outside_runtimes.py),
so a prompt neither searches for packages nor reads config.yaml for this.
"""

from __future__ import annotations

import sys

from ...common.system.files import read_whole
from ...common.system.json import as_object, decode
from . import _call_limit
from ._call_limit import CallLimit, OverdueCallError
from .base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from .table import Row

# It changes when a runtime that was written for the former number would no longer work.
INTERFACE = 1
# the members that a runtime must set to texts
_TEXTS = (
    "name",
    "TITLE",
    "USUAL_DIR",
    "CONFIG_VARIABLE",
    "TRANSCRIPTS",
    "SESSIONS_FOLDER",
    "PROGRAM",
    "OWN_ID_VARIABLE",
    "AGENT_VARIABLE",
)
_FAILURES = (Exception, SystemExit)  # of code in another package
# The members that are asked about the sessions or events of all runtimes, with the answer that
# counts if they raise, or with the member that is asked instead. The lists also replace iterators.
_HARMLESS: dict[str, object] = {
    "config_dir": Runtime.config_dir,
    "transcripts_dir": Runtime.transcripts_dir,
    "copies_dir": "",
    "project_dir": Runtime.project_dir,
    "is_folder_of": False,
    "own_event": Runtime.own_event,
    "own_path": Runtime.own_path,
    "session_id_of": Runtime.session_id_of,
    "is_automated": False,
    "is_own": False,
    "own_session_id": Runtime.own_session_id,
    "has_started": False,
    "refresh": None,
    "all_folders": [],
    "folders_below": [],
    "listed_dirs": [],
    "watched_dirs": [],
    "sessions_in": [],
    "sub_agents": [],
    "sub_agents_beside": [],
    "session_names": [],
    "named_sessions": [],
    "other_sessions": [],
    "project_sessions": [],
    "exported_lines": [],
    "live_processes": [],
    "live_session_id": "",
    "given_name": "",
    "place_of": "",
    "has_left": False,
    "asks_for_approval": True,
    "evidence": Runtime.evidence,
}
_HARMLESS_RECORDS: dict[str, object] = {
    "recognises": False,
    "owns": False,
    "open_transcript": None,
    "prefilter": True,
    "events": [],
}
# the members of records without whose answer a part of a transcript is missing
_NEEDED = ("recognises", "owns", "open_transcript", "events")
_missing: dict[str, int] = {}  # how many of these answers, by the runtime's name
# the first fault of each runtime that was met in this process, by its name
faults: dict[str, str] = {}
added_folders: list[str] = []  # to sys.path
_limit = CallLimit()
_overdue: set[str] = set()  # the runtimes that are asked nothing more in this process
_loaded: dict[Row, Runtime | OutsideRuntimeError] = {}
_guarded: list[Runtime] = []


class OutsideRuntimeError(Exception):
    """A runtime in another package cannot be used; the message says why."""


class OverdueRuntimeError(OutsideRuntimeError):
    """A runtime in another package takes too long."""


class UnansweredError(OSError):
    """A runtime in another package did not decode a transcript; the next reading may succeed."""


class OutsideAnswers:
    """The answers about transcripts that runtimes in other packages give from now on."""

    def __init__(self) -> None:
        self._missing = {**_missing}

    def check(self, name: str = "") -> None:
        """Raise UnansweredError if a member of the runtime `name`, or of any, raised or was overdue."""
        for each, count in _missing.items():
            if count != self._missing.get(each) and name in ("", each):
                raise UnansweredError(f"the runtime {each} cannot read it: {faults[each]}")


class NotedRuntimes:
    """The runtimes that an install noted in the file `path`.

    `sources` has all rows in the right form, by their source and name. Runtimes with the names of
    `built_in` ones, which this package has had since the note, are not used."""

    def __init__(self, path: str, built_in: Collection[str] = ()) -> None:
        self.sources: dict[str, dict[str, Row]] = {}
        self._rows: dict[str, Row] = {}
        try:
            sources = as_object(decode(read_whole(path).decode()))
        except (OSError, ValueError):
            return
        for source, rows in sources.items():
            of_source = self.sources[source] = {}
            for name, row in as_object(rows).items():
                if isinstance(row, list) and [*map(type, row)] == [str] * 4:
                    of_source[name] = tuple(row)
                    if name not in built_in:
                        self._rows.setdefault(name, tuple(row))

    def usable(self, is_wanted: Callable[[Row], bool]) -> list[Runtime]:
        """Return the runtimes whose rows are wanted, except those that cannot be loaded."""
        runtimes = []
        for name, row in self._rows.items():
            if is_wanted(row):
                try:
                    runtimes.append(self._load_once(row))
                except OutsideRuntimeError as error:
                    if name not in faults and isinstance(error, OverdueRuntimeError):
                        _report(f"{error}")
                    faults.setdefault(name, f"{error}")
        return runtimes

    def _load_once(self, row: Row) -> Runtime:
        if row not in _loaded:
            try:
                _loaded[row] = load(row[0], row[3])
            except OutsideRuntimeError as error:
                _loaded[row] = error
        outcome = _loaded[row]
        if isinstance(outcome, OutsideRuntimeError):
            raise outcome
        return outcome


def load(
    place: str, folder: str, others: Sequence[Runtime] = (), formats: Collection[str] = ()
) -> Runtime:
    """Return the runtime that "module:attribute" names, different from `others` and our `formats`.

    If one of its members that are asked about all sessions or events raises or is overdue, a harmless
    answer counts and `faults` has the first fault. Raises OutsideRuntimeError."""
    module, _, attribute = place.partition(":")
    if folder and folder not in sys.path:
        sys.path.append(folder)  # last, so it hides no other module
        added_folders.append(folder)
    try:
        imported = in_time(f"the import of {place}", __import__, module, {}, {}, [attribute])
        runtime = getattr(imported, attribute)
    except AttributeError as error:
        raise OutsideRuntimeError(f"{place} cannot be loaded: {_described(error)}") from error
    origin = str(getattr(sys.modules[module], "__file__", ""))
    if folder and not origin.startswith(f"{folder}/"):
        raise OutsideRuntimeError(f"another module is called {module} too: {origin}")
    try:
        problem = _problem_with(runtime) or _problem_beside(runtime, others, formats)
        if not problem:
            _guard_members(runtime)
    except _FAILURES as error:
        raise OutsideRuntimeError(f"{place} cannot be used: {_described(error)}") from error
    if problem:
        raise OutsideRuntimeError(f"{place} {problem}")
    return runtime  # type: ignore[no-any-return]


def _problem_beside(runtime: Runtime, others: Sequence[Runtime], formats: Collection[str]) -> str:
    """Return why the runtime cannot be told from one of `others` or from our formats, or ''."""
    for other in others:
        for member in ("name", "TITLE", "SESSIONS_FOLDER", "OWN_ID_VARIABLE", "PROGRAM"):
            value = getattr(runtime, member)
            if value == getattr(other, member):
                return f"has the {member} of {other.TITLE}, {value!r}; it must have its own"
    if runtime.name in formats:
        return f"has the name of a transcript format, {runtime.name!r}; it must have its own"
    return ""


def _problem_with(runtime: object) -> str:
    """Return why an object cannot be used as a runtime, or ''."""
    if not isinstance(runtime, Runtime):
        return _of_another_class("is", runtime, Runtime)
    if runtime.INTERFACE != INTERFACE:
        has = f"has INTERFACE = {runtime.INTERFACE!r}" if runtime.INTERFACE else "has no INTERFACE"
        return (
            f"{has}, and this version of session-memory works with INTERFACE = {INTERFACE}: it was "
            "written for another version, or must state the number"
        )
    for member in _TEXTS:
        value = getattr(runtime, member, None)
        if not isinstance(value, str) or not value:
            return f"must set {member} to a text, and it is {value!r}"
    name = runtime.name
    if not name.replace("-", "").isalnum() or not name.isascii() or name != name.lower():
        return f"has the name {name!r}, which must consist of a-z, 0-9 and -"
    return _problem_with_parts(runtime)


def _problem_with_parts(runtime: Runtime) -> str:
    from .backup import Backup
    from .install import Install
    from .records import Records

    for part, base in (("records", Records), ("install", Install), ("backup", Backup)):
        try:
            loaded = getattr(runtime, part)
        except _FAILURES as error:
            return f"cannot load its part {part}: {_described(error)}"
        if not isinstance(loaded, base):
            return _of_another_class(f"has a part {part} that is", loaded, base)
    return ""


def _of_another_class(what: str, value: object, base: type) -> str:
    return (
        f"{what} a {type(value).__name__}, not an object of a subclass of "
        f"{base.__module__}.{base.__name__}"
    )


def _guard_members(runtime: Runtime) -> None:
    if any([runtime is guarded for guarded in _guarded]):
        return
    for owner, answers in ((runtime, _HARMLESS), (runtime.records, _HARMLESS_RECORDS)):
        for member, harmless in answers.items():
            setattr(owner, member, _guard(runtime, getattr(owner, member), harmless))
    _guarded.append(runtime)


def _guard(runtime: Runtime, ask: Callable[..., Any], harmless: object) -> Callable[..., Any]:
    """Return a function like `ask`, with a harmless answer if that raises or takes too long."""
    name, member = runtime.name, getattr(ask, "__name__", "a member")

    def listed(*arguments: object, **named: object) -> object:
        return list(ask(*arguments, **named))

    member_or_list = listed if type(harmless) is list else ask

    def answer(*arguments: object, **named: object) -> object:
        if name not in _overdue:
            is_part = _limit.is_running  # of another call, which is overdue as a whole
            is_of_all = member == "refresh" and bool(arguments[1:] or named.get("everything"))
            seconds = _call_limit.ALL_SESSIONS_SECONDS if is_of_all else _call_limit.SECONDS
            try:
                return _limit.run(seconds, member_or_list, *arguments, **named)
            except OverdueCallError:
                if is_part:
                    raise
                _overdue.add(name)
                problem = f"{member} {_was_overdue(seconds)}"
                faults.setdefault(name, problem)
                package = type(runtime).__module__.partition(".")[0]
                _report(f"{runtime.TITLE}, of the package {package}: {problem}")
            except _FAILURES as error:
                faults.setdefault(name, f"{member} raised {_described(error)}")
        if member in _NEEDED:
            _missing[name] = _missing.get(name, 0) + 1
        return harmless(runtime, *arguments, **named) if callable(harmless) else harmless

    return answer


def in_time(what: str, ask: Callable[..., Any], *arguments: object) -> Any:
    """Return the answer of code in another package. Raises OutsideRuntimeError."""
    try:
        return _limit.run(_call_limit.SECONDS, ask, *arguments)
    except OverdueCallError:
        raise OverdueRuntimeError(f"{what} {_was_overdue(_call_limit.SECONDS)}") from None
    except _FAILURES as error:
        raise OutsideRuntimeError(f"{what} raised {_described(error)}") from error


def _was_overdue(seconds: float) -> str:
    return f"did not end within {seconds:g} seconds"


def _report(problem: str) -> None:
    from ...common.system.terminal import print_error  # only commands have a limit

    print_error(problem, "its sessions are left out; session-memory doctor checks it")


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
