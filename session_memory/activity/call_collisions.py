"""What an agent is told with the result of a tool call: the collisions over the files that the call edits.

A turn may go on for half an hour without a prompt. What others did since the last one is found by what the prompt has
left behind, which is only read here: nothing of it is locked or written.
"""

from __future__ import annotations

from ..system.files import is_file, read_whole, without_links
from ..system.json import decode
from .call_log import CallLog, edited_key, git_key
from .cursor_file import LAST, are_cursors, is_whole
from .touch_index import TouchIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..settings.compiled import Settings
    from ..system.git import Worktree
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
    from .changes import OwnSession
    from .collision_file import CollisionFile
    from .collisions import Fact
    from .evidence import TranscriptEvidence
    from .report import Report
    from .unseen import Unseen

    Others = list[tuple[Report, Unseen]]
    Settled = tuple[str, float, bool]  # the key of a fact, until when, and whether it was told


class Call:
    """An edit of the file at `path` (absolute) that is about to be made; `agent` is the sub-agent that makes it, '' for
    the session's own."""

    __slots__ = ("agent", "call_id", "path")

    def __init__(self, path: str, call_id: str = "", agent: str = "") -> None:
        self.path = path
        self.call_id = call_id
        self.agent = agent


class CallDelivery:
    """What there is to tell with a call: `text`, '' for nothing; and the `reason` for which a person is to be asked
    whether it may be made, '' for none. To be used in a `with` block.

    It counts as told when the block ends without an exception. As long as the block lasts nothing is told with another
    call of the session.
    """

    def __init__(self, log: CallLog, text: str = "", settled: list[Settled] | None = None) -> None:
        self.text = text
        self.reason = ""
        self._log = log
        self._settled = settled or []

    def settle(self, key: str, time: float) -> None:
        """Notes what is settled too, once the block ends. Raises LockedError, OSError."""
        self._log.acquire()
        self._settled.append((key, time, False))

    def settled(self, beginning: str, time: float) -> list[str]:
        """The rest of the keys that begin so, and under which all is settled until `time`."""
        found = self._log.settled.items()
        return [key[len(beginning) :] for key, until in found if key.startswith(beginning) and until >= time]

    def __enter__(self) -> CallDelivery:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if error_type is None:
                self._log.add(self._settled)
        finally:
            self._log.release()


