"""Approval: calls about which the user is asked, if the settings say so.

These are an edit of a file that another session has edited and not committed, or of lines that
conflict with another branch, and a git command that affects such edits or moves another session's
worktree.

A session that wrote nothing in the last ACTIVE_SECONDS matters only for edits that a git command
affects. A session with more new entries than can be read at once may have made such edits.
"""

from __future__ import annotations

from ...common.system.files import read_end, status_at, without_links
from ...common.system.git import Worktree, find_worktree
from ...common.system.git_refs import STASH
from ...common.system.json import objects_in
from ...common.text.format import shorten
from ...common.text.paths import resolved
from ...common.text.sanitize import quotable
from ...common.text.timestamps import age
from ...sessions.runtimes.records import RESULTS, SUB_AGENTS, CallResult
from ...sessions.transcripts.read_cursor import ReadCursors
from ._new_entries import Budget, NewEntries, read_changed
from ._shared_reach import effect_on, reached_refs, removed_worktree
from .actions import EDIT, GIT, REMOVE, FileAction, actions_of, by_time, sub_agent_actions
from .call_log import ActionIndex, CallLog, edited_key
from .changes import changed_sessions
from .collisions._evidence import Evidence
from .collisions._git import MOVES, commits_or_stages, has_flag, overwrites, stages
from .collisions._lines import called, shown_command
from .collisions._working_set import KnownFiles
from .collisions.facts import PATH_CHARACTERS, SLACK_SECONDS
from .report import Report, reports_of
from .viewpoint import Viewpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...common.system.git_refs import SharedRef
    from ...common.text.shell_effects import ShellEffect
    from ...sessions.settings.compiled import Settings
    from ...sessions.transcripts.entries import Session
    from .changes import Changed, OwnSession
    from .conflicts import KeptConflict

ACTIVE_SECONDS = 15 * 60
STASH_SECONDS = 5.0  # from a call to the stash that it makes
DECODED_BYTES = 32 * 1024 * 1024  # of all transcripts: if that is not enough, the user is asked
READ_BYTES = 256 * 1024 * 1024
RESULT_BYTES = 2 * 1024 * 1024  # at the end of a transcript, searched for the result of a call
_MOST_QUOTED = 1000  # the longest command, in characters; a longer one may have run out of time
_FORCED = ("--hard", "--force", "--discard-changes")
_WITH_NEW = ("--include-untracked", "--all")
_NEW_BRANCH = ("-b", "-B", "--orphan", "--detach", "-d")


class Objection:
    """A reason to ask about a call.

    The session with the key `session` and this `report` edited the file at `path` at `time`; with
    path '' it was active then in the worktree. `is_removed` means that it removed the file,
    `is_doubtful` that the file changed during one of its commands. `command` is the git command in
    question, as typed. `is_possible` means that not all entries of the session could be read.
    Without a report, nothing was read in time, unless the objection is about a `conflict` with
    another branch that upkeep found. `ref` is a stash or branch of the session that a command takes
    away."""

    def __init__(
        self,
        session: str = "",
        report: Report | None = None,
        time: float = 0.0,
        path: str = "",
        *,
        is_possible: bool = False,
    ) -> None:
        self.session = session
        self.report = report
        self.time = time
        self.path = path
        self.command = ""
        self.is_removed = False
        self.is_doubtful = False
        self.conflict: KeptConflict | None = None
        self.ref: SharedRef | None = None
        self.is_possible = is_possible


