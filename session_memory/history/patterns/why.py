"""Explains a line: its session, who asked for it in which words, and the decisions.

A line is attributed by the keyed hashes of written lines, else by calls that prove who wrote it
(why_evidence.py). A guess by time is marked as one. Only the local store is read, so no member of a
team is named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...common.text.format import one_line, shorten
from ...common.text.written_lines import LEAST_CHARACTERS, line_hashes, line_in, normalised
from ...sessions.transcripts.reader import is_request
from ..git.commits import UNCOMMITTED, CodeLine, Commit, Repository
from ._quotations import decisions, is_go_ahead, proposal_in
from ._why_evidence import CallEvidence

if TYPE_CHECKING:
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.written_lines import WrittenLine
    from ..store.values import Conversation, StoredEntry

# The longest time between writing and committing a line. In public checkpoints, none of 106 older
# lines (a day and more) came from the commit's session. In a file with another name, 4 of 10 lines
# between 6 hours and a day were wrong.
MOST_AGE = 3 * 24 * 3600_000
MOST_AGE_ELSEWHERE = 6 * 3600_000
SLACK = 5 * 60_000  # that clocks may differ by
DISTINCT_CHARACTERS = 24  # of a line that identifies its writer without the file's name
DISTINCT_SESSIONS = 3  # that wrote such a line
WORDS_CHARACTERS = 400
PROPOSAL_CHARACTERS = 300
ITEMS_BEFORE = 400  # of a conversation, read to find the request
MOST_STEPS = 5  # back, of so many items
GUESS_WITHIN = 24 * 3600_000
BY_TIME = "time alone"  # the basis of a guess
_LOCKS = (
    "go.sum",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "uv.lock",
    "poetry.lock",
    "Cargo.lock",
    "requirements.lock",
)
_BOT = re.compile(r"\[bot\]|^(?:dependabot|renovate|greenkeeper|snyk-bot|github-actions)\b", re.I)
_BUMP = re.compile(
    r"\bbump\b.*\bfrom\b.*\bto\b|\bupdate dependency\b|^(?:chore|build|fix)\(deps", re.I
)


class Asked(NamedTuple):
    """The request that led to lines, and its session.

    `words` are the request's own, `decided` are later sentences with decisions; all are verbatim.
    If the request is a bare go-ahead, `proposal` is what it accepts, else ''. `number` is the
    item's, for `read --around`. `command` is the command line that proves the authorship, '' if the
    lines of an edit do."""

    session_id: str
    runtime: str
    title: str
    conversation: int
    number: int
    at: int | None
    words: str
    proposal: str
    decided: tuple[str, ...]
    request_item: int = 0
    proposal_item: int = 0
    command: str = ""


class Reformatting(NamedTuple):
    """A commit that changed only the layout of lines, with its session, or else a guess by time."""

    commit: Commit
    origin: Asked | None
    guess: Conversation | None


class Reason(NamedTuple):
    """The reason for a range of lines, or for a commit with `ranges` (path, first and last line).

    `asked` is None if unknown. `mover` is the later session that moved the lines. `guess` is a
    conversation close in time, and `guessed_by` the basis of the guess. `refused` is why nothing is
    attributed. `is_by_commit` means that only the maker of the commit is known. `not_compared`
    counts lines of a huge commit that were left out. `reformatted` is the later change of the
    layout alone."""

    path: str
    first: int
    last: int
    commit: Commit | None
    asked: Asked | None
    lines: int = 0
    mover: Asked | None = None
    guess: Conversation | None = None
    refused: str = ""
    ranges: tuple[tuple[str, int, int], ...] = ()
    guessed_by: str = ""
    is_by_commit: bool = False
    not_compared: int = 0
    reformatted: Reformatting | None = None


def bot_reason(commit: Commit) -> str:
    """Return why a commit is attributed to no session: a bot made it, or it bumps dependencies.

    Return '' for other commits."""
    if _BOT.search(commit.author) or _BOT.search(commit.mail):
        return "a bot made this commit"
    if _BUMP.search(commit.subject):
        return "this commit bumps dependencies"
    if commit.files and all(path.rpartition("/")[2] in _LOCKS for path in commit.files):
        return "this commit changes lock files only"
    return ""


class Reasons:
    """Answers questions about a repository from a store."""

    def __init__(
        self,
        store: SqliteStore,
        repository: Repository,
        key: bytes,
    ) -> None:
        self._store = store
        self._repository = repository
        self._key = key
        self._written: dict[str, Counter[str]] = {}
        self._evidence = CallEvidence(store, repository, key)

    def of_lines(self, path: str, first: int, last: int) -> list[Reason]:
        """Return the reasons of a file's lines, one for each run of lines by the same writer.

        The file is in the worktree. Raises GitUnavailableError, DatabaseError."""
        lines = self._repository.lines(path, first, last)
        items = self._items(lines)
        earlier = {line.number: self._before_reformatting(line, items) for line in lines}
        if any(earlier.values()):
            lines = [earlier[line.number] or line for line in lines]
            items = self._items(lines)
        latest = self.attributed([line._replace(commit=UNCOMMITTED) for line in lines])
        movers = {line.number: item for line, item in latest}
        runs: list[list[CodeLine]] = []
        for line in lines:
            before = runs[-1][-1] if runs else line
            writers = {item.file_id for item in (items[before.number], items[line.number]) if item}
            # a line without a writer joins any
            is_same = (before.commit, before.reformatted) == (line.commit, line.reformatted)
            if runs and is_same and len(writers) < 2:
                runs[-1].append(line)
            else:
                runs.append([line])
        return [self._reason(path, run, items, movers) for run in runs]

    def _items(self, lines: Sequence[CodeLine]) -> dict[int, WrittenLine | None]:
        """Return the item that wrote each line, by the line's number."""
        items: dict[int, WrittenLine | None] = {}
        for commit in dict.fromkeys(line.commit for line in lines):
            proven = self._proven([line for line in lines if line.commit == commit])
            items.update([(line.number, item) for line, item in proven])
        return items

    def _before_reformatting(
        self, line: CodeLine, items: dict[int, WrittenLine | None]
    ) -> CodeLine | None:
        """Return a line before a commit that changed only its layout, if no session wrote it for
        that commit; else None."""
        if items[line.number] or line.commit == UNCOMMITTED or not line.written_at:
            return None
        if line.reformatted or bot_reason(self._repository.commit(line.commit)):
            return None
        return self._repository.before_reformatting(line)

    def _reformatting(self, id: str) -> Reformatting | None:
        """Return who changed the layout of lines in a commit; None for no commit."""
        if not id:
            return None
        commit = self._repository.commit(id)
        maker = self._evidence.maker_of(commit)
        origin = self.asked(maker) if maker else None
        guess = None if origin else self._evidence.at_work(commit.authored_at)
        return Reformatting(commit, origin, guess)

    def of_commit(self, id: str) -> list[Reason]:
        """Return the reasons of a commit, one for each session that wrote lines of it.

        The session with the most lines comes first. Raises GitUnavailableError, DatabaseError."""
        commit = self._repository.commit(id)
        if refused := bot_reason(commit):
            return [Reason("", 0, 0, commit, None, refused=refused)]
        reasons = self._by_session(self.of_added(commit), commit) or [self._whole(commit)]
        return [reason._replace(not_compared=self.not_compared(commit)) for reason in reasons]

    def not_compared(self, commit: Commit) -> int:
        """Return how many lines of a huge commit were not compared with the lines of sessions."""
        return self._repository.not_added.get(commit.id, 0)

    def _whole(self, commit: Commit) -> Reason:
        """Return the reason of a commit as a whole, if no session is known for any of its lines."""
        maker = self._evidence.maker_of(commit)
        if maker and (origin := self.asked(maker)):
            return Reason("", 0, 0, commit, origin, is_by_commit=True)
        guess = self._evidence.at_work(commit.authored_at)
        return Reason("", 0, 0, commit, None, guess=guess, guessed_by=BY_TIME)

    def of_staged(self) -> list[Reason]:
        """Return the reasons of the staged lines."""
        return self._by_session(self._proven(self._repository.staged()), None)

    def of_added(self, commit: Commit) -> list[tuple[CodeLine, WrittenLine | None]]:
        """Return the lines that a commit added, each with the item that wrote it.

        The item is None for a bot's commit."""
        lines, _ = self._repository.added(commit.id)
        return self._proven(
            [line for line in lines if len(normalised(line.text)) >= LEAST_CHARACTERS]
        )

    def _proven(self, lines: Sequence[CodeLine]) -> list[tuple[CodeLine, WrittenLine | None]]:
        """Return the result of `attributed`, completed by calls that provably wrote lines."""
        proven = []
        for line, item in self.attributed(lines):
            commit = None if line.commit == UNCOMMITTED else self._repository.commit(line.commit)
            if item is None and not (commit and bot_reason(commit)):
                item = self._evidence.writer_of(line, commit)
            proven.append((line, item))
        return proven

    def attributed(self, lines: Sequence[CodeLine]) -> list[tuple[CodeLine, WrittenLine | None]]:
        """Return these lines of one commit, each with the item that wrote it, or None.

        An item must be about a file of that name, or the line must be long and rare. Items of the
        session that wrote most of the lines come first, and then the latest before the commit."""
        commits = {
            line.commit: self._repository.commit(line.commit)
            for line in lines
            if line.commit != UNCOMMITTED
        }
        candidates: list[list[tuple[bool, WrittenLine]]] = []
        votes: Counter[int] = Counter()
        for line, written in zip(lines, self._writers(lines) if self._key else []):
            commit = commits.get(line.commit)
            fitting = (
                _fitting(line, written, commit) if not commit or not bot_reason(commit) else []
            )
            candidates.append(fitting)
            for is_named, file_id in {(is_named, written.file_id) for is_named, written in fitting}:
                votes[file_id] += 3 if is_named else 1

        def best(fitting: list[tuple[bool, WrittenLine]]) -> WrittenLine:
            return max(
                fitting,
                key=lambda pair: (pair[0], votes[pair[1].file_id], pair[1].at or 0, pair[1].item),
            )[1]

        return list(
            zip(
                lines,
                [best(fitting) if fitting else None for fitting in candidates]
                or [None] * len(lines),
            )
        )

    def _writers(self, lines: Sequence[CodeLine]) -> Iterator[list[WrittenLine]]:
        """Yield the items that wrote each line.

        The call that started a sub-agent names no file. If the sub-agent wrote the line into a file
        of that name, the item gets the name as its argument."""
        texts = [normalised(line.text) for line in lines]
        names = [
            _names(line) if len(text) >= LEAST_CHARACTERS else []
            for line, text in zip(lines, texts)
        ]
        named = [
            [text, *(line_in(name, text) for name in names_of_line)]
            for text, names_of_line in zip(texts, names)
        ]
        hashes = iter(line_hashes([text for variants in named for text in variants], self._key))
        hashed = [[next(hashes) for _ in variants] for variants in named]
        by_hash: dict[int, list[WrittenLine]] = {}
        for written in self._store.line_writers(
            [
                written_hash
                for hashes_of_line, n in zip(hashed, names)
                for written_hash in hashes_of_line
                if n
            ]
        ):
            by_hash.setdefault(written.hash, []).append(written)
        for [first, *others], names_of_line in zip(hashed, names):
            of_agents = [
                written._replace(argument=n)
                for h, n in zip(others, names_of_line)
                for written in by_hash.get(h, ())
            ]
            yield [*by_hash.get(first, ()), *of_agents]

    def ordered(self, commit: Commit, by_words: Sequence[str]) -> list[str]:
        """Return the sessions of a commit, the likeliest first.

        Sessions that wrote its lines come first, by the number of lines. Then come sessions that
        worked in this repository, by their distance in time. Matching words break ties; sessions
        with only these come last."""
        places = {session: at for at, session in enumerate(dict.fromkeys(by_words))}
        near = [conversation.session_id for conversation in self._near(commit.authored_at, places)]
        return list(
            dict.fromkeys(
                [
                    *[session for session, _ in self._writers_of(commit).most_common()],
                    *near,
                    *places,
                ]
            )
        )

    def asked(self, item: WrittenLine) -> Asked | None:
        """Return the request that led to an item, if it may be shown, else None."""
        sql = (
            "SELECT id, first_item FROM memory_conversations WHERE file_id = ? AND first_item <= ? "
            "ORDER BY first_item DESC LIMIT 1"
        )
        for conversation_id, first in self._store.rows(sql, (item.file_id, item.item)):
            conversation = self._store.conversation(conversation_id)
            if conversation is None:
                return None
            items = self._before(first, item.item)
            return _asked(conversation, items, item)
        return None

    def guessed(self, at: int, commit: Commit | None = None) -> tuple[Conversation | None, str]:
        """Return the likeliest conversation for a time, and the basis of the guess.

        It is the conversation of the session that wrote most of the commit. If there is none, it is
        that of the only session at work at the time."""
        written = self._writers_of(commit) if commit else Counter[str]()
        near = [
            conversation for conversation in self._near(at, {}) if written[conversation.session_id]
        ]
        if near:
            return max(
                near, key=lambda conversation: written[conversation.session_id]
            ), "the rest of its commit"
        return self._evidence.at_work(at, is_exact=commit is None), BY_TIME

    def _near(self, at: int, places: Mapping[str, int]) -> list[Conversation]:
        """Return the conversations of the repository within a day, the nearest first.

        At equal distance, the order of their sessions in `places` decides, then the latest
        beginning."""
        conversations = self._store.conversations_near(self._repository.root, at, GUESS_WITHIN)

        def order(conversation: Conversation) -> tuple[int, int, int]:
            first, last = conversation.first_message_at or 0, conversation.last_message_at or 0
            return (
                max(first - at, at - last, 0),
                places.get(conversation.session_id, len(places)),
                -first,
            )

        return sorted(conversations, key=order)

    def _writers_of(self, commit: Commit) -> Counter[str]:
        """Return how many lines of a commit each session wrote."""
        if commit.id not in self._written:
            self._written[commit.id] = Counter(
                item.session_id for _, item in self.of_added(commit) if item
            )
        return self._written[commit.id]

    def _before(self, first: int, item: int) -> list[StoredEntry]:
        items: list[StoredEntry] = []
        end = item
        for _ in range(MOST_STEPS):
            start = max(first, end - ITEMS_BEFORE)
            items = self._store.items(start, end) + items
            if (
                start == first
                or sum(entry.role == "user" and is_request(entry.text) for entry in items) > 1
            ):
                break
            end = start - 1
        return items

    def _reason(
        self,
        path: str,
        run: list[CodeLine],
        items: dict[int, WrittenLine | None],
        movers: dict[int, WrittenLine | None],
    ) -> Reason:
        id = run[0].commit
        commit = None if id == UNCOMMITTED else self._repository.commit(id)
        written = [items[line.number] for line in run if items[line.number]]
        item = written[0] if written else None
        origin = self.asked(item) if item else None
        later = next(
            (mover_of_line for line in run if (mover_of_line := movers[line.number])), None
        )
        mover = self.asked(later) if later and item and later.file_id != item.file_id else None
        refused = bot_reason(commit) if commit else ""
        at = commit.authored_at if commit else self._repository.changed_at(path)
        maker = self._maker_of(run, commit) if commit and not (origin or refused) else None
        if by_commit := self.asked(maker) if maker else None:
            origin = by_commit
        guess, by = (None, "") if origin or refused else self.guessed(at, commit)
        lines = run[0].number, run[-1].number
        reason = Reason(
            path, *lines, commit, origin, len(written), mover, guess, refused, guessed_by=by
        )
        later_change = self._reformatting(run[0].reformatted)
        return reason._replace(is_by_commit=by_commit is not None, reformatted=later_change)

    def _maker_of(self, run: list[CodeLine], commit: Commit) -> WrittenLine | None:
        """Return the call that made a commit of its own work.

        Return None if any session is known to have edited the file for the commit."""
        return (
            None
            if self._evidence.is_disputed(run[0], commit)
            else self._evidence.first_maker_of(commit)
        )

    def _by_session(
        self, attributed: Sequence[tuple[CodeLine, WrittenLine | None]], commit: Commit | None
    ) -> list[Reason]:
        by_file: dict[int, list[tuple[CodeLine, WrittenLine]]] = {}
        for line, item in attributed:
            if item:
                by_file.setdefault(item.file_id, []).append((line, item))
        reasons = []
        for pairs in sorted(by_file.values(), key=len, reverse=True):
            most, _ = Counter(item.item for _, item in pairs).most_common(1)[0]
            origin = self.asked(next(item for _, item in pairs if item.item == most))
            if origin:
                ranges = _ranges([line for line, _ in pairs])
                reasons.append(Reason(*ranges[0], commit, origin, len(pairs), ranges=ranges))
        return reasons


