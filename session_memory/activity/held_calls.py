"""Which calls of an agent are held back where the settings say so: an edit of what another session has edited and not
committed, and a git command that takes such edits along, or moves the worktree that another works in.

A session whose transcript was not written to in the last ACTIVE_SECONDS counts only for edits that git takes along. One
of which more is new than can be read at once may have made such an edit.
"""

from __future__ import annotations

from ..runtimes.records import RESULTS, SUB_AGENTS, CallResult
from ..system.files import read_end, status_at
from ..system.git import find_worktree, head_moves
from ..system.json import objects_in
from ..text.paths import relative
from .changes import changed_sessions
from .git_reach import Reach, reach_of
from .touch_index import TouchIndex
from .touches import EDIT, GIT, touches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.compiled import Settings
    from ..system.git import Worktree
    from ..transcripts.entries import Session
    from .changes import Changed, OwnSession
    from .report import Report
    from .touches import Touch
    from .unseen import Unseen

ACTIVE_SECONDS = 15 * 60
DECODED_BYTES = 32 * 1024 * 1024  # of all transcripts: a call is held if that is not enough
READ_BYTES = 256 * 1024 * 1024
RESULT_BYTES = 2 * 1024 * 1024  # from the end of a transcript, in which the result of a held call is looked for
_SUFFIX = ".edited"


class Hold:
    """Why a call is held back: the session with the key `session`, called `name`, was active at `time`, which is that
    of its edit of the file at `path`; '' where it is the worktree. `command` is the git command that is held. If it
    `is_possible`, not all that the session did could be read."""

    __slots__ = ("command", "is_possible", "name", "path", "session", "time")

    def __init__(
        self, session: str, name: str, time: float, path: str = "", command: str = "", *, is_possible: bool = False
    ) -> None:
        self.session = session
        self.name = name
        self.time = time
        self.path = path
        self.command = command
        self.is_possible = is_possible


class HoldSearch:
    """The search for what speaks against a call of the session `own`, in what `sessions` did until `now`."""

    def __init__(self, own: OwnSession, sessions: list[Session], settings: Settings, now: float) -> None:
        self._own = own
        self._settings = settings
        self._now = now
        self._oldest = now - settings.first_sight_seconds
        self._sessions = changed_sessions(sessions, {}, self._oldest, own.deadline)
        self._active = [changed for changed in self._sessions if changed[1].st_mtime >= now - ACTIVE_SECONDS]

    def of_edit(self, path: str) -> Hold | None:
        """What speaks against an edit of the file at `path` (absolute). Raises OSError where what was found so far
        cannot be kept."""
        worktree = self._worktree(path.rpartition("/")[0]) if self._active else None
        return self._uncommitted(Reach((path,)), worktree, self._active) if worktree else None

    def of_command(self, command: str, directory: str) -> Hold | None:
        """What speaks against a command line that is run in `directory`. Raises OSError as `of_edit` does."""
        if not self._sessions:
            return None
        from ..text.shell_effects import effects_of

        for effect in effects_of(command, directory):
            reach = reach_of(effect.words, effect.path, _is_there) if effect.kind == GIT else Reach((effect.path,))
            worktree = self._worktree(effect.path) if reach else None
            if reach is None or worktree is None:
                continue
            found = self._working_in(worktree) if reach.moves else self._uncommitted(reach, worktree, self._sessions)
            if found is not None:
                found.command = " ".join(["git", *effect.words]) if effect.kind == GIT else ""
                return found
        return None

    def _worktree(self, directory: str) -> Worktree | None:
        return find_worktree(directory, self._own.user_dir)

    def _uncommitted(self, reach: Reach, worktree: Worktree, sessions: list[Changed]) -> Hold | None:
        """Return the last edit of one of the sessions that `reach` covers and that was not committed since."""
        from .unseen import Budget

        index = TouchIndex(self._own.cursor_file, {}, _SUFFIX)
        everyone, budget = [session for session, _ in self._sessions], Budget(DECODED_BYTES, READ_BYTES)
        index.read_on(self._own, everyone, self._now, self._oldest, budget)
        commits = [one.time for one in head_moves(worktree.git_dir, self._oldest) if one.message.startswith("commit")]
        committed = max(commits, default=0.0)
        found = []
        for changed in sessions:
            for path, time in index.touched.get(changed[0].key, {}).items():
                if int(time) > committed and path.startswith(worktree.root + "/") and reach.covers(path):
                    found.append((time, path, changed))
            if index.is_behind(changed[0].key):
                found.append((0.0, "", changed))
        for time, path, changed in sorted(found, key=lambda one: -one[0]):
            hold = self._seen_edit(changed, path, time, worktree) if path else self._possible_edit(changed)
            if hold is not None:
                return hold
        return None

    def _seen_edit(self, changed: Changed, path: str, time: float, worktree: Worktree) -> Hold | None:
        """Return the edit as its transcript and the disk show it; None if it was refused, or may not be told of."""
        from .collisions import SLACK_SECONDS
        from .evidence import TranscriptEvidence

        for report, unseen in self._read(changed, time - 1):
            key, name = unseen.session.key, report.called + "".join(report.place)
            paths = {"": self._own.path, key: unseen.session.path}
            runtimes = {"": self._own.runtime, key: self._own.runtime_of(unseen.session)}
            evidence = TranscriptEvidence(runtimes, paths, worktree, self._own.user_dir)
            for touch in reversed(self._touches(report, unseen, time - 1)):
                if touch.kind != EDIT or touch.path != path:
                    continue
                modified = evidence.modified(path, is_moved=bool(touch.words))
                end, has_failed = evidence.end(key, touch)
                is_done = end is not None and (touch.is_command or not has_failed)
                if is_done and (modified or 0.0) >= evidence.began(key, touch) - SLACK_SECONDS:
                    return Hold(key, name, touch.time, path)
            if unseen.is_partial:
                return Hold(key, name, time, path, is_possible=True)
        return None

    def _possible_edit(self, changed: Changed) -> Hold | None:
        """Return that a session may have made an edit, as not all could be read; None if it may not be told of."""
        for report, unseen in self._read(changed, self._now - ACTIVE_SECONDS):
            name = report.called + "".join(report.place)
            return Hold(unseen.session.key, name, report.last_active, is_possible=True)
        return None

    def _working_in(self, worktree: Worktree) -> Hold | None:
        """The session that was last at work in a worktree."""
        found = []
        for changed in self._active:
            for report, unseen in self._read(changed, self._now - ACTIVE_SECONDS):
                places = {entry.cwd: entry.timestamp for entry in report.entries if entry.tools and entry.timestamp}
                for cwd, time in places.items():
                    there = self._worktree(cwd)
                    if there and there.git_dir == worktree.git_dir:
                        found.append(Hold(unseen.session.key, report.called + "".join(report.place), time))
        return max(found, key=lambda hold: hold.time, default=None)

    def _read(self, changed: Changed, oldest: float) -> list[tuple[Report, Unseen]]:
        """What a session did since the time `oldest`, as far as the rules let it be told; at most one."""
        from .report import reports_of
        from .unseen import Budget, read_changed

        own, budget = self._own, Budget(DECODED_BYTES, READ_BYTES)
        read, _ = read_changed([changed], {}, own.runtime, self._now, oldest, 1, own.deadline, budget)
        found = reports_of(read, own, self._settings, self._now)
        return [(report, unseen) for report, unseen in found if report is not None]

    def _touches(self, report: Report, unseen: Unseen, oldest: float) -> list[Touch]:
        from .sub_agents import sub_agent_touches

        places, runtime = {entry.cwd for entry in report.entries}, self._own.runtime_of(unseen.session)
        transcripts = self._own.sub_agents_of(unseen.session)
        found = sub_agent_touches(transcripts, runtime, {}, oldest, lambda command: True, places)
        return sorted([*found, *touches_of(report.entries, lambda command: True)], key=lambda touch: touch.time)


