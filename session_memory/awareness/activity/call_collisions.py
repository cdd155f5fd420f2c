"""Collisions and conflicts for a tool call, in the files that the call is about to edit.

A turn may last half an hour without a prompt. So a call looks for the activity since the last
prompt, starting from the state that the prompt left. That state is only read here, not locked or
written.
"""

from __future__ import annotations

from ...common.system.files import is_file, without_links
from .call_log import ActionIndex, CallLog, edited_key
from .changes import OwnSession, changed_sessions, inbox_stamp, seen_until
from .session_state import KnownState, OwnState, SessionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...common.system.git import Worktree
    from ...sessions.settings.compiled import Settings
    from ...sessions.transcripts.entries import Session
    from .collisions._working_set import CollisionState
    from .collisions.facts import Fact
    from .collisions.search import Findings, Others
    from .conflicts import KeptConflict
    from .status_line import Edit
    from .viewpoint import Viewpoint

    SettledLine = tuple[str, float, bool]  # the key of a fact, until when, and if it was reported


class CallDelivery:
    """The text to report with a call, for use in a `with` block.

    `text` is '' if there is none. `reason` is the reason to ask the user before the call, or ''.
    `edit` is the newest edit in the text for a status line. `is_start` means that a sub-agent gets
    the text at its start. The text counts as reported if the block ends without an exception.
    Meanwhile no other call of the session reports anything."""

    def __init__(
        self,
        log: CallLog,
        text: str = "",
        settled: list[SettledLine] | None = None,
        edit: Edit | None = None,
    ) -> None:
        self.text = text
        self.edit = edit
        self.reason = ""
        self.is_start = False
        self._log = log
        self._settled = settled or []

    def acquire(self) -> None:
        """Keep other calls of the session from reporting until the block ends.

        Raises LockedError, OSError."""
        self._log.acquire()

    def settle(self, key: str, time: float, *, is_reported: bool = False) -> None:
        """Settle one more key at the end of the block. Raises LockedError, OSError."""
        self._log.acquire()
        self._settled.append((key, time, is_reported))

    def settled(self, beginning: str, time: float) -> list[str]:
        """Return the ends of the keys that have this beginning and are settled until `time`."""
        times_by_key = self._log.settled.items()
        return [
            key[len(beginning) :]
            for key, until in times_by_key
            if key.startswith(beginning) and until >= time
        ]

    def __enter__(self) -> CallDelivery:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if error_type is None:
                self._log.add(self._settled, for_prompts=self.is_start)
        finally:
            self._log.release()


