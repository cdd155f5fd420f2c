"""Sessions for people and scripts: find those of a home in every runtime, and choose one by its name or id."""

from __future__ import annotations

import os

from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..settings import homes
from ..settings.privacy import Privacy
from ..system.files import open_regular
from ..text.sanitize import beginning, shortened
from .lines import first_line
from .project_folders import project_folders
from .reader import HEAD_BYTES, USER_RANK, TitleOwner, TranscriptHead, TranscriptReader
from .titles import title_by_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ..runtimes import Runtime
    from ..settings.homes import Home
    from ..settings.rules import Rule
    from .entries import Entry, Session

    Candidate = tuple[Session, Runtime, Home]

TITLE_CHARACTERS = 60
SECRET_CHARACTERS = 400  # so much more is looked through for secrets, lest one is cut in two unseen
CANDIDATES = 12


class UnknownSessionError(SessionMemoryError):
    """No session has the name that was asked for, or several have, or there is no home with sessions."""


class Described:
    """What a transcript tells of its session: the title on one line, for people, with its rank, and the directory that
    it was started in; '' for what it does not tell; when it `began`, in seconds since the epoch, if it does; and
    whether it is a sub-agent's."""

    def __init__(
        self, title: str = "", rank: int = USER_RANK, start: str = "", began: float | None = None,
        is_of_subagent: bool = False,
    ) -> None:  # fmt: skip
        self.title = title
        self.rank = rank
        self.start = start
        self.began = began
        self.is_of_subagent = is_of_subagent