def _ranges(lines: Sequence[CodeLine]) -> tuple[tuple[str, int, int], ...]:
    ranges: list[tuple[str, int, int]] = []
    for line in sorted(lines, key=lambda line: (line.path, line.number)):
        if ranges and ranges[-1][0] == line.path and ranges[-1][2] + 1 == line.number:
            ranges[-1] = (line.path, ranges[-1][1], line.number)
        else:
            ranges.append((line.path, line.number, line.number))
    return tuple(ranges)


def _names(line: CodeLine) -> list[str]:
    return sorted({path.rpartition("/")[2] for path in (line.path, line.written_in)} - {""})


def _fitting(
    line: CodeLine, candidates: list[WrittenLine], commit: Commit | None
) -> list[tuple[bool, WrittenLine]]:
    """Return the items that can have written a line, and whether each names the line's file."""
    early = [
        (written, _age(written, commit)) for written in candidates if _is_before(written, commit)
    ]
    names = _names(line)
    named = [
        written
        for written, age in early
        if age <= MOST_AGE and any(name in written.argument for name in names)
    ]
    if named:
        return [(True, written) for written in named]
    elsewhere = [written for written, age in early if -SLACK <= age <= MOST_AGE_ELSEWHERE]
    is_rare = len({written.file_id for written in elsewhere}) <= DISTINCT_SESSIONS
    if not is_rare or len(normalised(line.text)) < DISTINCT_CHARACTERS:
        return []
    return [(False, written) for written in elsewhere]