def unjudged(command: str) -> Hold:
    """Return why a git command is held back that could not be judged in time: somebody who is asked knows better."""
    return Hold("", "", 0.0, command=command)


def reason_of(hold: Hold, directory: str, now: float) -> str:
    """Why a call is held back, in words for the person who is asked. Paths are shown as seen from `directory`."""
    from ..text.format import one_line, shorten
    from ..text.sanitize import all_for_prompt
    from ..text.timestamps import age

    texts = [hold.name, relative(hold.path, directory), hold.command]
    name, path, command = [one_line(text).replace('"', "'") for text in all_for_prompt(texts)]
    name, path, command = shorten(name, 40), shorten(path, 60), shorten(command, 60)
    when = age(now - hold.time)
    if not hold.session:
        return f'"{command}" could not be checked in time against what other sessions have not committed'
    if hold.is_possible:
        reached = f'"{command}" reaches' if command else "is edited here"
        return f"{name} wrote too much to be read at once (active {when}) and may have edited what {reached}"
    if not hold.path:
        return f'"{command}" moves the worktree that {name} works in (active {when})'
    if command:
        return f'"{command}" reaches {path}, which {name} edited {when} and has not committed'
    return f"{name} edited {path} {when} and has not committed it"


def was_allowed(own: OwnSession, call_id: str) -> bool:
    """Whether a call of the session, or of a sub-agent of it, was made and went well, as the end of its transcript
    shows: then the person who was asked has allowed it."""
    records, wanted = own.runtime.records, call_id.encode()
    for path in (own.path, *own.sub_agents()):
        for line in read_end(path, RESULT_BYTES).split(b"\n"):
            if wanted in line and records.prefilter(line, RESULTS):
                for record in objects_in(line):
                    events = [*records.events(record, 0, RESULTS), *records.events(record, 0, RESULTS | SUB_AGENTS)]
                    results = [one for one in events if isinstance(one, CallResult) and one.call_id == call_id]
                    if any([not one.has_failed for one in results]):
                        return True
    return False


def _is_there(path: str) -> bool:
    return status_at(path) is not None