class CallSearch:
    """The search for what `sessions` did to the files of a call since the session `own` was last told of them. `calls`
    has the call for each of its files, at least one; they are of the same agent.

    `now` is in seconds since the epoch.
    """

    def __init__(
        self, own: OwnSession, calls: Sequence[Call], sessions: list[Session], settings: Settings, now: float
    ) -> None:  # fmt: skip
        self._own = own
        self._calls = [Call(without_links(call.path), call.call_id, call.agent) for call in calls]
        self._sessions = sessions
        self._settings = settings
        self._now = now
        self._cursors, self._collision_path = _told_by_prompts(own)
        self._heard = self._cursors.get(own.key, {}).get("at", 0.0)
        self._oldest = self._heard or now - settings.first_sight_seconds
        self._log = CallLog(own.cursor_file, calls[0].agent)
        self._index = TouchIndex(own.cursor_file, self._cursors)

    def delivery(self, introduction: str, limit: int) -> CallDelivery:
        """What is to be told, in at most `limit` characters with the `introduction`. Raises LockedError where another
        call is being told something, OSError where the files beside the cursors cannot be written."""
        self._index.read_on(self._own, self._sessions, self._now, self._oldest)
        concerned = [one for one in self._sessions if self._has_more(one.key)]
        if not concerned:
            return CallDelivery(self._log)
        others = self._read_again(concerned)
        facts, settled = self._facts(concerned, others)
        self._log.acquire()
        try:
            known = self._log.settled  # by now another call may have told the same
            facts = [one for one in facts if known.get(one.key, -1.0) < settled.get(one.key, one.own_time)]
            lines, told = self._lines(facts, others, limit - len(introduction))
        except BaseException:
            self._log.release()
            raise
        keys, left_out = {one.key for one in told}, {one.key for one in facts} - {one.key for one in told}
        done = [(key, time, key in keys) for key, time in settled.items() if key not in left_out]
        done += [(one.key, one.own_time, True) for one in told if one.key not in settled]
        text = introduction + "\n".join(lines) if lines else ""
        return CallDelivery(self._log, text, done)

    def _has_more(self, key: str) -> bool:
        """Whether a session may have done something to one of the files that is not settled."""
        settled = self._log.settled
        latest = [one for call in self._calls for one in self._latest(key, call.path).items()]
        return any([time > settled.get(about, 0.0) for about, time in latest])

    def _read_again(self, concerned: list[Session]) -> Others:
        """What those sessions did since the last prompt, as far as the rules let it be told."""
        from .changes import changed_sessions
        from .forks import drop_copies
        from .report import reports_of
        from .unseen import read_changed

        own, runtime = self._own, self._own.runtime
        cursors = {key: cursor for key, cursor in self._cursors.items() if is_whole(cursor)}
        changed = changed_sessions(concerned, cursors, self._oldest, own.deadline)
        read, _ = read_changed(changed, cursors, runtime, self._now, self._oldest, len(changed), own.deadline)
        found = reports_of(drop_copies(read, self._sessions, cursors, own), own, self._settings, self._now)
        return [(report, unseen) for report, unseen in found if report is not None]

    def _facts(self, concerned: list[Session], others: Others) -> tuple[list[Fact], dict[str, float]]:
        """The facts, and until when they settle what the sessions did, by the keys of the log."""
        from .evidence import TranscriptEvidence

        own = self._own
        paths = {"": own.path, **{unseen.session.key: unseen.session.path for _, unseen in others}}
        runtimes = {"": own.runtime, **{one.session.key: own.runtime_of(one.session) for _, one in others}}
        facts: list[Fact] = []
        until: dict[str, float] = {}
        for call in self._calls:
            evidence = TranscriptEvidence(runtimes, paths, self._worktree(call), own.user_dir)
            found, settled = self._facts_of(call, concerned, others, evidence)
            facts += found
            until.update(settled)
        return facts, until

    def _facts_of(
        self, call: Call, concerned: list[Session], others: Others, evidence: TranscriptEvidence
    ) -> tuple[list[Fact], dict[str, float]]:
        """The same about one of the files."""
        from .call_facts import facts_of_call
        from .collision_search import touches_of_others
        from .collisions import ACTIVE_SECONDS, InHand
        from .touches import EDIT, Touch

        own, path = self._own, call.path
        file = self._collision_file(call)
        before = file.in_hand
        acting = InHand(before.heard)
        acting.take([Touch(EDIT, path, self._now, 0, "")])
        file.in_hand = acting
        touches = touches_of_others(file, others, own, self._oldest)
        settled = self._log.settled
        active = {unseen.session.key for report, unseen in others if report.last_active >= self._now - ACTIVE_SECONDS}
        facts, until, waiting = facts_of_call(path, before, acting, touches, evidence, file.told, settled, active)
        failed = {unseen.session.key for _, unseen in others} - touches.keys()
        for session in [one for one in concerned if one.key not in failed]:  # what nothing came of is settled
            for key, time in self._latest(session.key, path).items():
                if key not in waiting:
                    until[key] = max(time, until.get(key, 0.0))
        return facts, {key: time for key, time in until.items() if time > settled.get(key, 0.0)}

    def _latest(self, session: str, path: str) -> dict[str, float]:
        """When a session last did something that may concern a file, by the keys of the log."""
        edited, moved = self._index.last_edit(session, path), self._index.last_git(session)
        return {edited_key(session, path): edited, git_key(session, path): moved}

    def _collision_file(self, call: Call) -> CollisionFile:
        """What the agent did to the file before, and what it was told: of a sub-agent only what it did itself."""
        from .collision_file import CollisionFile
        from .collisions import InHand
        from .known_files import follow_links
        from .sub_agents import sub_agent_touches
        from .touches import touches_of
        from .unseen import read_own

        own = self._own
        cursor = self._cursors.get(own.key, {})
        file = CollisionFile(own.cursor_file, self._heard, self._collision_path)
        offsets = {} if call.agent else dict(file.sub_agents)
        touches = sub_agent_touches(own.sub_agents(), own.runtime, offsets, self._oldest, lambda command: True)
        if call.agent:
            file.in_hand, file.told = InHand(self._heard), {}
            touches = [one for one in touches if one.transcript.endswith(f"{call.agent}.jsonl")]
        elif is_file(own.path):
            known = cursor if "tail" in cursor and is_whole(cursor) else None
            read = read_own(own.path, known, own.runtime, self._now, self._oldest)
            touches += touches_of(read.entries, lambda command: True)
        follow_links(touches)
        touches = [one for one in touches if one.path == call.path and one.call_id != (call.call_id or None)]
        file.in_hand.take(sorted(touches, key=lambda touch: touch.time))
        file.in_hand.touched = {path: found for path, found in file.in_hand.touched.items() if path == call.path}
        return file

    def _worktree(self, call: Call) -> Worktree | None:
        from ..system.git import find_worktree

        return find_worktree(call.path.rpartition("/")[0], self._own.user_dir)

    def _lines(self, facts: list[Fact], others: Others, room: int) -> tuple[list[str], list[Fact]]:
        if not facts:
            return [], []
        from .collision_lines import Other, lines_of

        names = {
            unseen.session.key: Other(report.called + "".join(report.place), report.may_quote)
            for report, unseen in others
        }
        worktree = self._worktree(self._calls[0])
        directory = worktree.root if worktree and worktree.root else self._own.directory
        return lines_of(facts, names, directory, self._now, room)


def _told_by_prompts(own: OwnSession) -> tuple[dict[str, Cursor], str]:
    """The cursors behind all that prompts told, and the file of collisions that goes with them ('' for the usual one):
    as they lie there, since they are replaced in one step."""
    try:
        cursors = decode(read_whole(own.cursor_file).decode())[own.key]
    except (OSError, ValueError, KeyError, TypeError):
        return {}, ""
    if not are_cursors(cursors):
        return {}, ""
    if "cursors" not in cursors.get(LAST, ()):
        return cursors, ""
    from .acknowledgement import as_told

    return as_told(cursors, own.cursor_file)