class ObjectionSearch:
    """A search for objections to a call of the session `own`.

    It covers the activity of `sessions` until `now`."""

    def __init__(
        self, own_session: OwnSession, sessions: list[Session], settings: Settings, now: float
    ) -> None:
        self._own = own_session
        self._settings = settings
        self._now = now
        self._oldest = now - settings.first_sight_seconds
        known = [*sessions, *own_session.relevant_old(sessions, (), self._oldest)]
        self._sessions = changed_sessions(known, ReadCursors(), self._oldest, own_session)
        self._active = [
            changed for changed in self._sessions if changed[1].st_mtime >= now - ACTIVE_SECONDS
        ]

    def of_edit(self, path: str) -> Objection | None:
        """Return the objection to an edit of the file at `path`.

        Raises OSError if the log cannot be written."""
        worktree = self._worktree(path.rpartition("/")[0]) if self._active else None
        return self._uncommitted(Reach((path,)), worktree, self._active) if worktree else None

    def of_conflict(self, path: str, replaced: list[str]) -> Objection | None:
        """Return the objection to an edit that replaces these texts in the file at `path`.

        The path is absolute. The objection is a conflict that upkeep found there. Raises OSError,
        ValueError."""
        from .conflicts import hit

        conflict = hit(self._own, without_links(path), replaced, self._now)
        if conflict is None:
            return None
        objection = Objection(f"conflict {conflict.pair}", None, conflict.at, path)
        objection.conflict = conflict
        return objection

    def of_command(self, command: str, directory: str) -> Objection | None:
        """Return the objection to a command line run in `directory`.

        Raises OSError as `of_edit` does."""
        if not self._sessions:
            return None
        from ...common.text.shell_effects import effects_of

        for effect in effects_of(command, directory):
            objection = self._sharing(effect) if effect.kind == GIT else None
            if objection is not None:
                return objection
            removed = removed_worktree(effect.words, effect.path)
            reach = (
                Reach(("",), moves=True)
                if removed
                else reach_of(effect.words, effect.path, lambda path: status_at(path) is not None)
                if effect.kind == GIT
                else Reach((effect.path,))
            )
            worktree = self._worktree(removed or effect.path) if reach else None
            if reach is None or worktree is None:
                continue
            objection = self._uncommitted(reach, worktree, self._sessions) if reach.paths else None
            if objection is None and reach.moves:
                objection = self._working_in(worktree)
            if objection is not None:
                objection.command = effect.typed
                return objection
        return None

    def _sharing(self, effect: ShellEffect) -> Objection | None:
        """Return the active session whose stash or branch a git command takes away.

        Raises OSError."""
        worktree, home = self._worktree(effect.path), self._own.home
        if worktree is None or home is None:
            return None
        from .collisions.ref_notes import note

        notes = note(home, worktree.git_dir, self._now)
        for ref in reached_refs(effect.words, notes.refs):
            owners = notes.owners.get(ref.key, [])
            for changed in self._active if self._own.key not in owners else ():
                is_owner = changed[0].key in owners
                since = self._now - ACTIVE_SECONDS
                if not is_owner and (owners or ref.kind != STASH or ref.time < since):
                    continue
                for report, new in self._read(changed, since):
                    if is_owner or _has_stashed(report, ref.time):
                        objection = Objection(new.session.key, report, report.last_active)
                        objection.command, objection.ref = effect.typed, ref
                        return objection
        return None

    def _worktree(self, directory: str) -> Worktree | None:
        return find_worktree(directory, self._own.user_dir)

    def _uncommitted(
        self, reach: Reach, worktree: Worktree, sessions: list[Changed]
    ) -> Objection | None:
        """Return the last uncommitted edit by one of the sessions within `reach`."""
        index = ActionIndex(CallLog(self._own.cursor_file), "approval", ReadCursors())
        everyone, budget = (
            [session for session, _ in self._sessions],
            Budget(DECODED_BYTES, READ_BYTES),
        )
        index.read_on(self._own, everyone, self._now, self._oldest, budget)
        evidence = Evidence({}, {}, worktree, self._own.user_dir)
        candidates = []
        for changed in sessions:
            edited = index.edited.get(changed[0].key, {})
            written = {
                path: index.latest(changed[0].key, path)[edited_key(changed[0].key, path)]
                for path in reach.paths
            }
            for path, time in {**written, **edited}.items():
                is_reached = (
                    time and path.startswith(worktree.root + "/") and reach.covers(path, evidence)
                )
                if is_reached and not _is_committed(path, time, evidence):
                    candidates.append((time, path, changed))
            cursor = index.cursors.get(changed[0].key)
            if cursor is None or cursor.unread:
                candidates.append((0.0, "", changed))
        for time, path, changed in sorted(candidates, key=lambda candidate: -candidate[0]):
            objection = self._seen_edit(changed, path, time, worktree) if path else None
            # not all was read
            for report, new in self._read(changed, self._now - ACTIVE_SECONDS) if not path else ():
                objection = Objection(new.session.key, report, report.last_active, is_possible=True)
            if objection is not None:
                return objection
        return None

    def _seen_edit(
        self, changed: Changed, path: str, time: float, worktree: Worktree
    ) -> Objection | None:
        """Return the edit as its transcript and the disk show it, or None.

        It is None if the edit was refused or is hidden."""
        for report, new in self._read(changed, time - 1):
            key = new.session.key
            paths = {"": self._own.path, key: new.session.path}
            runtimes = {"": self._own.runtime, key: self._own.runtime_of(new.session)}
            evidence = Evidence(runtimes, paths, worktree, self._own.user_dir)
            for action in reversed(self._actions(report, new, time - 1, path)):
                if (
                    action.kind in (EDIT, REMOVE)
                    and action.path == path
                    and _shows(action, key, evidence)
                ):
                    objection = Objection(key, report, action.time, path)
                    objection.is_removed = action.kind == REMOVE
                    objection.is_doubtful = action.is_doubtful
                    return objection
            if new.is_partial:
                return Objection(key, report, time, path, is_possible=True)
        return None

    def _working_in(self, worktree: Worktree) -> Objection | None:
        """Return the session that worked last in a worktree."""
        objections = []
        for changed in self._active:
            for report, new in self._read(changed, self._now - ACTIVE_SECONDS):
                places = {
                    entry.cwd: entry.timestamp
                    for entry in report.entries
                    if entry.tools and entry.timestamp
                }
                for cwd, time in places.items():
                    there = self._worktree(cwd)
                    if there and there.git_dir == worktree.git_dir:
                        objections.append(Objection(new.session.key, report, time))
        return max(objections, key=lambda objection: objection.time, default=None)

    def _read(self, changed: Changed, oldest: float) -> list[tuple[Report, NewEntries]]:
        """Return a session's permitted activity since the time `oldest`, as at most one report."""
        own_session, budget = self._own, Budget(DECODED_BYTES, READ_BYTES)
        read, _ = read_changed(own_session, [changed], ReadCursors(), self._now, oldest, 1, budget)
        reports = reports_of(read, own_session, self._settings, self._now)
        return [(report, new) for report, new in reports if report is not None]

    def _actions(
        self, report: Report, new: NewEntries, oldest: float, path: str
    ) -> list[FileAction]:
        """Return a session's actions, including those that may have written the file at `path`."""
        transcripts, runtime = (
            self._own.sub_agents_of(new.session),
            self._own.runtime_of(new.session),
        )
        actions = sub_agent_actions(
            transcripts, runtime, {}, oldest, gate=report.gate
        ) + actions_of(report.entries)
        files = KnownFiles([path])
        actions += [edit for action in actions for edit in files.edits_by(action)]
        return sorted(actions, key=by_time)


