"""Proof of use: updates that sessions received, their effect, and moments without an update.

All of it is counted from the store and the transcripts of the sessions that the store shows, so
rules apply. A session counts as told if its transcript shows the text; without a transcript, its
moments are not compared.
"""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...common.system.files import user_dir
from ...common.system.git import find_worktree
from ...common.text.timestamps import local_time
from ...common.text.tokens import CHARACTERS_PER_TOKEN
from ...history.costs import EVERY, Expense, SessionFiles, expenses
from ...history.store.sqlite.counted_files import CountedFiles
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.tool_uses import conversation_steps
from ...history.store.values import Conversation, Filter, StoredEntry
from ...history.told import ToldText, TranscriptNotes, notes_of
from ...history.told_lines import CONFLICT, FILE, ToldLine
from ._comparison import Difference, Tally, difference, tally_of
from ._moments import (
    EDIT,
    LONGEST,
    PROMPT,
    READ,
    Edits,
    Moment,
    Session,
    Step,
    WorkedOnFiles,
    is_named,
    is_used,
    moments_of,
    steps_of,
)

TOLD, BEFORE, SILENT = "told", "before", "silent"
ARMS = {
    TOLD: "told",
    BEFORE: "before the first update",
    SILENT: "in sessions that got no update",
}
_LEFT_OUT = "left out"
_AT_ONCE = 60_000  # records may precede the first update's own prompt by so many milliseconds
Cases = dict[str, list[tuple[Hashable, bool]]]  # by arm: the cluster, and if it looked first


@dataclass
class ToldSum:
    """Counts of updates and other texts.

    There are the updates, the texts with `memories`, the updates that `arrived`, the characters of
    all, and the `!` lines by kind. The lines about files are counted by whether an edit is `known`,
    and whether `both` sessions edited the file. The lines about conflicts are counted by whether a
    merge `conflicted` in the file later. `paths` came with calls that found no file; some of them
    arrived, and some of these were used in the same turn. `untold` are such calls without a line,
    with the same counts. `runtimes` are the ones whose transcripts show it."""

    updates: int = 0
    memories: int = 0
    arrived: int = 0
    characters: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    known: int = 0
    both: int = 0
    conflicted: int = 0
    paths: int = 0
    paths_arrived: int = 0
    paths_used: int = 0
    untold: int = 0
    untold_used: int = 0
    runtimes: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> int:
        return self.characters // CHARACTERS_PER_TOKEN


@dataclass
class Sums:
    """Counts of tokens.

    They are all tokens that the sessions with updates read and wrote, the updates' own tokens, and
    the updates' tokens again for each later answer, which reads them again (less after a
    compaction). `read` counts files that several sessions read, `identical` the part that another
    session had already got verbatim."""

    tokens: int = 0
    told: int = 0
    told_again: int = 0
    read: int = 0
    identical: int = 0


@dataclass
class Proof:
    """The result.

    `installed_at` is the time of the first update, in milliseconds since the epoch. `arms` are the
    moments by kind, without those after which the session did nothing more with the file;
    `left_alone` counts these. `left_out` counts moments that were not told for another reason,
    `missing` the sessions without a transcript, `hooks_a_day` the prompts and edits since the first
    update per day with any. `withheld` has the latest first."""

    sessions: int = 0
    missing: int = 0
    installed_at: int | None = None
    told: ToldSum = field(default_factory=ToldSum)
    arms: dict[str, Tally] = field(default_factory=dict)
    left_alone: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    hooks_a_day: float = 0.0
    sums: Sums = field(default_factory=Sums)

    def difference(self, arm: str) -> Difference | None:
        """Return how much more often a told session looked first than another arm's, or None.

        It is None with too few cases."""
        if arm == TOLD:
            return None
        return difference(self.arms[TOLD], self.arms[arm])


