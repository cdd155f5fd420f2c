"""Sessions for people and scripts: find a home's sessions in every runtime, and choose one.

A session is chosen by its name or id."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice

from ...common.errors import SessionMemoryError
from ...common.system.files import Opened, is_regular, status_at, user_dir
from ...common.text.format import has_words, one_line, shorten_both
from ...common.text.sanitize import beginning, for_people, name_for_people, shortened
from ...common.text.timestamps import local_time
from ..runtimes.base import Runtime
from ..runtimes.table import all_runtimes
from ..settings import homes
from ..settings.homes import Home
from ..settings.privacy import Privacy
from ..settings.registry import agent_home
from .entries import Entry, Session
from .gate import TITLE_CHARACTERS, Described, Family, Gate, Unruled, describe
from .lines import first_line
from .log import has_entries, last_entries
from .project_folders import project_folders
from .projects import is_of_namesake
from .reader import (
    FIRST_PROMPT_RANK,
    FURTHER_BYTES,
    USER_RANK,
    Title,
    TranscriptReader,
    later_request,
    title_by_time,
)
from .turns import is_at_work

Candidate = tuple[Session, Runtime, Home]
_Written = tuple[float, os.stat_result]  # the time of the last message, and of the file

CANDIDATES = 12
_REQUEST_CHARACTERS = 2000  # it may begin with a pasted text
_TITLE_ENTRIES = 60  # in which the last request is searched
LATEST = 5  # these are named if none fits


class UnknownSessionError(SessionMemoryError):
    """No session has the name in question, several have it, or there is no home with sessions."""


class AmbiguousSessionError(UnknownSessionError):
    """Several sessions match the text."""


class FoundSession:
    """A session with its runtime and home; `size` in bytes.

    `last_at` is the time of its last message. `modified` is its transcript's time, which is later
    in a copied home. Both are in seconds since 1970. `gate` decides what may be shown; None for a
    participant of the session, who may see all. `described` is its transcript's description.
    `title` is the visible part of the title, with its rank. `former` is its latest former name that
    no other session has; a session without a name is called by it."""

    def __init__(
        self,
        session: Session,
        runtime: Runtime,
        home: Home,
        written: _Written,
        described: Described,
        gate: Gate | None = None,
        title: Title = (USER_RANK, ""),
        former: str = "",
    ) -> None:
        self.session = session
        self.runtime = runtime
        self.home = home
        self.last_at, status = written
        self.modified = status.st_mtime
        self.size = status.st_size
        self.id = runtime.session_id_of(session.path)
        self.gate = gate
        self.began = described.began
        self.start = described.start or (home.root if home.sessions_dir else "")
        by_time = "" if self.began is None else title_by_time(self.began)
        given = title[1] if title[0] >= USER_RANK else ""
        saved_as = shortened(former, TITLE_CHARACTERS)
        own_name = session.name or given or saved_as
        self.name = own_name or title[1] or by_time or session.key
        self.is_named_by_request = bool(title[1]) and not own_name and title[0] == FIRST_PROMPT_RANK

    @property
    def project(self) -> str:
        """Return the name of its start directory, `-` if that is unknown or may not be shown."""
        return (os.path.basename(self.start.rstrip("/")) if self.has_text else "") or "-"

    @property
    def has_text(self) -> bool:
        return self.gate is None or self.gate.rule.quote

    def last_entries(self, count: int, *, counts_said: bool = False) -> tuple[list[Entry], int]:
        """Return the last visible entries, and the number of unreadable records. Raises OSError."""
        return last_entries(
            self.runtime, self.session.path, count, self.gate, counts_said=counts_said
        )

    def is_at_work(self, now: float) -> bool:
        """Return whether one of its turns is running; False if it cannot be read."""
        try:
            return is_at_work(
                self.runtime, self.session.path, self.last_entries(1)[0], now - self.modified
            )
        except OSError:
            return False

    def readable_entries(self, most: int) -> list[Entry]:
        """Return the last visible entries; none if it cannot be read."""
        try:
            return self.last_entries(most)[0]
        except OSError:
            return []

    def later_request(self, entries: Sequence[Entry]) -> str:
        """Return the last request in its last `entries` for people, if its name is its first one;
        else ''."""
        if not self.is_named_by_request:
            return ""
        texts = [
            for_people(beginning(entry.text, _REQUEST_CHARACTERS))
            for entry in reversed(entries)
            if entry.role == "user"
        ]
        return one_line(later_request(for_people(self.name), texts))

    def title(self, limit: int) -> str:
        """Return its name for people in at most `limit` characters, with its last request if the
        name is its first one."""
        later = self.later_request(self.readable_entries(_TITLE_ENTRIES))
        return shorten_both(one_line(for_people(self.name)), later, limit)

    def described(self) -> str:
        """Return a line that identifies it: its id, when and where it was at work, and its name."""
        when = local_time(self.last_at)
        id, project, name = map(name_for_people, (self.id, self.project, self.name))
        return f"{id}  {when}  {project}  {self.runtime.TITLE}  {name}"


def find_sessions(
    path: str | None,
    all_projects: bool,
    environ: Mapping[str, str],
    *,
    own_id: str = "",
    with_private: bool = False,
    since: float = 0,
    most: int | None = None,
    former_names: Callable[[Home], Mapping[str, Sequence[str]]] | None = None,
    statuses: Mapping[str, os.stat_result] | None = None,
) -> list[FoundSession]:
    """Return the sessions of the home `path`, else of the current one.

    The current home's sessions are an agent home's, the project's, or all. Those with the latest
    messages come first, and with `most` hardly any others are read. Excluded sessions are omitted
    unless a person asks `with_private`, and so are sessions that wrote nothing `since` (seconds
    since 1970). The session with `own_id`, or the one that the environment names, is the caller's,
    which may see all of itself. `former_names` returns the former names of a home's sessions, by
    id, with which saved sessions are found. `statuses` are known statuses of transcripts, by path.
    Raises UnknownSessionError without a home with sessions."""
    wanted = _Wanted(own_id, since, most, former_names, with_private=with_private)
    wanted.statuses = statuses or {}
    return _find(path, all_projects, environ, wanted)


class _Wanted:
    """The sessions that `find_sessions` is to return, as it explains."""

    def __init__(
        self,
        own_id: str,
        since: float,
        most: int | None,
        former_names: Callable[[Home], Mapping[str, Sequence[str]]] | None,
        *,
        with_private: bool,
    ) -> None:
        self.own_id = own_id
        self.since = since
        self.most = most
        self.former_names = former_names
        self.with_private = with_private
        self.statuses: Mapping[str, os.stat_result] = {}


def _find(
    path: str | None, all_projects: bool, environ: Mapping[str, str], wanted: _Wanted
) -> list[FoundSession]:
    former: dict[str, Mapping[str, Sequence[str]]] = {}
    candidates = list(_candidates(path, all_projects, environ))
    if wanted.former_names:
        for home in {home.root: home for _, _, home in candidates}.values():
            former[home.root] = wanted.former_names(home)
        candidates += _put_by(candidates, former)
    names_taken = {session.name for session, _, _ in candidates if session.name}
    latest = _latest(candidates, wanted)
    families = _Families(environ, _names(candidates, former), wanted)
    start = "" if all_projects else _start(path, environ)

    def show(batch: list[tuple[_Written, Candidate]]) -> Iterator[FoundSession]:
        return _shown(batch, families, environ, names_taken, former)

    listed, are_others = _of_project(latest, wanted.most, show, start)
    if are_others and not listed:
        listed = _find(path, True, environ, wanted)
        for each in listed:
            each.session.is_elsewhere = True
    return listed


def _names(
    candidates: list[Candidate], former: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, tuple[str, ...]]:
    """Return the present and former names of sessions, by the paths of their transcripts."""
    names: dict[str, tuple[str, ...]] = {
        session.path: (session.name or session.key,) for session, _, _ in candidates
    }
    for session, runtime, home in candidates if former else ():
        id = runtime.session_id_of(session.path)
        names[session.path] += tuple(former.get(home.root, {}).get(id, ()))
    return names


def _latest(candidates: list[Candidate], wanted: _Wanted) -> Iterator[tuple[_Written, Candidate]]:
    """Yield the candidates with a transcript written since the wanted time.

    The one with the latest message comes first. No message is later than its file, so only the
    files written after that message are read before it is yielded."""
    statuses = [
        (
            wanted.statuses.get(candidate[0].path)
            or status_at(candidate[0].path, follow_symlinks=False),
            candidate,
        )
        for candidate in candidates
    ]
    written = [
        (status, candidate)
        for status, candidate in statuses
        if status and is_regular(status) and status.st_mtime >= wanted.since
    ]
    written.sort(key=lambda pair: -pair[0].st_mtime)
    read: list[tuple[float, int]] = []  # by the time of the last message
    for number, (status, (session, runtime, _)) in enumerate(written):
        while read and -read[0][0] >= status.st_mtime:
            yield _taken(read, written)
        heappush(read, (-_last_message_at(runtime, session.path, status), number))
    while read:
        yield _taken(read, written)


def _taken(
    read: list[tuple[float, int]], written: list[tuple[os.stat_result, Candidate]]
) -> tuple[_Written, Candidate]:
    """Take the candidate with the latest message."""
    negative, number = heappop(read)
    status, candidate = written[number]
    return (-negative, status), candidate


def _last_message_at(runtime: Runtime, path: str, status: os.stat_result) -> float:
    """Return the time of the last message near the end of a transcript, else when it was written.

    A message that is later than its file was written by a wrong clock, so the file's time counts.
    An unreadable transcript is reported when somebody asks for the session."""
    try:
        with Opened(path) as descriptor:
            reader = TranscriptReader(runtime, first_line(descriptor))
            last = reader.from_end(descriptor, FURTHER_BYTES, with_directories=False)
            times = (entry.timestamp for entry in last)
            at = next((at for at in times if at is not None), status.st_mtime)
            return min(at, status.st_mtime)
    except Exception:
        return status.st_mtime


def _of_project(
    latest: Iterable[tuple[_Written, Candidate]],
    most: int | None,
    show: Callable[[list[tuple[_Written, Candidate]]], Iterator[FoundSession]],
    start: str,
) -> tuple[list[FoundSession], bool]:
    """Return the `most` latest sessions of the project at `start`, or of all if it is ''.

    Also return whether another project shares its folder."""
    listed: list[FoundSession] = []
    are_others = False
    waiting = iter(latest)
    while (most is None or len(listed) < most) and (batch := list(islice(waiting, most))):
        for each in show(batch):
            if start and _is_of_namesake(each, start):
                are_others = True
            else:
                listed.append(each)
    return listed[:most], are_others


def _is_of_namesake(each: FoundSession, start: str) -> bool:
    """Check if a session in the folder of the project at `start` is of another project."""
    session, home = each.session, each.home
    if session.is_elsewhere or session.name:
        return False
    return is_of_namesake(each.runtime, session.path, each.start, start, home.user_dir)


def _shown(
    latest: list[tuple[_Written, Candidate]],
    families: _Families,
    environ: Mapping[str, str],
    names_taken: set[str],
    former: Mapping[str, Mapping[str, Sequence[str]]],
) -> Iterator[FoundSession]:
    """Yield the sessions that may be shown.

    All are described first, because one may be a fork of another."""
    present, runtimes = [], {runtime for _, (_, runtime, _) in latest}
    callers = {runtime: runtime.own_session_id(environ) for runtime in runtimes}
    for written, (session, runtime, home) in latest:
        sees_all = runtime.session_id_of(session.path) in (families.own_id, callers[runtime])
        described = families.described(session, runtime, home)
        is_empty = described is not None and described.is_empty and not (sees_all or session.name)
        if described is not None and not described.is_of_subagent and not is_empty:
            present.append((session, runtime, home, written, described, sees_all))
    for session, runtime, home, written, described, sees_all in present:
        gate = families.gate((session, runtime, home), described, sees_all=sees_all)
        title: Title = described.rank, described.title
        if gate is not None:
            if gate.rule.ignore or (
                gate.hides_forgotten and not has_entries(runtime, session.path, gate)
            ):
                continue
            title = gate.shown_title(runtime, session.path, title)
        free = [
            name
            for name in former.get(home.root, {}).get(runtime.session_id_of(session.path), ())
            if name not in names_taken
        ]
        had = free[-1] if free else ""
        yield FoundSession(session, runtime, home, written, described, gate, title, had)


class _Families:
    """The transcripts that may be forks of each other, by folder and each home's rules."""

    def __init__(
        self,
        environ: Mapping[str, str],
        names: dict[str, tuple[str, ...]],
        wanted: _Wanted,
    ) -> None:
        self.own_id = wanted.own_id
        self._environ = environ
        self._names = names
        self._former_names = wanted.former_names
        self._known_at: dict[str, dict[str, list[str]]] = {}
        self._with_private = wanted.with_private
        self._rules: dict[str, Privacy] = {}
        self._families: dict[tuple[str, str, str], Family] = {}

    def of(self, session: Session, runtime: Runtime, home: Home) -> Family:
        """Return the family of a session."""
        folder = session.path.rpartition("/")[0] if runtime.HAS_PROJECT_FOLDERS else ""
        key = runtime.name, home.config_file, folder
        if key not in self._families:
            privacy = self._privacy(home)
            rules = Unruled(privacy) if self._with_private else privacy
            self._families[key] = Family(rules, runtime, session.path, self._names)
        return self._families[key]

    def gate(self, candidate: Candidate, described: Described, *, sees_all: bool) -> Gate | None:
        """Return the gate of a session.

        If the caller `sees_all` of it, return None unless a part may be forgotten."""
        session, runtime, home = candidate
        if not sees_all:
            return self.of(session, runtime, home).gate(session.path, described)
        rules = Unruled(self._privacy(home))
        gate = Gate(rules, runtime.session_id_of(session.path), described.start)
        return gate.look_at(runtime, session.path) if gate.may_forget else None

    def described(self, session: Session, runtime: Runtime, home: Home) -> Described | None:
        """Return a transcript's description of a session.

        Return None if it cannot be read and a rule may exclude it."""
        privacy = self._privacy(home)
        if session.name and privacy.is_open(home.root):
            return Described()
        try:
            described = describe(runtime, session.path, privacy)
        except Exception:  # whatever it is, it is reported when somebody asks for the session
            return Described() if privacy.is_open(home.root) else None
        if not session.name and privacy.has_rules(described.start):
            for agent in privacy.agent_homes(described.start):
                known = self._names_at(agent).get(runtime.session_id_of(session.path), ())
                self._names[session.path] = (*self._names[session.path], *known)
        self.of(session, runtime, home).note(session.path, described)
        return described

    def _names_at(self, agent: Home) -> dict[str, list[str]]:
        """Return the names that sessions have and had in an agent home, by id."""
        if agent.sessions_dir not in self._known_at:
            former = self._former_names(agent) if self._former_names else {}
            names_by_id = {id: list(names) for id, names in former.items()}
            for runtime in all_runtimes():
                if agent.sessions_dir.endswith(f"/{runtime.SESSIONS_FOLDER}"):
                    for session in runtime.named_sessions(
                        agent.sessions_dir, runtime.config_dir(self._environ), agent.root
                    ):
                        names_by_id.setdefault(runtime.session_id_of(session.path), []).append(
                            session.name
                        )
            self._known_at[agent.sessions_dir] = names_by_id
        return self._known_at[agent.sessions_dir]

    def _privacy(self, home: Home) -> Privacy:
        if home.config_file not in self._rules:
            self._rules[home.config_file] = Privacy(self._environ, home)
        return self._rules[home.config_file]