class CallSearch:
    """A search for collisions of the `calls` of one `agent` with the work of `sessions`.

    Each call is the path of the file that it is about to edit, and its id ('' if unknown). The
    search covers the time since the last update of the session `own`. A starting sub-agent has seen
    no update, so its search covers the time before too. `agent` is '' for the session itself. `now`
    is in seconds since 1970."""

    def __init__(
        self,
        own_session: OwnSession,
        calls: Sequence[tuple[str, str]],
        agent: str,
        sessions: list[Session],
        settings: Settings,
        now: float,
        *,
        is_start: bool = False,
    ) -> None:
        self._own = own_session
        self._agent = agent
        self._call_ids = {call_id for _, call_id in calls if call_id}
        self._paths = list(dict.fromkeys([without_links(path) for path, _ in calls]))
        self._settings = settings
        self._now = now
        self._state = SessionState() if is_start else _reported_state(own_session)
        self._own_state = self._state.own or OwnState()
        self._cursors = self._state.cursors
        # Read as far back as a prompt reads sessions without a cursor. A call from before the last
        # prompt may be written after it, and entries that did not fit into the prompt are waiting.
        self._oldest = max(now - settings.first_sight_seconds, seen_until(self._own_state, now))
        self._log = CallLog(own_session.cursor_file, self._agent, now)
        self._index = ActionIndex(self._log, "start" if is_start else "prompt", self._cursors)
        known = {*self._cursors, *self._index.cursors}
        self._sessions = [*sessions, *own_session.relevant_old(sessions, known, self._oldest)]

    def delivery(self, introduction: str, limit: int) -> CallDelivery:
        """Return the text to report, in at most `limit` characters with the `introduction`.

        Raises LockedError if another call is reporting, OSError if the log cannot be written."""
        self._index.read_on(self._own, self._sessions, self._now, self._oldest)
        concerned = [session for session in self._sessions if self._may_concern(session)]
        conflicts = self._conflicts() if inbox_stamp(self._own) else []
        if not (concerned or conflicts):
            return CallDelivery(self._log)
        others, answered = self._read_again(concerned) if concerned else ([], set())
        facts, settled = self._search(answered, others) if concerned else ([], {})
        try:
            self._log.acquire()
            facts = self._unreported(facts, settled)
            room = limit - len(introduction)
            lines, reported, edit = self._lines(facts, others, room)
            told_keys: list[str] = []
            if conflicts:
                from .inbox import lines_about

                room -= sum([len(line) + 1 for line in lines])
                inside, settled_keys = self._viewpoint().inside, self._log.settled
                more, told_keys = lines_about(conflicts, settled_keys, self._now, room, inside)
                lines += more
        except BaseException:
            self._log.release()
            raise
        done = _settled_lines(facts, reported, settled)
        done += [(key, self._now, True) for key in told_keys]
        return CallDelivery(self._log, introduction + "\n".join(lines) if lines else "", done, edit)

    def _may_concern(self, session: Session) -> bool:
        """Check if a session may have unsettled actions on one of the files."""
        settled = self._log.settled
        return any(
            [
                time > settled.get(key, 0.0)
                for path in self._paths
                for key, time in self._index.latest(session.key, path).items()
            ]
        )

    def _unreported(self, facts: list[Fact], settled: dict[str, float]) -> list[Fact]:
        """Return the facts that another call has not reported by now."""
        known = self._log.settled
        return [
            fact
            for fact in facts
            if known.get(fact.key, -1.0) < settled.get(fact.key, fact.own_time)
        ]

    def _conflicts(self) -> list[KeptConflict]:
        """Return the conflicts in the files that the agent has not been told."""
        from .conflicts import of_files

        known = () if self._agent else self._own_state.notes_told
        inputs = (self._own, self._paths, self._now)
        conflicts = self._own.deadline.attempt("conflicts", of_files, *inputs) or ()
        return [
            conflict
            for conflict in conflicts
            if conflict.key not in known and conflict.key not in self._log.settled
        ]

    def _read_again(self, concerned: list[Session]) -> tuple[Others, set[str]]:
        """Return these sessions' activity since the last prompt, and the keys of the sessions read.

        The activity is limited to what the rules permit."""
        from ._forks import drop_copies
        from ._new_entries import read_changed
        from .report import reports_of

        own_session = self._own
        changed = changed_sessions(concerned, self._cursors, self._oldest, own_session)
        read, _ = read_changed(
            own_session, changed, self._cursors, self._now, self._oldest, len(changed)
        )
        reports = reports_of(
            drop_copies(read, self._sessions, self._cursors, own_session),
            own_session,
            self._settings,
            self._now,
        )
        others = [(report, new) for report, new in reports if report is not None]
        return others, {new.session.key for _, new in reports}

    def _search(self, answered: set[str], others: Others) -> tuple[list[Fact], dict[str, float]]:
        """Return the facts, and the times up to which the `answered` sessions' actions are settled.

        The times are by the keys of the log."""
        from .collisions.search import Known, find

        facts: list[Fact] = []
        until: dict[str, float] = {}
        for worktree, paths in self._by_worktree():
            known = Known(
                self._own,
                self._own_collisions(paths),
                worktree,
                self._log.settled,
                self._now,
                self._oldest,
            )
            findings = find(known, others, paths)
            facts += findings.facts
            for session in answered - findings.failed:
                for path in paths:
                    until.update(self._settled_by(findings, session, path))
        return facts, {
            key: time for key, time in until.items() if time > self._log.settled.get(key, 0.0)
        }

    def _settled_by(self, findings: Findings, session: str, path: str) -> dict[str, float]:
        """Return the time up to which a session's actions on a file are known.

        It is now, unless some of the session's calls are unfinished."""
        from .actions import EDIT, GIT, REMOVE

        actions, waiting = findings.actions.get(session, []), findings.open_actions.get(session, [])
        until = {}
        for key, latest in self._index.latest(session, path).items():
            kinds = (EDIT, REMOVE) if key == edited_key(session, path) else (GIT,)
            about = [
                action
                for action in actions
                if action.kind in kinds
                and (
                    action.kind == GIT or action.path == path or path.startswith(f"{action.path}/")
                )
            ]
            times = [action.time for action in about if action not in waiting]
            is_over = len(times) == len(about)
            until[key] = max([*times, latest if is_over else 0.0], default=0.0)
        return until

    def _by_worktree(self) -> list[tuple[Worktree | None, list[str]]]:
        from ...common.system.git import find_worktree

        paths_by_worktree: dict[str, tuple[Worktree | None, list[str]]] = {}
        for path in self._paths:
            worktree = find_worktree(path.rpartition("/")[0], self._own.user_dir)
            paths_by_worktree.setdefault(worktree.git_dir if worktree else "", (worktree, []))[
                1
            ].append(path)
        return list(paths_by_worktree.values())

    def _own_collisions(self, paths: list[str]) -> CollisionState:
        """Return the agent's earlier actions on the files, and its reported facts.

        A sub-agent has actions and facts of its own."""
        from ._new_entries import read_own
        from .actions import GIT, actions_of, is_of_agent, sub_agent_actions
        from .collisions._evidence import Evidence
        from .collisions._working_set import CollisionState, WorkingSet, resolve_symlinks

        own_session = self._own
        updated = self._own_state.updated
        state = CollisionState.load(self._state.collisions or "", updated)
        offsets = {} if self._agent else dict(state.sub_agents)
        actions = sub_agent_actions(
            own_session.sub_agents(), own_session.runtime, offsets, self._oldest
        )
        if self._agent:
            state.working_set, state.reported = WorkingSet(updated), {}
            actions = [action for action in actions if is_of_agent(action.transcript, self._agent)]
        elif is_file(own_session.path):
            cursor = self._own_state.cursor
            actions += actions_of(read_own(own_session, cursor, self._now, self._oldest).entries)
        resolve_symlinks(actions)
        actions = [
            action
            for action in actions
            if (action.path in paths or action.kind == GIT) and action.call_id not in self._call_ids
        ]
        # Copilot CLI has no call ids, so any call without a result is this call or waits like it
        if not self._call_ids:
            results = Evidence(
                {"": own_session.runtime}, {"": own_session.path}, None, own_session.user_dir
            )
            actions = [
                action
                for action in actions
                if not action.call_id or results.end("", action)[0] is not None
            ]
        state.working_set.add(sorted(actions, key=lambda action: action.time))
        return state

    def _lines(
        self, facts: list[Fact], others: Others, room: int
    ) -> tuple[list[str], list[Fact], Edit | None]:
        if not facts:
            return [], [], None
        from .collisions._lines import lines_of, newest_edit, reports_by_key

        viewpoint, reports = self._viewpoint(), reports_by_key(others)
        lines, reported = lines_of(facts, reports, viewpoint, self._now, room)
        return lines, reported, newest_edit(reported, reports, viewpoint)

    def _viewpoint(self) -> Viewpoint:
        from .viewpoint import Viewpoint

        return Viewpoint(self._own.start, self._own.user_dir)


def _settled_lines(
    facts: list[Fact], reported: list[Fact], settled: dict[str, float]
) -> list[SettledLine]:
    """Return the lines of the log for everything settled, except by facts that did not fit."""
    keys = {fact.key for fact in reported}
    left_out = {fact.key for fact in facts} - keys
    lines = [(key, time, key in keys) for key, time in settled.items() if key not in left_out]
    return lines + [(fact.key, fact.own_time, True) for fact in reported if fact.key not in settled]


def _reported_state(own_session: OwnSession) -> SessionState:
    """Return the state after everything that prompts reported, without the lock.

    No lock is needed, because the file is replaced atomically."""
    try:
        return KnownState(own_session.cursor_file).of(own_session.key).as_reported()
    except OSError:
        return SessionState()