class FoundSession:
    """A session with the runtime and the home it belongs to; `modified` in seconds since the epoch, `size` in bytes.

    `rule` says what may be told of it; whoever is in it is told all. `former` are the names that it had, the latest
    last: it goes by that where it has none, and no other session has it (`taken`)."""

    def __init__(
        self, session: Session, runtime: Runtime, home: Home, status: os.stat_result, described: Described,
        privacy: Privacy | None = None, former: Sequence[str] = (), taken: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.session = session
        self.runtime = runtime
        self.home = home
        self.modified = status.st_mtime
        self.size = status.st_size
        self.id = runtime.session_id_of(session.path)
        self._privacy = privacy
        self._start = described.start
        self.rule: Rule | None = None
        title = described.title
        if privacy is not None:
            known = (session.name or session.key, title, self.id, *former)
            self.rule = privacy.rule(described.start, *filter(None, known))
            title = title if self.rule.text or described.rank >= USER_RANK else ""
        by_time = "" if described.began is None else title_by_time(described.began)
        free = [shortened(name, TITLE_CHARACTERS) for name in former if name not in taken]
        put_by = free[-1] if free else ""
        given = title if described.rank >= USER_RANK else ""
        self.name = session.name or given or put_by or title or by_time or session.key

    @property
    def is_excluded(self) -> bool:
        """Whether a rule says that nothing is told of it."""
        return self.rule is not None and self.rule.ignore

    def told(self, entries: list[Entry]) -> list[Entry]:
        """What may be told of its `entries`: not what was said in an excluded directory, and text where it may be."""
        privacy, rule = self._privacy, self.rule
        if privacy is None or rule is None:
            return entries
        return what_may_be_told(entries, privacy, rule, self._start)


def what_may_be_told(entries: list[Entry], privacy: Privacy, rule: Rule, start: str) -> list[Entry]:
    """The entries of a session that was started in `start` and has this rule, as far as they may be told."""
    if rule.ignore:
        return []
    of_directory = {cwd: privacy.of_directory(cwd, start) for cwd in {entry.cwd for entry in entries}}
    return [
        entry if rule.text and of_directory[entry.cwd].text else entry.without_text()
        for entry in entries
        if not of_directory[entry.cwd].ignore
    ]


def find_sessions(
    path: str | None, all_projects: bool, environ: Mapping[str, str], *, own_id: str = "", with_private: bool = False,
    since: float = 0, former_names: Callable[[Home], Mapping[str, Sequence[str]]] | None = None,
) -> list[FoundSession]:  # fmt: skip
    """The sessions of the home `path`, else of the one at hand: an agent home's, or those of the project, or of all.

    The latest first, without those that are excluded, unless a person asks `with_private`, and those that wrote nothing
    `since` (seconds since the epoch). That with `own_id`, or the
    one that the environment names, is whoever asks, and told all of itself. `former_names` returns the names that the
    sessions of a home had, by their ids; an agent's that were put by under one are found too. Raises
    UnknownSessionError where there is no home with sessions.
    """
    found = []
    rules: dict[str, Privacy] = {}
    former: dict[str, Mapping[str, Sequence[str]]] = {}
    candidates = list(_candidates(path, all_projects, environ))
    if former_names:
        former = {home.root: former_names(home) for home in {home.root: home for _, _, home in candidates}.values()}
        candidates += _put_by(candidates, former)
    taken = {session.name for session, _, _ in candidates if session.name}
    for session, runtime, home in candidates:
        if home.config_file not in rules:
            rules[home.config_file] = Privacy(environ, home)
        privacy = rules[home.config_file]
        names = former.get(home.root, {}).get(runtime.session_id_of(session.path), ())
        own_ids = (own_id, environ.get(runtime.OWN_ID_VARIABLE))
        sees_all = with_private or runtime.session_id_of(session.path) in own_ids
        try:
            status = os.stat(session.path, follow_symlinks=False)
        except OSError:
            continue
        if status.st_mtime < since:
            continue
        try:
            is_named = session.name and not privacy.has_rules(home.root)
            by_name = privacy.has_name_rules(home.root)
            described = Described() if is_named else describe(runtime, session.path, with_all_titles=by_name)
        except Exception:  # whatever it is, is told where the session is asked for; unless a rule may exclude it
            if privacy.has_rules(home.root):
                continue
            described = Described()
        one = FoundSession(session, runtime, home, status, described, None if sees_all else privacy, names, taken)
        if not one.is_excluded and not described.is_of_subagent:
            found.append(one)
    return sorted(found, key=lambda one: -one.modified)


def describe(runtime: Runtime, path: str, *, with_all_titles: bool = False) -> Described:
    """Return what the end and the beginning of a transcript tell of its session; its first prompt if it has no title.
    What lies between them is looked through for titles if a rule may name one of them. Raises OSError."""
    descriptor = open_regular(path)
    try:
        session_id = runtime.session_id_of(path)
        reader = TranscriptReader(runtime, first_line(descriptor), owner=TitleOwner(session_id, descriptor))
        for _ in reader.from_end(descriptor, HEAD_BYTES):
            pass
        if with_all_titles:
            reader.take_titles(descriptor, 0, os.fstat(descriptor).st_size)
        head = TranscriptHead(runtime, descriptor, session_id)
    finally:
        os.close(descriptor)
    given = runtime.given_name(path)
    rank, title = (USER_RANK, given) if given else head.best_title(reader.title)
    title = shortened(beginning(title, TITLE_CHARACTERS + SECRET_CHARACTERS), TITLE_CHARACTERS)
    return Described(title, rank, head.cwd, head.first_time, reader.is_of_subagent)


def unreadable_projects(path: str | None, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The directories of projects, in the home `path` or where each runtime has its own, that cannot be read, and why:
    `find_sessions` has none of their sessions."""
    found = []
    for runtime, home in _plain_homes(path and os.path.abspath(path), environ):
        projects = runtime.transcripts_dir(home.root)
        for name in sorted(os.listdir(projects)):
            try:
                os.scandir(f"{projects}/{name}").close()
            except NotADirectoryError:
                continue
            except OSError as error:
                found.append((f"{projects}/{name}", error.strerror or str(error)))
    return found


def title_of(runtime: Runtime, path: str) -> str:
    """The title that the end or the beginning of a transcript tells, else the session's first prompt; '' for neither.

    On one line, for people. Raises OSError.
    """
    return describe(runtime, path).title


def choose(found: list[FoundSession], name: str) -> FoundSession:
    """The session that goes by `name`: exactly, else the only one that begins so. Raises UnknownSessionError."""
    wanted = name.casefold()
    exact = [one for one in found if wanted in (one.name.casefold(), one.id.casefold())]
    fitting = exact or [one for one in found if one.name.casefold().startswith(wanted) or one.id.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if not found:
        raise UnknownSessionError(f"no session goes by {name!r}", "there are none here yet")
    near = fitting or _nearest(found, wanted)
    candidates = near or found
    names = [f"  {one.name}  ({one.id})" for one in candidates[:CANDIDATES]]
    if len(candidates) > CANDIDATES:
        names.append(f"  and {len(candidates) - CANDIDATES} more: session-memory sessions --all lists them")
    there_are = "the nearest" if near else "there are"
    problem = f"{name!r} could be any of:" if fitting else f"no session goes by {name!r}; {there_are}:"
    raise UnknownSessionError(problem, "\n".join(names))


def _nearest(found: list[FoundSession], wanted: str) -> list[FoundSession]:
    """The sessions whose names are most like `wanted`, which is in lower case: it may be mistyped."""
    from difflib import get_close_matches

    by_name = {one.name.casefold(): one for one in found[::-1]}  # of those of one name the latest
    return [by_name[name] for name in get_close_matches(wanted, by_name, CANDIDATES)]


def _candidates(path: str | None, all_projects: bool, environ: Mapping[str, str]) -> Iterator[Candidate]:
    start = os.path.abspath(path) if path else environ.get(homes.ENV_HOME) or os.getcwd()
    named = list(_in_agent_home(start, "" if path else environ.get("HOME", ""), environ))
    if named and not all_projects:
        return iter(named)
    plain = _plain_homes(path and start, environ)
    if not plain:
        hint = "name the agent home, or the runtime's directory, to look in: --home PATH"
        problem = f"{start}: no sessions there" if path else "no runtime has had a session here yet"
        raise UnknownSessionError(problem, hint)
    for scope in ("all",) if all_projects else ("project", "all"):
        candidates = list(_in_plain_homes(plain, start, scope, environ))
        if candidates:
            break
    return iter(candidates)


def _put_by(candidates: list[Candidate], former: Mapping[str, Mapping[str, Sequence[str]]]) -> list[Candidate]:
    """The sessions of agents that were put by under a name which no session of theirs has since. Their transcripts lie
    beside those of the others."""
    ids = {runtime.session_id_of(session.path) for session, runtime, _ in candidates}
    taken = {session.name for session, _, _ in candidates}
    folders = {os.path.dirname(session.path): (runtime, home) for session, runtime, home in candidates}
    found = []
    for folder, (runtime, home) in folders.items():
        put_by = {id for id, names in former[home.root].items() if id not in ids and not taken.issuperset(names)}
        for session in runtime.sessions_in(folder) if home.sessions_dir and put_by else ():
            if runtime.session_id_of(session.path) in put_by:
                found.append((session, runtime, home))
    return found


def _in_agent_home(start: str, stop: str, environ: Mapping[str, str]) -> Iterator[Candidate]:
    for runtime in all_runtimes():
        home = homes.agent_home(start, environ, stop=stop, folder=runtime.SESSIONS_FOLDER)
        if home is not None:
            places = [runtime.config_dir(environ)]
            own = f"{home.root}/{runtime.USUAL_DIR}"  # of an agent whose runtime is started with this
            if os.path.isdir(runtime.transcripts_dir(own)):
                places.append(own)
            found = [
                session for place in places for session in runtime.named_sessions(home.sessions_dir, place, home.root)
            ]
            for session in {session.path: session for session in found}.values():
                yield session, runtime, home


def _plain_homes(path: str | None, environ: Mapping[str, str]) -> list[tuple[Runtime, Home]]:
    """The runtimes' own directories that hold sessions: in or at `path`, else where each runtime has its own."""
    found = []
    for runtime in all_runtimes():
        places = [path, f"{path}/{runtime.USUAL_DIR}"] if path else [runtime.config_dir(environ)]
        for place in places:
            runtime.refresh(place, everything=True)
            if os.path.isdir(runtime.transcripts_dir(place)):
                found.append((runtime, homes.runtime_home(place, runtime.USUAL_DIR, environ)))
                break
    return found


def _in_plain_homes(
    plain: list[tuple[Runtime, Home]], start: str, scope: str, environ: Mapping[str, str]
) -> Iterator[Candidate]:
    """Those of all runtimes; where the environment tells in which one an agent runs who asks, of those that share its
    memory."""
    asking = [home.memory_dir for runtime, home in plain if environ.get(runtime.OWN_ID_VARIABLE)]
    for runtime, home in [(one, home) for one, home in plain if not asking or home.memory_dir in asking]:
        own_id = environ.get(runtime.OWN_ID_VARIABLE, "")
        folders = project_folders([(runtime, home.root)], start, home.user_dir)[runtime.name]
        for session in runtime.project_sessions(home.root, own_id, start, scope, folders):
            yield session, runtime, home