def _shows(action: FileAction, session: str, evidence: Evidence) -> bool:
    """Check if another session's edit or removal was carried out and is visible on the disk."""
    end, has_failed = evidence.end(session, action)
    if end is None or (has_failed and not action.is_command):
        return False
    modified = evidence.modified(action.path, is_moved=bool(action.words))
    if action.kind == REMOVE:
        return modified is None and not action.is_doubtful
    began = evidence.began(session, action) - SLACK_SECONDS
    if action.is_doubtful:
        return modified is not None and began <= modified <= end + SLACK_SECONDS
    until = evidence.modified_until(action.path, is_moved=bool(action.words))
    return until >= began or (not action.is_command and evidence.is_older(action.path, began))


def _is_committed(path: str, edited_at: float, evidence: Evidence) -> bool:
    """Check if an edit of a file was committed: the file equals its version in HEAD.

    If git cannot tell, a later commit that may have changed the file is enough."""
    is_committed = evidence.is_as_committed(path)
    if is_committed is not None:
        return is_committed
    later = [move for move in evidence.moves_since(edited_at) if move.message.startswith("commit")]
    return any([evidence.has_changed(move, path) is not False for move in later])


def _has_stashed(report: Report, time: float) -> bool:
    """Check if a session began a `git stash` in the second a stash was made, or just before.

    A `git commit` counts too, because its hooks may keep a backup in the stash (lint-staged)."""
    actions = [action for action in actions_of(report.entries) if action.kind == GIT]
    times = [
        action.time
        for action in actions
        if action.words[:1] == ("commit",)
        or (action.words[:1] == ("stash",) and overwrites(action.words))
    ]
    return any([time - STASH_SECONDS <= began < time + 1 for began in times])


