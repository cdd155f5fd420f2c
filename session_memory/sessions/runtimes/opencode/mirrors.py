"""Brings the mirrors of OpenCode's sessions up to date by adding new final records.

A message or part is final once it has ended; until then OpenCode changes its row. A mark has the
last message read, the unfinished messages, and the start of withdrawn ones. If a user undoes
something, a line withdraws it; if they redo it, it is added again. Deleted messages, such as an
undone message after the next prompt, are withdrawn too.
"""

from __future__ import annotations

from time import time_ns

from ....common.system.files import Opened, is_file, names_in, os, path_stamp, status_at
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ...transcripts.lines import lines_forward, settled_stamp
from ...transcripts.mirror import (
    COMMAND_LOCK_SECONDS,
    Mirror,
    MirrorState,
    keep_state,
    mark_of,
    read_state,
    update_mirrors,
)
from .._database import is_damaged
from .database import DatabaseReader, Error
from .records import ids_in, is_taken_back, is_unnamed
from .rows import decoded, is_final, is_kept, session_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._mirrored import Mirrors
    from .rows import MessageRow, SessionRow

    # the ids of a message and of a part, from which on records are withdrawn
    Place = tuple[str, str]

# the most messages of one session that a prompt adds to its mirror; a longer one waits for upkeep
PROMPT_MESSAGES = 300
PROMPT_BYTES = 1024 * 1024  # after which a prompt begins no further session
# age after which a session is not expected to continue, nor reported at first
RECENT_MILLISECONDS = 24 * 3600 * 1000
_NOWHERE: Place = ("", "")


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new messages to the mirrors.

    Do this for the sessions that a prompt may report, or for all. Sessions that cannot be read, or
    that another process is adding now, are left for the next time."""
    database, root = mirrors.runtime.source(mirrors.config_dir), mirrors.root
    watched = [(path, path_stamp(path)) for path in (database, f"{database}-wal")]

    def work() -> None:
        try:
            with DatabaseReader(database) as opened:
                _Refresh(opened, mirrors, everything).run(watched)
        except Error as error:
            if is_damaged(error):
                state = read_state(root)
                state.unread, state.watched = _damaged(database, error), watched
                keep_state(root, state)
            raise

    state = read_state(root)
    is_whole = state.is_whole and state.rules == mirrors.exclusion.stamps
    has_changed = [(path, stamp) for path, stamp in state.watched] != watched
    if not is_file(database):
        state.watched = watched
        keep_state(root, state)
    elif has_changed or (everything and not is_whole):
        wait_seconds = COMMAND_LOCK_SECONDS if everything else 0.0
        update_mirrors(root, work, Error, wait_seconds=wait_seconds)


def _damaged(database: str, error: Exception) -> dict[str, Any]:
    """Return the damaged database as an unread session, with the reason."""
    return {database.rpartition("/")[2]: [[], f"{database}: {error}"]}


class _Refresh:
    """An update of the mirrors."""

    def __init__(
        self,
        database: DatabaseReader,
        mirrors: Mirrors,
        everything: bool,
    ) -> None:
        self._mirrors = mirrors
        self._database = database
        self._root = mirrors.root
        self._exclusion = mirrors.exclusion
        self._have_rules_changed = False
        self._everything = everything
        self._now = time_ns() // 1_000_000
        self._bytes = 0
        self._going_on: list[str] = []  # sessions that are not final, or left for later
        self._is_whole = True
        self._damage: Exception | None = None

    def run(self, watched: list[tuple[str, list[int]]]) -> None:
        """Add the new messages to each mirror, and store how far the database was read.

        The next call begins there. `watched` are the database's files with their stamps from
        before."""
        before = read_state(self._root)
        self._have_rules_changed = self._everything and before.rules != self._exclusion.stamps
        last = self._database.last_row()
        self._add(self._changed(before))
        if self._everything:
            self._remove_deleted()
        is_settled = all(settled_stamp(path) == stamp for path, stamp in watched)
        state = MirrorState()
        state.watched = watched if is_settled and self._is_whole else []
        state.row, state.going_on = last, self._going_on
        state.is_whole = self._is_whole and (self._everything or before.is_whole)
        state.rules = self._exclusion.stamps if self._everything else before.rules
        state.unread = self._database.unread() if self._everything else before.unread
        if self._damage is not None:
            path = self._mirrors.runtime.source(self._mirrors.config_dir)
            state.unread = _damaged(path, self._damage)
        keep_state(self._root, state)

    def _add(self, session_ids: list[str]) -> None:
        for session_id in session_ids:
            if not self._everything and self._bytes > PROMPT_BYTES:
                self._leave(session_id)
                continue
            try:
                self._database.begin()
                self._add_session(session_id)
                self._database.end()
            except Exception as error:  # an odd session fails alone, for now
                self._damage = error if is_damaged(error) else self._damage
                self._database.end()
                self._leave(session_id)

    def _changed(self, before: MirrorState) -> list[str]:
        """Return the sessions with new messages: those in rows after the last seen one.

        If rows do not show it, for example after a deletion, compare the times of all sessions."""
        database = self._database
        row, message_id = before.last_message
        is_same = bool(row) and database.message_at(row) == message_id
        changed = database.sessions_behind(row) if is_same else []
        if self._everything or not is_same:
            since = 0 if self._everything else self._now - RECENT_MILLISECONDS
            changed += [
                session.id
                for session in database.sessions_since(since)
                if not self._is_known(session)
            ]
        return list(dict.fromkeys([*before.going_on, *changed]))

    def _remove_deleted(self) -> None:
        """Remove the mirrors of sessions deleted in OpenCode; none if its database was lost.

        An empty one stays while a rule hides its session."""
        known = {f"{session.id}.jsonl" for session in self._database.sessions_since(0)}
        folders = [f"{self._root}/{name}" for name in names_in(self._root) if known]
        for folder in folders:
            for name in names_in(folder):
                path = f"{folder}/{name}"
                if not name.endswith(".jsonl"):
                    folders.append(path)
                elif (
                    name not in known
                    and not self._exclusion.hides_deleted(mark_of(path))
                    and self._database.is_same
                ):
                    os.unlink(path)

    def _is_known(self, session: SessionRow) -> bool:
        """Return whether a session's mirror is as new as its last change and uses the same
        rules."""
        if self._have_rules_changed:
            return False
        status = status_at(self._path(session))
        return status is not None and status.st_mtime_ns == session.updated * 1_000_000

    def _path(self, session: SessionRow) -> str:
        """Return the path of a session's mirror; a sub-agent's is in a folder beside its
        session's."""
        above = self._database.parents(session)
        folder = self._mirrors.folder_of(above.id, above.directory)
        return (
            f"{folder}/{session.id}.jsonl"
            if above is session
            else f"{folder}/{above.id}/{session.id}.jsonl"
        )

    def _leave(self, session_id: str) -> None:
        self._going_on.append(session_id)
        self._is_whole = False

    def _add_session(self, session_id: str) -> None:
        """Add the final parts of a session to its mirror. Raises sqlite3.Error, OSError."""
        session = self._database.session(session_id)
        if session is None or not is_name(session.id):
            return
        path = self._path(session)
        above = self._database.parents(session)
        ids, titles = (above.id, session.id), (above.title, session.title)
        first = first_above = self._mirrors.first_directory(path)
        if above is not session:
            first_above = self._mirrors.first_directory(self._path(above))
        others = (session.directory, first_above)
        directories = dict.fromkeys((above.directory, *filter(None, others)))
        hidden_by = self._exclusion.hidden_by(directories, ids, titles)
        repeats = self._mirrors.repeats(above.directory, session.id)
        with Mirror(path, hidden_by, repeats) as mirror:
            if not self._everything:
                created = (mirror.mark.get("after") or [0])[0]
                if self._database.count_behind(session.id, created) > PROMPT_MESSAGES:
                    self._leave(session.id)
                    return
            forgotten = self._exclusion.forgotten(above.directory, above.id, session.id)
            addition = Addition(self._database, session, mirror.mark, path, forgotten)
            if addition.lines or addition.mark != mirror.mark:
                if not self._database.is_same:
                    raise Error("the database is being changed")
                header = self._mirrors.runtime.records.HEADER
                before = [] if mirror.mark else [session_line(session, header, first)]
                lines = [*before, *addition.lines]
                self._bytes += mirror.append(lines, addition.mark, session.updated)
            if addition.goes_on and session.updated > self._now - RECENT_MILLISECONDS:
                self._going_on.append(session.id)


