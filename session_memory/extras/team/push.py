"""Pushes new shared content of a machine's own store to its team, and withdraws other content.

The team's store records what it has, so a push may be interrupted and repeated.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from ...history.search.index import TERMS_VERSION
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.redaction import rule_set
from ...history.store.sqlite.tool_uses import (
    StoredFile,
    common_items,
    spans_from,
    store_id,
    stored_files,
)
from ...history.store.values import ITEM_BITS, NUMBERS, StoredEntry, StoredSpan
from ...sessions.settings.rules import SHARES
from .postgres._session_push import (
    PreparedBatch,
    PushedSession,
    SessionPush,
    SharedSession,
    checksum,
    mark_of,
)
from .postgres.push import TeamPush

BATCH_ITEMS = 10_000  # in one transaction
_PATH_KINDS = ("edit", "read")


class SharedAs(NamedTuple):
    """The sharing of a session.

    It has the project, the same on all machines; `mine` or `team`; the directory of its repository
    on this machine, to which paths are relative; and its branch, '' if unknown."""

    project: str
    share: str
    root: str
    branch: str = ""

    def directory(self, path: str) -> str:
        """Return a directory in the team's form: the project and the path from its root, or ''.

        It is '' for a directory outside the project."""
        below = self._below(path)
        return f"{self.project}/{below}" if below else self.project

    def file(self, path: str) -> str:
        """Return a file's path in the repository; the path of a file outside is unchanged."""
        return self._below(path) or path

    def _below(self, path: str) -> str:
        return path[len(self.root) + 1 :].rstrip("/") if path.startswith(f"{self.root}/") else ""


class TeamPushReport(NamedTuple):
    """The numbers of sessions and items pushed and of sessions withdrawn, and if all is pushed."""

    sessions: int = 0
    items: int = 0
    withdrawn: int = 0
    is_complete: bool = True


class _Outgoing(NamedTuple):
    """A shared session, and its state in the team's store.

    Its items with the numbers `held` are not shared; items in `copies` are found through another
    session."""

    file: StoredFile
    shared: SharedAs
    held: frozenset[int]
    copies: frozenset[int]
    before: PushedSession | None

    def shape(self, store: int, until: int) -> int:
        """Return a checksum of the sharing of the items below the number `until`, unread."""
        ranges = [
            (first, min(last, until - 1)) for first, last in self.file.ranges if first < until
        ]
        of_items = [
            sorted([number for number in numbers if number < until])
            for numbers in (self.held, self.copies)
        ]
        return checksum(
            store,
            self.file.id,
            self.file.cwd,
            self.shared.project,
            self.shared.root,
            ranges,
            *of_items,
        )

    def session(self, store: int, rules: str) -> SharedSession:
        """Return the session for the team.

        If some items are not shared, it has only a title that a person gave, because another may
        quote them."""
        file, shared = self.file, self.shared
        return SharedSession(
            file.home,
            file.file_path,
            file.session_id,
            file.runtime,
            shared.project,
            shared.share,
            file.given_title if self.held else file.title,
            shared.directory(file.cwd),
            shared.branch,
            file.first_at,
            file.last_at,
            self.shape(store, file.next_number),
            rules,
        )


def push_new(
    store: SqliteStore,
    team: TeamPush,
    shared_as: Callable[[StoredFile, SharedSession | None], SharedAs | None],
    *,
    is_forgotten: Callable[[SharedSession], bool] = lambda _: False,
    is_spent: Callable[[], bool] = lambda: False,
) -> TeamPushReport:
    """Push new content since last time, in batches, until `is_spent`; withdraw unshared content.

    `shared_as` says how a transcript is shared (None: not at all), given its state in the team's
    store. `is_forgotten` decides about withdrawing a session that the store does not have. Nothing
    is pushed before the whole store was redacted by the current rules. Raises DatabaseError."""
    pushed = team.pushed()
    files = {(file.home, file.file_path): file for file in stored_files(store)}
    gone = [sent for key, sent in pushed.items() if key not in files and is_forgotten(sent.session)]
    shares = {}
    for key, file in files.items():
        before = pushed.get(key)
        shares[file.id] = (
            shared_as(file, before.session if before else None) if file.item_count else None
        )
    held, copies = _in_common(store, files.values(), shares)
    id, rules = store_id(store), f"{rule_set()} {TERMS_VERSION}"
    news = []
    for key, file in files.items():
        before, shared = pushed.get(key), shares[file.id]
        if not shared or not file.count_without(held[file.id]):
            gone += [before] if before else []
            continue
        push = _Outgoing(file, shared, frozenset(held[file.id]), frozenset(copies[file.id]), before)
        session = push.session(id, rules)
        if before and _is_another(store, push, session, push.shape(id, before.next_number)):
            gone.append(before)
            push = push._replace(before=None)
        if push.before is None or push.before.session != session or push.before.open_calls:
            news.append((push, session))
    team.withdraw(gone)
    report = TeamPushReport(withdrawn=len(gone))
    if store.redacted_share() < 1:
        return report._replace(is_complete=False)
    return _push_all(team, _batches(_pieces(store, news)), report, is_spent)