def unjudged(command: str, path: str = "", modified: float = 0.0) -> Objection:
    """Return the objection to a git command or an edit that could not be judged in time.

    The user can judge it better. For an edit, the file is at `path` and was `modified` at that
    time."""
    objection = Objection("", None, modified, path)
    objection.command = command[:_MOST_QUOTED]
    return objection


def reason_of(objection: Objection, own_session: OwnSession, now: float) -> str:
    """Return an objection in words for the session's user."""
    viewpoint = Viewpoint(own_session.start, own_session.user_dir)
    path = shorten(quotable([viewpoint.shown(objection.path)])[0], PATH_CHARACTERS)
    command = shown_command(objection.command) if objection.command else ""
    when = age(now - objection.time)
    if objection.conflict:
        return objection.conflict.line(now, viewpoint.inside).removeprefix("! ")
    if objection.report is None:
        return (
            f"{command or path} could not be checked in time: other sessions may have edits there "
            "that are not committed"
        )
    name = called(objection.report)
    if objection.is_possible:
        return (
            f"{command or 'this edit'} may affect uncommitted edits of {name}, active {when}, "
            "which wrote too much to be checked"
        )
    if objection.ref is not None:
        return f"{command} {effect_on(objection.ref)} of {name}, active {when}"
    if not objection.path:
        return f"{command} changes the worktree of {name}, active {when}"
    reached = f"{command} affects " if command else ""
    done = f"{'removed' if objection.is_removed else 'edited'} {when} by"
    done = f"changed {when} during a command of" if objection.is_doubtful else done
    return f"{reached}{path}, {done} {name} and not committed since"


def was_allowed(own_session: OwnSession, call_id: str) -> bool:
    """Check at the end of a transcript if a call succeeded, so the user has allowed it."""
    records, wanted = own_session.runtime.records, call_id.encode()
    for path in (own_session.path, *own_session.sub_agents()):
        for line in read_end(path, RESULT_BYTES).split(b"\n"):
            if wanted in line and records.prefilter(line, RESULTS):
                for record in objects_in(line):
                    events = [
                        *records.events(record, 0, RESULTS),
                        *records.events(record, 0, RESULTS | SUB_AGENTS),
                    ]
                    results = [
                        event
                        for event in events
                        if isinstance(event, CallResult) and event.call_id == call_id
                    ]
                    if any([not result.has_failed for result in results]):
                        return True
    return False