def prove(
    store: SqliteStore,
    wanted: Filter,
    files: SessionFiles,
    advance: Callable[[str, int], None],
) -> Proof:
    """Return the proof of the sessions that fit, which have these files. Raises DatabaseError.

    Calls `advance` with each transcript and its size."""
    talks: dict[Session, Conversation] = {}
    items: dict[Session, list[StoredEntry]] = {}
    for talk, steps in conversation_steps(store, wanted._replace(limit=EVERY)):
        key = talk.home, talk.source_file
        talks.setdefault(key, talk)
        items.setdefault(key, []).extend(steps)
    every = {key: steps_of(sorted(entries), talks[key].cwd) for key, entries in items.items()}
    counted = CountedFiles(store)
    with counted:
        notes = dict(_notes(files, _shared_reads(every), counted, advance))
    proof = Proof(len(talks), len(talks) - len(notes))
    edits = Edits(every.items())
    proof.installed_at = min(
        (text.at for note in notes.values() for text in note.told if text.at), default=None
    )
    _add_told(proof.told, notes, talks, edits, is_excluding=store.is_excluding())
    _add_paths(proof.told, notes, every)
    cases = _cases(proof, every, notes, edits)
    proof.arms = {arm: tally_of(tally_cases) for arm, tally_cases in cases.items()}
    proof.hooks_a_day = _hooks_a_day(every.values(), proof.installed_at)
    with_updates = [
        pair
        for pair in files.files
        if (note := notes.get((pair[0].directory.home, pair[0].key))) and note.told
    ]
    proof.sums = _sums(expenses(with_updates, {}, lambda *_: None, counted), files, notes)
    return proof


def _shared_reads(every: Mapping[Session, list[Step]]) -> dict[Session, set[int]]:
    """Return the offsets of each session's reads of files that another session read too.

    Only these can be repeated reads, and a transcript without any is not decoded for its reads."""
    readers: dict[str, set[Session]] = {}
    for key, steps in every.items():
        for step in steps:
            if step.kind == READ:
                readers.setdefault(step.path, set()).add(key)
    shared = {path for path, sessions in readers.items() if len(sessions) > 1}
    return {
        key: {step.offset for step in steps if step.kind == READ and step.path in shared}
        for key, steps in every.items()
    }


def _notes(
    files: SessionFiles,
    reads: Mapping[Session, set[int]],
    counted: CountedFiles,
    advance: Callable[[str, int], None],
) -> Iterator[tuple[Session, TranscriptNotes]]:
    """Yield the notes on each transcript, what a fork copied only once."""
    known: set[tuple[int, int | None]] = set()
    for file, _ in files.files:
        key = file.directory.home, file.key
        transcript_notes = notes_of(file, counted, reads[key]) if key in reads else None
        advance(file.path, file.size)
        if transcript_notes is not None:
            yield key, transcript_notes.without_copies(known)


def _add_told(
    sums: ToldSum,
    notes: Mapping[Session, TranscriptNotes],
    talks: Mapping[Session, Conversation],
    edits: Edits,
    *,
    is_excluding: bool,
) -> None:
    """Count the texts that a session received.

    If rules hide anything, only lines about the edits of visible sessions count."""
    merges = [
        (at, name, _project(talks[key].cwd))
        for key, note in notes.items()
        for at, name in note.merges
    ]
    for key, note in notes.items():
        for text in note.told:
            sums.characters += text.characters
            sums.runtimes.add(note.runtime.TITLE)
            if text.is_of_memories or text.paths:
                sums.memories += text.is_of_memories
                continue
            sums.updates += 1
            sums.arrived += text.has_arrived
            for line in text.lines if text.has_arrived else ():
                paths = [path for name in line.files for path in _edited(edits, key, name, text)]
                is_known = line.kind == FILE and bool(paths)
                if is_known or not is_excluding:
                    sums.lines[line.kind] += 1
                if is_known:
                    sums.known += 1
                    sums.both += any(edits.are_by(path, key) for path in paths)
                elif line.kind == CONFLICT and not is_excluding:
                    place = _project(talks[key].cwd)
                    sums.conflicted += _has_come_true(line, text, place, merges)


def _has_come_true(
    line: ToldLine, text: ToldText, project: str, merges: Sequence[tuple[int, str, str]]
) -> bool:
    """Check if a later merge in the project conflicted in a file of a line about a conflict.

    Each of `merges` has its time, its file and its project."""
    return any(
        at > (text.at or 0)
        and place == project
        and any(is_named(f"/{name}", each) for each in line.files)
        for at, name, place in merges
    )