def unreadable_projects(path: str | None, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the unreadable project directories, and why they are unreadable.

    They are in the home `path`, or in each runtime's own directory. `find_sessions` has none of
    their sessions."""
    unreadable = []
    for runtime, home in _plain_homes(path and os.path.abspath(path), environ):
        projects = runtime.transcripts_dir(home.root)
        for name in sorted(os.listdir(projects)):
            try:
                os.scandir(f"{projects}/{name}").close()
            except NotADirectoryError:
                continue
            except OSError as error:
                unreadable.append((f"{projects}/{name}", error.strerror or str(error)))
    return unreadable


def choose(sessions: list[FoundSession], name: str) -> FoundSession:
    """Return the session that matches `name`.

    It matches exactly, else as the only one whose id or name begins with it, else as the only one
    with these words in its name, else as the latest session of the runtime with this name. Raises
    UnknownSessionError."""
    fitting = _fitting(sessions, name)
    if len(fitting) == 1:
        return fitting[0]
    if not sessions:
        raise UnknownSessionError(f"no session is called {name!r}", "there are none here yet")
    if fitting:
        names = [f"  {session.described()}" for session in fitting[:CANDIDATES]]
        raise AmbiguousSessionError(
            f"{name!r} fits {len(fitting)} sessions; give the id of one:", "\n".join(names)
        )
    near = _nearest(sessions, name)
    candidates = near or sessions
    names = [f"  {session.described()}" for session in candidates[:LATEST]]
    more = len(candidates) - LATEST
    if more > 0:
        names.append(f"  and {more} more: session-memory sessions --all lists them")
    there_are = "the nearest" if near else "the latest"
    raise UnknownSessionError(f"no session is called {name!r}; {there_are}:", "\n".join(names))


def _fitting(sessions: list[FoundSession], name: str) -> list[FoundSession]:
    """Return the sessions that match `name` in the best way that any of them does."""
    wanted = name.casefold()
    exact = [
        session
        for session in sessions
        if wanted in (session.name.casefold(), session.id.casefold())
    ]
    begun = [
        session
        for session in sessions
        if session.name.casefold().startswith(wanted) or session.id.startswith(wanted)
    ]
    titled = [session for session in sessions if has_words(session.name, name)]
    runs_on = [session for session in sessions if wanted in session.runtime.called]
    return exact or begun or titled or runs_on[:1]


def _nearest(sessions: list[FoundSession], name: str) -> list[FoundSession]:
    """Return the sessions whose id or name is like a mistyped `name`, the nearest first."""
    from difflib import get_close_matches

    by_name = {}
    for session in sessions[::-1]:  # of namesakes the latest
        by_name.update(dict.fromkeys((session.id.casefold(), session.name.casefold()), session))
    names = get_close_matches(name.casefold(), by_name, CANDIDATES)
    return list(dict.fromkeys([by_name[near] for near in names]))


def _start(path: str | None, environ: Mapping[str, str]) -> str:
    return os.path.abspath(path) if path else environ.get(homes.ENV_HOME) or os.getcwd()


def _candidates(
    path: str | None, all_projects: bool, environ: Mapping[str, str]
) -> Iterator[Candidate]:
    start = _start(path, environ)
    named = list(
        _in_agent_home(
            start, "" if path else user_dir(environ), homes.naming(path and start, environ)
        )
    )
    if named and not all_projects:
        return iter(named)
    plain = _plain_homes(path and start, environ)
    if not plain:
        hint = "to look in an agent home or a runtime's directory, add --home PATH"
        problem = f"{start}: no sessions there" if path else "no runtime has sessions here yet"
        raise UnknownSessionError(problem, hint)
    for scope in ("all",) if all_projects else ("project", "all"):
        if candidates := list(_in_plain_homes(plain, start, scope, environ)):
            break
    by_path = {candidate[0].path: candidate for candidate in named}  # with the rules of their home
    return iter([by_path.get(candidate[0].path, candidate) for candidate in candidates])


def _put_by(
    candidates: list[Candidate], former: Mapping[str, Mapping[str, Sequence[str]]]
) -> list[Candidate]:
    """Return saved sessions whose name no other session has taken since.

    Their transcripts are beside the others'."""
    ids = {runtime.session_id_of(session.path) for session, runtime, _ in candidates}
    names_taken = {session.name for session, _, _ in candidates}
    folders = {
        os.path.dirname(session.path): (runtime, home) for session, runtime, home in candidates
    }
    saved = []
    for folder, (runtime, home) in folders.items():
        put_by = {
            id
            for id, names in former[home.root].items()
            if id not in ids and not names_taken.issuperset(names)
        }
        for session in runtime.sessions_in(folder) if home.sessions_dir and put_by else ():
            if runtime.session_id_of(session.path) in put_by:
                saved.append((session, runtime, home))
    return saved


def _in_agent_home(start: str, stop: str, environ: Mapping[str, str]) -> Iterator[Candidate]:
    for runtime in all_runtimes():
        home = agent_home(start, environ, stop=stop, folder=runtime.SESSIONS_FOLDER)
        if home is not None:
            places = [runtime.config_dir(environ)]
            # of an agent whose runtime starts with this
            config_dir = f"{home.root}/{runtime.USUAL_DIR}"
            if os.path.isdir(runtime.transcripts_dir(config_dir)):
                places.append(config_dir)
            sessions = [
                session
                for place in places
                for session in runtime.named_sessions(home.sessions_dir, place, home.root)
            ]
            for session in {session.path: session for session in sessions}.values():
                yield session, runtime, home


def _plain_homes(path: str | None, environ: Mapping[str, str]) -> list[tuple[Runtime, Home]]:
    """Return the runtimes' own directories with sessions: in or at `path`, else each runtime's."""
    found_homes = []
    for runtime in all_runtimes():
        places = [path, f"{path}/{runtime.USUAL_DIR}"] if path else [runtime.config_dir(environ)]
        for place in places:
            runtime.refresh(place, everything=True)
            if os.path.isdir(runtime.transcripts_dir(place)):
                found_homes.append((runtime, homes.runtime_home(place, runtime.USUAL_DIR, environ)))
                break
    return found_homes


def _in_plain_homes(
    plain: list[tuple[Runtime, Home]], start: str, scope: str, environ: Mapping[str, str]
) -> Iterator[Candidate]:
    """Yield the sessions of all runtimes.

    If the environment names the caller's session, yield only those that share its memory."""
    asking = [home.memory_dir for runtime, home in plain if environ.get(runtime.OWN_ID_VARIABLE)]
    for runtime, home in [
        (runtime, home) for runtime, home in plain if not asking or home.memory_dir in asking
    ]:
        own_id = runtime.own_session_id(environ)
        folders = project_folders(
            [(runtime, home.root)], start, home.user_dir, home.repositories_file
        )[runtime.name]
        for session in runtime.project_sessions(home.root, own_id, start, scope, folders):
            yield session, runtime, home