def _is_before(written: WrittenLine, commit: Commit | None) -> bool:
    return commit is None or written.at is None or written.at <= commit.at + SLACK


def _age(written: WrittenLine, commit: Commit | None) -> int:
    """Return how long before its commit a line was written; 0 if unknown."""
    return commit.authored_at - written.at if commit and written.at is not None else 0


def _asked(conversation: Conversation, items: list[StoredEntry], item: WrittenLine) -> Asked:
    """Return the last request before an item, and the proposal if it is a bare go-ahead."""
    said = [
        entry
        for entry in items
        if entry.role in ("user", "assistant") and entry.text and entry.id <= item.item
    ]
    at = next((place for place in range(len(said) - 1, -1, -1) if said[place].role == "user"), None)
    if at is None:
        request, proposal, between = None, None, said
    else:
        request, between = said[at], said[at + 1 :]
        earlier = [entry for entry in said[:at] if entry.role == "assistant"]
        proposal = earlier[-1] if earlier and is_go_ahead(request.text) else None
    words = shorten(one_line(request.text), WORDS_CHARACTERS) if request else ""
    offered = shorten(one_line(proposal_in(proposal.text)), PROPOSAL_CHARACTERS) if proposal else ""
    return Asked(
        conversation.session_id,
        conversation.runtime,
        conversation.title,
        conversation.id,
        (item.item & 0xFFFFFFFF) + 1,
        request.timestamp if request else item.at,
        words,
        offered,
        decisions(
            [entry.text for entry in ([request] if request else []) + between], has_reasons=True
        ),
        request.id if request else 0,
        proposal.id if proposal else 0,
        "" if item.hash else item.argument,
    )
