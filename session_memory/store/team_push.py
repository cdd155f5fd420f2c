"""What of a machine's own store is new to its team is pushed, if it is shared; what is no longer shared is withdrawn.

The team itself says what it has, so that a push may end anywhere and be done again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from .postgres.session_push import PushedSession, SessionPush, SharedSession, mark_of
from .sqlite.redaction import rule_set
from .sqlite.shareable import copies_from, item_at, items_from, spans_from, stored_files
from .values import ITEM_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from .postgres.push import PushCounts, TeamPush
    from .sqlite.engine import SqliteStore
    from .sqlite.shareable import StoredFile
    from .values import StoredEntry

BATCH_ITEMS = 10_000  # in one transaction
_PATH_KINDS = ("edit", "read")
_NUMBERS = (1 << ITEM_BITS) - 1


class SharedAs(NamedTuple):
    """As what a session is shared: its project, the same on all machines; with whom, `mine` or `team`; the directory of
    the repository on this machine, in relation to which its paths are told; and the branch that it is on, '' where that
    is not known."""

    project: str
    share: str
    root: str
    branch: str = ""

    def directory(self, path: str) -> str:
        """A directory as the team knows it: the project, and the way from its root. One outside is not told."""
        below = self._below(path)
        return f"{self.project}/{below}" if below else self.project

    def file(self, path: str) -> str:
        """A file of the repository as it is called in it; any other as it is."""
        return self._below(path) or path

    def _below(self, path: str) -> str:
        return path[len(self.root) + 1 :].rstrip("/") if path.startswith(f"{self.root}/") else ""


class TeamPushReport(NamedTuple):
    """What was done: sessions and items that were pushed, sessions that were taken back, and whether all is there."""

    sessions: int = 0
    items: int = 0
    withdrawn: int = 0
    is_complete: bool = True


def push_new(
    store: SqliteStore,
    team: TeamPush,
    shared_as: Callable[[StoredFile, SharedSession | None], SharedAs | None],
    *,
    is_forgotten: Callable[[SharedSession], bool] = lambda _: False,
    is_spent: Callable[[], bool] = lambda: False,
) -> TeamPushReport:
    """Pushes what is new since the last time, in batches, until `is_spent`; withdraws what is not shared any more, or
    was forgotten. `shared_as` says of a transcript as what it is shared, None: not at all, by itself and what
    the team has of it. Nothing goes before all that
    is stored was searched for secrets by the rules as they are now. Raises DatabaseError."""
    pushed = team.pushed()
    files = {}
    for file in stored_files(store):
        key = file.home, file.file_path
        known = pushed[key].session if key in pushed else None
        is_told = file.item_count and not file.is_excluded
        files[key] = file, shared_as(file, known) if is_told else None
    withdrawn = {
        one.id for key, one in pushed.items() if (not files[key][1] if key in files else is_forgotten(one.session))
    }
    sent: list[tuple[StoredFile, SharedSession, SharedAs, PushedSession | None]] = []
    rules = rule_set()
    for key, (file, shared) in files.items():
        if shared is None:
            continue
        session = _shared_session(file, shared, rules)
        before = pushed.get(key)
        if before and _is_another(store, file, shared, before, rules):
            withdrawn.add(before.id)
            before = None
        if before is None or file.next_number > before.next_number or before.session != session or before.open_calls:
            sent.append((file, session, shared, before))
    if withdrawn:
        team.withdraw(withdrawn)
    report = TeamPushReport(withdrawn=len(withdrawn))
    if store.redacted_share() < 1:
        return report._replace(is_complete=False)
    return _push_all(team, _batches(_pieces(store, sent)), report, is_spent)


def _push_all(
    team: TeamPush, batches: Iterator[list[SessionPush]], report: TeamPushReport, is_spent: Callable[[], bool]
) -> TeamPushReport:
    """Pushes batches until `is_spent`: while the server writes one, the next is read and made ready, which takes as
    long."""
    under_way: Future[PushCounts] | None = None
    with ThreadPoolExecutor(1) as server:
        try:
            for batch in batches:
                prepared = team.prepare(batch)
                report = _with(report, under_way)
                if is_spent():
                    return report._replace(is_complete=False)
                under_way = server.submit(team.push, prepared)
            return _with(report, under_way)
        except KeyboardInterrupt:
            team.cut()  # else the server would be waited for
            raise


def _with(report: TeamPushReport, under_way: Future[PushCounts] | None) -> TeamPushReport:
    """The report with a batch that was under way, when that is written. Raises TeamError."""
    if under_way is None:
        return report
    done = under_way.result()
    return report._replace(
        sessions=report.sessions + done.sessions,
        items=report.items + done.items,
        is_complete=report.is_complete and not done.skipped,
    )


def _is_another(store: SqliteStore, file: StoredFile, shared: SharedAs, before: PushedSession, rules: str) -> bool:
    """Whether what was pushed is not the beginning of what there is: the transcript was read anew, part of it was
    forgotten or excluded, other secrets are looked for now, or it is shared with others."""
    if before.session.rules != rules or before.session.share != shared.share:
        return True
    if before.next_number > file.next_number:
        return True
    if before.next_number == file.next_number and before.item_count != file.item_count:
        return True
    if before.session.local_id == file.id or not before.next_number:
        return False
    items = items_from(store, file.id, 0, before.next_number)
    return mark_of([_as_shared(item, shared) for item in items]) != before.mark


def _shared_session(file: StoredFile, shared: SharedAs, rules: str) -> SharedSession:
    return SharedSession(
        file.home, file.file_path, file.session_id, file.runtime, shared.project, shared.share, file.title,
        shared.directory(file.cwd), shared.branch, file.first_at, file.last_at, file.id, rules,
    )  # fmt: skip


def _pieces(
    store: SqliteStore, sent: list[tuple[StoredFile, SharedSession, SharedAs, PushedSession | None]]
) -> Iterator[SessionPush]:
    """What is to be pushed, session by session, each with all that is new of it."""
    for file, session, shared, before in sent:
        first = before.next_number if before else 0
        ended = _ended(store, file, before)
        if first >= file.next_number and before and before.session == session and not ended:
            continue
        spans = tuple(spans_from(store, file.id, first)) if first < file.next_number else ()
        yield SessionPush(before, session, *_items(store, file, shared, first), ended, spans, file.next_number)


def _items(
    store: SqliteStore, file: StoredFile, shared: SharedAs, first: int
) -> tuple[tuple[StoredEntry, ...], frozenset[int]]:
    count = file.next_number - first
    if count <= 0:
        return (), frozenset()
    items = tuple([_as_shared(item, shared) for item in items_from(store, file.id, first, count)])
    return items, copies_from(store, file.id, first, count)


def _as_shared(item: StoredEntry, shared: SharedAs) -> StoredEntry:
    text = shared.file(item.text) if item.kind in _PATH_KINDS else item.text
    return item._replace(text=text, cwd=shared.directory(item.cwd))


def _ended(store: SqliteStore, file: StoredFile, before: PushedSession | None) -> tuple[StoredEntry, ...]:
    """The tool uses whose result has come since they were pushed."""
    found = [item_at(store, file.id, number) for number in (before.open_calls if before else ())]
    return tuple([item for item in found if item and item.outcome])


def _batches(pieces: Iterator[SessionPush]) -> Iterator[list[SessionPush]]:
    batch: list[SessionPush] = []
    size = 0
    for one in pieces:
        batch.append(one)
        size += len(one.items) + 1
        if size >= BATCH_ITEMS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