class Addition:
    """The `lines` to add to the mirror of a session with this `mark`, and the `mark` after them.

    If `goes_on`, more follows without another message. Messages up to `forgotten` are not added
    again. Neither is the title, which may be made from them. Raises sqlite3.Error, OSError."""

    def __init__(
        self,
        database: DatabaseReader,
        session: SessionRow,
        mark: dict[str, Any],
        path: str,
        forgotten: float,
    ) -> None:
        self._database = database
        self._session = session
        self._forgotten = forgotten
        self.lines: list[dict[str, Any] | bytes] = []
        self._after: tuple[int, str] = tuple(mark.get("after") or (0, ""))
        self._open: dict[str, list[str]] = dict(mark.get("open") or {})
        # read with the first message that is a copy
        self._originals: dict[tuple[int, str], str] | None = None
        title = "" if forgotten else redact(session.title)
        if title != mark.get("title", ""):
            self.lines.append({"type": "title", "title": title})
        begin = self._taken_back(mark, path)
        self.goes_on = bool(session.reverted[0]) or is_unnamed(session.title)
        self._take(begin)
        self.mark: dict[str, Any] = {
            **mark,
            "after": list(self._after),
            "open": self._open,
            "title": title,
            "reverted": list(session.reverted),
        }

    def _taken_back(self, mark: dict[str, Any], path: str) -> Place:
        """Return the start of the messages that were taken back or deleted.

        All remaining messages from there on are added again."""
        before: Place = tuple(mark.get("reverted") or _NOWHERE)
        places = [place for place in (before, self._session.reverted) if place[0]]
        begin = min(places) if mark and before != self._session.reverted else _NOWHERE
        if self._after[1] and self._database.created(self._after[1]) is None:
            gone = _first_gone(path, set(self._database.message_ids(self._session.id)))
            begin = min(begin, (gone, "")) if begin[0] and gone else (gone, "") if gone else begin
        if begin[0]:
            self.lines.append({"type": "taken_back", "message": begin[0], "id": begin[1]})
            self._open = {key: written for key, written in self._open.items() if key < begin[0]}
        return begin

    def _take(self, begin: Place) -> None:
        """Add the final parts of messages that are new, unfinished, or after `begin`."""
        reverted = self._session.reverted
        before, oldest = self._after, 0
        if begin[0]:
            self._after = (0, "")
        else:
            created = [self._database.created(message_id) for message_id in self._open]
            oldest = min([before[0], *[time for time in created if time is not None]])
        ends_turn = True
        for message in self._database.messages(self._session, oldest):
            if reverted[0] and (
                message.id > reverted[0] or (message.id == reverted[0] and not reverted[1])
            ):
                break
            at = (message.created, message.id)
            is_new = message.id >= begin[0] if begin[0] else at > before
            if (is_new and message.created > self._forgotten * 1000) or message.id in self._open:
                until = reverted[1] if message.id == reverted[0] else ""
                self._take_message(message, begin[1] if message.id == begin[0] else "", until)
            self._after = max(self._after, at)
            ends_turn = message.ends_turn
        self.goes_on = self.goes_on or not ends_turn or bool(self._open)

    def _take_message(self, message: MessageRow, begin: str, until: str) -> None:
        """Add the final parts of a message between `begin` and `until`; add an ended message
        too."""
        written = self._open.pop(message.id, [])
        rows = [(part_id, decoded(data)) for part_id, data in self._database.parts(message.id)]
        originals = (
            self._original_parts(message, [part_id for part_id, _ in rows])
            if message.is_copied
            else []
        )
        texts = []
        for number, (part_id, data) in enumerate(rows):
            if data.get("type") == "text" and data.get("text"):
                texts.append(str(data["text"]))
            is_wanted = (
                part_id not in written and part_id >= begin and (not until or part_id < until)
            )
            if is_wanted and is_kept(data) and is_final(data, message):
                self.lines.append(
                    message.part_line(part_id, data, originals[number] if originals else "")
                )
                written.append(part_id)
        if message.is_ended:
            if message.role == "assistant":
                self.lines.append(message.line(texts if message.ends_turn else []))
        else:
            self._open[message.id] = written

    def _original_parts(self, message: MessageRow, part_ids: list[str]) -> list[str]:
        """Return the ids of the original parts that a fork's message copies.

        The message notes its original too. If the original is gone, return the same ids."""
        if self._originals is None:
            self._originals = self._database.originals(self._session, message.created)
        original = self._originals.get((message.created, message.role), "")
        parts = self._database.part_ids(original) if original else []
        message.original = original or message.id
        return parts if len(parts) >= len(part_ids) else part_ids


def _first_gone(path: str, message_ids: set[str]) -> str:
    """Return the first message that counts in the mirror at `path` and is not in the database.

    Return '' if there is none."""
    mirrored_ids: set[str] = set()
    with Opened(path) as descriptor:
        for _, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
            message_id, _ = ids_in(line)
            if is_taken_back(line):
                mirrored_ids = {
                    mirrored_id for mirrored_id in mirrored_ids if mirrored_id < message_id
                }
            elif message_id:
                mirrored_ids.add(message_id)
    return min(mirrored_ids - message_ids, default="")