class Reach:
    """The effect of a command on others.

    It affects uncommitted work below one of `paths` (absolute; '' for the whole worktree). With
    `moves` it also affects the sessions in the worktree, which is at another commit afterwards. A
    `commit` affects only the files that it includes, and one with `is_tracked` only files that git
    tracks."""

    def __init__(
        self,
        paths: tuple[str, ...] = (),
        *,
        moves: bool = False,
        commit: FileAction | None = None,
        is_tracked: bool = False,
    ) -> None:
        self.paths = paths
        self.moves = moves
        self.commit = commit
        self.is_tracked = is_tracked

    def covers(self, path: str, evidence: Evidence) -> bool:
        """Check if the command affects uncommitted changes of the file at `path`."""
        if not any(
            [not place or f"{path}/".startswith(place.rstrip("/") + "/") for place in self.paths]
        ):
            return False
        takes = stages(self.commit, path) if self.commit else True
        if takes is None:  # it commits the index
            return evidence.is_staged(path)
        return takes and (not self.is_tracked or evidence.is_tracked(path))


def reach_of(
    words: tuple[str, ...], directory: str, is_there: Callable[[str], bool]
) -> Reach | None:
    """Return the effect of a git command in `directory`; None if it is harmless to others.

    `words` are the command from the subcommand on. `is_there` checks if a path exists."""
    command, arguments = words[0], words[1:]
    if not (commits_or_stages(words) or overwrites(words)):
        return None
    if command in MOVES:
        if set(arguments) & {"--abort", "--continue", "--skip", "--quit"}:
            return None
        return _moving(command, arguments)
    if command in ("checkout", "restore"):
        return _checked_out(command, arguments, directory, is_there)
    if command in ("clean", "checkout-index"):
        everything = directory if command == "clean" else ""
        paths = _paths(arguments, directory) or (everything,)
        return Reach(paths, is_tracked=command == "checkout-index")
    if command == "commit":
        commit = FileAction(GIT, directory, (0.0, 0, ""), words=words)
        return Reach(("",), commit=commit, is_tracked=True)
    if command == "add":
        is_all = any([has_flag(word, "Au") or word in ("--all", "--update") for word in arguments])
        return Reach(_paths(arguments, directory) or (("",) if is_all else ()))
    if command == "stash":
        return _stashed(arguments, directory)
    if command == "reset" and any(
        [not word.startswith("-") and word != "HEAD" for word in arguments]
    ):
        return _moving(command, arguments)
    return Reach(("",), is_tracked=True)  # a reset to HEAD


def _stashed(arguments: tuple[str, ...], directory: str) -> Reach:
    """Return the effect of `stash`, which includes untracked files only with an option."""
    if "--" in arguments:
        return Reach(_paths(arguments[arguments.index("--") + 1 :], directory))
    takes_new = any([has_flag(word, "ua") or word in _WITH_NEW for word in arguments])
    return Reach(("",), is_tracked=not takes_new)


def _moving(command: str, arguments: tuple[str, ...]) -> Reach:
    """Return the effect of a command that moves the worktree.

    If forced, it also overwrites all uncommitted work."""
    is_forced = any(
        [word in _FORCED or (command != "merge" and has_flag(word, "f")) for word in arguments]
    )
    return Reach(("",) if is_forced else (), moves=True, is_tracked=True)


def _checked_out(
    command: str, arguments: tuple[str, ...], directory: str, is_there: Callable[[str], bool]
) -> Reach | None:
    """Return the effect of `checkout` or `restore`.

    With a branch it moves the worktree; with paths it overwrites uncommitted work."""
    if "--" in arguments:
        return Reach(_paths(arguments[arguments.index("--") + 1 :], directory), is_tracked=True)
    if command == "restore":
        is_index = "--staged" in arguments and "--worktree" not in arguments
        return None if is_index else Reach(_paths(arguments, directory), is_tracked=True)
    paths = _paths(arguments, directory)
    if not paths or any([word in _NEW_BRANCH for word in arguments]):
        return _moving(command, arguments) if arguments else None
    if len(paths) > 1 and not is_there(paths[0]):  # out of a commit
        paths = paths[1:]
    return (
        Reach(paths, is_tracked=True)
        if all([is_there(path) for path in paths])
        else _moving(command, arguments)
    )


def _paths(words: tuple[str, ...], directory: str) -> tuple[str, ...]:
    return tuple([resolved(word, directory) for word in words if word and not word.startswith("-")])