def _in_common(
    store: SqliteStore, files: Iterable[StoredFile], shares: Mapping[int, SharedAs | None]
) -> tuple[defaultdict[int, set[int]], defaultdict[int, set[int]]]:
    """Return, by file, the numbers of the items not shared, and of items shared elsewhere.

    An item is not shared if a rule excludes it, or if another session with it is shared with fewer
    people. An item shared elsewhere is found through another session."""
    held = defaultdict(set, {file.id: set(file.hidden) for file in files})
    copies: defaultdict[int, set[int]] = defaultdict(set)
    ranks = {id: SHARES.index(shared.share) if shared else 0 for id, shared in shares.items()}
    by_original: defaultdict[int, list[int]] = defaultdict(list)
    for copy, original in common_items(store):
        by_original[original].append(copy)
    for original, of_it in by_original.items():
        every = [(item >> ITEM_BITS, item & NUMBERS) for item in (original, *of_it)]
        is_hidden = any([number in held[file] for file, number in every])
        least = 0 if is_hidden else min([ranks.get(file, 0) for file, _ in every])
        for file, number in every:
            if ranks.get(file, 0) > least:
                held[file].add(number)
            elif (file, number) != every[0] and ranks.get(every[0][0], 0) == least:
                copies[file].add(number)
    return held, copies


def _push_all(
    team: TeamPush,
    batches: Iterator[list[SessionPush]],
    report: TeamPushReport,
    is_spent: Callable[[], bool],
) -> TeamPushReport:
    """Push batches until `is_spent`.

    While the server writes a batch, the next one is prepared, which takes as long."""
    under_way: tuple[PreparedBatch, Future[bool]] | None = None
    with ThreadPoolExecutor(1) as server:
        try:
            for batch in batches:
                prepared = team.prepare(batch)
                report = _with(report, under_way)
                if is_spent():
                    return report._replace(is_complete=False)
                under_way = prepared, server.submit(team.push, prepared)
            return _with(report, under_way)
        except KeyboardInterrupt:
            team.cut()  # else the server would be waited for
            raise


def _with(
    report: TeamPushReport, under_way: tuple[PreparedBatch, Future[bool]] | None
) -> TeamPushReport:
    """Wait for a batch that is being written, and return the report with it. Raises TeamError."""
    if under_way is None:
        return report
    batch, is_pushed = under_way
    if not is_pushed.result():
        return report._replace(is_complete=False)
    items = sum([session.item_count for session in batch.sessions])
    return report._replace(
        sessions=report.sessions + len(batch.sessions), items=report.items + items
    )


def _is_another(
    store: SqliteStore, outgoing: _Outgoing, session: SharedSession, shape: int
) -> bool:
    """Check if the pushed items are no longer the beginning of the session.

    The transcript was ingested again, part of it was forgotten or excluded, the rules for secrets
    or terms changed, or other people may read it. The session's present `shape` is given."""
    before = outgoing.before
    assert before is not None
    if (before.session.rules, before.session.share) != (session.rules, session.share):
        return True
    if before.next_number > outgoing.file.next_number:
        return True
    if before.session.shape == shape:
        return False
    items = _told(store, outgoing, 0, before.next_number)
    return mark_of(items, outgoing.copies, frozenset(before.open_calls)) != before.mark


def _pieces(
    store: SqliteStore, news: list[tuple[_Outgoing, SharedSession]]
) -> Iterator[SessionPush]:
    """Yield the pushes, session by session, each with all its new items."""
    for outgoing, session in news:
        before, until = outgoing.before, outgoing.file.next_number
        first = before.next_number if before else 0
        numbers = [
            number
            for number in (before.open_calls if before else ())
            if number not in outgoing.held
        ]
        ids = [outgoing.file.id << ITEM_BITS | number for number in numbers]
        ended = tuple([item for id in ids for item in store.items(id, id) if item.outcome])
        if before and before.session == session and not ended:
            continue
        items = tuple(_told(store, outgoing, first, until))
        yield SessionPush(
            before,
            session,
            items,
            outgoing.copies,
            ended,
            tuple(_spans(store, outgoing, first)),
            until,
        )


def _told(store: SqliteStore, outgoing: _Outgoing, first: int, until: int) -> list[StoredEntry]:
    """Return the items with numbers from `first` to below `until`, in their shared form."""
    begin = outgoing.file.id << ITEM_BITS
    return [
        item._replace(
            text=outgoing.shared.file(item.text) if item.kind in _PATH_KINDS else item.text,
            cwd=outgoing.shared.directory(item.cwd),
        )
        for item in store.items(begin + first, begin + until - 1)
        if item.id & NUMBERS not in outgoing.held
    ]


def _spans(store: SqliteStore, outgoing: _Outgoing, first: int) -> list[StoredSpan]:
    """Return the shared conversations that have items from the number `first` on."""
    spans = spans_from(store, outgoing.file.id, first)
    return [
        span
        for span in spans
        if not outgoing.held.issuperset(range(span.first_number, span.last_number + 1))
    ]


def _batches(pieces: Iterator[SessionPush]) -> Iterator[list[SessionPush]]:
    batch: list[SessionPush] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece.items) + 1
        if size >= BATCH_ITEMS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
