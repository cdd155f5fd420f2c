"""Sessions for people and scripts: find those of a home in every runtime, and choose one by its name or id."""

from __future__ import annotations

import os

from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..settings import homes
from ..system.files import open_regular
from ..text.format import one_line, shorten
from ..text.sanitize import for_people
from .lines import first_line
from .project_folders import project_folders
from .reader import HEAD_BYTES, TranscriptHead, TranscriptReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..runtimes import Runtime
    from ..settings.homes import Home
    from .entries import Session

TITLE_CHARACTERS = 60
SECRET_CHARACTERS = 400  # so much more is looked through for secrets, lest one is cut in two unseen
CANDIDATES = 12


class UnknownSessionError(SessionMemoryError):
    """No session has the name that was asked for, or several have, or there is no home with sessions."""


class FoundSession:
    """A session with the runtime and the home it belongs to; `modified` in seconds since the epoch, `size` in bytes."""

    def __init__(self, session: Session, runtime: Runtime, home: Home, status: os.stat_result, title: str) -> None:
        self.session = session
        self.runtime = runtime
        self.home = home
        self.modified = status.st_mtime
        self.size = status.st_size
        self.name = session.name or title or session.key
        self.id = runtime.FILES.session_id_of(session.path)


def find_sessions(path: str | None, all_projects: bool, environ: Mapping[str, str]) -> list[FoundSession]:
    """The sessions of the home `path`, else of the one at hand: an agent home's, or those of the project, or of all.

    The latest first. Raises UnknownSessionError where there is no home with sessions.
    """
    found = []
    for session, runtime, home in _candidates(path, all_projects, environ):
        try:
            status = os.stat(session.path, follow_symlinks=False)
            title = "" if session.name else title_of(runtime, session.path)
        except OSError:
            continue
        found.append(FoundSession(session, runtime, home, status, title))
    return sorted(found, key=lambda one: -one.modified)


def title_of(runtime: Runtime, path: str) -> str:
    """The title that the end or the beginning of a transcript tells, else the session's first prompt; '' for neither.

    On one line, for people. Raises OSError.
    """
    descriptor = open_regular(path)
    try:
        reader = TranscriptReader(runtime, first_line(descriptor))
        for _ in reader.from_end(descriptor, HEAD_BYTES):
            pass
        _, title = TranscriptHead(runtime, descriptor).best_title(reader.title)
    finally:
        os.close(descriptor)
    return shorten(one_line(for_people(title[: TITLE_CHARACTERS + SECRET_CHARACTERS])), TITLE_CHARACTERS)


def choose(found: list[FoundSession], name: str) -> FoundSession:
    """The session that goes by `name`: exactly, else the only one that begins so. Raises UnknownSessionError."""
    wanted = name.casefold()
    exact = [one for one in found if wanted in (one.name.casefold(), one.id.casefold())]
    fitting = exact or [one for one in found if one.name.casefold().startswith(wanted) or one.id.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    candidates = fitting or found
    names = [f"  {one.name}  ({one.id})" for one in candidates[:CANDIDATES]]
    if len(candidates) > CANDIDATES:
        names.append(f"  and {len(candidates) - CANDIDATES} more: see --list")
    problem = f"{name!r} could be any of:" if fitting else f"no session goes by {name!r}; there are:"
    raise UnknownSessionError(problem, "\n".join(names or ["  none"]))


def _candidates(
    path: str | None, all_projects: bool, environ: Mapping[str, str]
) -> Iterator[tuple[Session, Runtime, Home]]:
    start = os.path.abspath(path) if path else environ.get(homes.ENV_HOME) or os.getcwd()
    named = list(_in_agent_home(start, "" if path else environ.get("HOME", ""), environ))
    if named and not all_projects:
        return iter(named)
    plain = _plain_homes(path and start, environ)
    if not plain:
        hint = "name the agent home, or the runtime's directory, to look in: --home PATH"
        raise UnknownSessionError(f"{start}: no sessions there", hint)
    for scope in ("all",) if all_projects else ("project", "all"):
        candidates = list(_in_plain_homes(plain, start, scope, environ))
        if candidates:
            break
    return iter(candidates)


def _in_agent_home(start: str, stop: str, environ: Mapping[str, str]) -> Iterator[tuple[Session, Runtime, Home]]:
    for runtime in all_runtimes():
        home = homes.agent_home(start, environ, stop=stop, folder=runtime.FILES.SESSIONS_FOLDER)
        if home is not None:
            config_dir = runtime.FILES.config_dir(environ)
            for session in runtime.FILES.named_sessions(home.sessions_dir, config_dir, home.root):
                yield session, runtime, home


def _plain_homes(path: str | None, environ: Mapping[str, str]) -> list[tuple[Runtime, Home]]:
    """The runtimes' own directories that hold sessions: in or at `path`, else where each runtime has its own."""
    found = []
    for runtime in all_runtimes():
        places = [path, f"{path}/{runtime.FILES.USUAL_DIR}"] if path else [runtime.FILES.config_dir(environ)]
        for place in places:
            if os.path.isdir(f"{place}/{runtime.FILES.PROJECTS_FOLDER}"):
                found.append((runtime, homes.runtime_home(place, runtime.FILES.USUAL_DIR, environ)))
                break
    return found


def _in_plain_homes(
    plain: list[tuple[Runtime, Home]], start: str, scope: str, environ: Mapping[str, str]
) -> Iterator[tuple[Session, Runtime, Home]]:
    """Of the runtime that the asking agent runs in, if the environment tells it, else of all of them."""
    asking = [pair for pair in plain if environ.get(pair[0].FILES.OWN_ID_VARIABLE)]
    for runtime, home in asking or plain:
        own_id = environ.get(runtime.FILES.OWN_ID_VARIABLE, "")
        folders = project_folders(runtime, home.root, start, home.user_dir)
        for session in runtime.FILES.project_sessions(home.root, own_id, start, scope, folders):
            yield session, runtime, home