def _add_paths(
    sums: ToldSum, notes: Mapping[Session, TranscriptNotes], every: Mapping[Session, list[Step]]
) -> None:
    """Count the reports with failed calls, and similar failed calls without a report.

    Only runtimes whose transcripts show such a line count; others have it in the result of the
    call."""
    known = WorkedOnFiles(every.values())
    showing = {
        note.runtime.name for note in notes.values() if any(text.paths for text in note.told)
    }
    for key, note in notes.items():
        given = [(text, text.paths) for text in note.told if text.paths]
        for text, (_, meant) in given:
            sums.paths += 1
            sums.paths_arrived += text.has_arrived
            sums.paths_used += text.has_arrived and is_used(every[key], text.at or 0, meant)
        for step in every[key] if note.runtime.name in showing else ():
            path = known.meant_by(step)
            if path and not any(is_named(step.path, missing) for _, (missing, _) in given):
                sums.untold += 1
                sums.untold_used += is_used(every[key], step.at, path)


def _edited(edits: Edits, session: Session, name: str, text: ToldText) -> list[str]:
    """Return the paths of that name that another session had edited before the line arrived."""
    at = text.at or 0
    return [
        path
        for path in edits.named(session, name)
        if edits.by_another(path, session, at - LONGEST, at)
    ]


@lru_cache(maxsize=500)
def _project(directory: str) -> str:
    """Return what tells the repository of a directory from others."""
    worktree = find_worktree(directory, user_dir(os.environ)) if directory else None
    return worktree.common_dir if worktree else directory


def _cases(
    proof: Proof,
    every: Mapping[Session, list[Step]],
    notes: Mapping[Session, TranscriptNotes],
    edits: Edits,
) -> Cases:
    """Return the moments of each arm, and count in `proof` the moments in none."""
    cases: Cases = {arm: [] for arm in ARMS}
    for key, steps in every.items():
        note = notes.get(key)
        for moment in moments_of(key, steps, edits):
            is_shown = note is not None and note.runtime.SHOWS_WHAT_WAS_TOLD
            arm = _arm_of(moment, note.told, proof.installed_at) if note and is_shown else _LEFT_OUT
            if arm == _LEFT_OUT:
                proof.left_out += 1
            elif moment.has_looked is None:
                proof.left_alone[arm] += 1
            else:
                cases[arm].append((moment.session, moment.has_looked))
    return cases


def _arm_of(moment: Moment, texts: list[ToldText], installed_at: int | None) -> str:
    if any(moment.is_told_by(text) for text in texts):
        return TOLD
    if installed_at is None or moment.at < installed_at - _AT_ONCE:
        return BEFORE
    return _LEFT_OUT if texts else SILENT


def _hooks_a_day(every: Iterable[list[Step]], since: int | None) -> float:
    days = Counter(
        local_time(step.at / 1000)[:10]
        for steps in every
        for step in steps
        if step.kind in (PROMPT, EDIT) and since is not None and step.at >= since
    )
    return sum(days.values()) / len(days) if days else 0.0


def _sums(
    expenses_spent: Iterator[Expense], files: SessionFiles, notes: Mapping[Session, TranscriptNotes]
) -> Sums:
    sums = Sums()
    texts_by_session = {
        key: [(text.at or 0, text.characters) for text in note.told] for key, note in notes.items()
    }
    sums.told = (
        sum(size for texts in texts_by_session.values() for _, size in texts)
        // CHARACTERS_PER_TOKEN
    )
    again = 0
    for expense in filter(files.shows, expenses_spent):
        if expense.is_for_searches:  # its answer is counted already
            continue
        sums.tokens += expense.usage.tokens
        before = texts_by_session.get((expense.session.home, expense.session.source_file), ())
        answered = expense.usage.timestamp
        again += sum(size for at, size in before if answered is not None and at <= answered)
    sums.told_again = again // CHARACTERS_PER_TOKEN
    first: dict[int, Session] = {}
    reads = [(key, read) for key, note in notes.items() for read in note.reads]
    for key, read in sorted(reads, key=lambda pair: pair[1].at):
        sums.read += read.characters
        if first.setdefault(read.identity, key) != key:
            sums.identical += read.characters
    sums.read, sums.identical = (
        sums.read // CHARACTERS_PER_TOKEN,
        sums.identical // CHARACTERS_PER_TOKEN,
    )
    return sums
