"""Costs of sessions, from the usage in their transcripts, read on demand.

Each answer counts once, however many records and forks repeat it. A sub-agent's answer counts for
its session. Only sessions that the store shows to the caller count, so rules apply here too.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple

from ..common.system.files import Closing, open_regular, stamp_of
from ..common.system.quick_json import decode_line
from ..common.text.format import counted
from ..common.text.sanitize import for_prompt, for_storage
from ..common.text.timestamps import local_time
from ..sessions.confined_files import OutsideGroupError, open_inside
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.detection import runtime_of
from ..sessions.runtimes.records import USAGE, Branch
from ..sessions.runtimes.table import all_runtimes
from ..sessions.transcripts.lines import first_line, lines_forward
from ..sessions.transcripts.usage import ModelUsage
from .prices import Prices, cost
from .store.ingest.sources import SourceDirectory, SourceFile
from .store.location import StoreLocation
from .store.sqlite.counted_files import (
    CountedAnswer,
    CountedFile,
    CountedFiles,
    CountedTranscript,
)
from .store.sqlite.engine import SqliteStore
from .store.sqlite.queue import StoredQueue
from .store.sqlite.queue_database import day_of
from .store.values import Conversation, Filter, Usage, key_of

EVERY = 10**9  # conversations

# The price of writing tokens to a cache, as a multiple of the price of uncached input.
WRITTEN, WRITTEN_FOR_AN_HOUR = 1.25, 2.0
# dollars for a web search by Anthropic's tool, which costs 10 dollars a thousand
SEARCH_DOLLARS = 0.01


BY_MAIN_AGENT, BY_SUB_AGENTS, BY_WORKFLOWS, BY_ADVISOR, SEARCHES = USES = (
    "main agent",
    "sub-agents",
    "agents of workflows",
    "advisor",
    "web searches",
)


class Expense(NamedTuple):
    """One answer's usage, session and cost, and its use, which is one of USES.

    The dollars are None if unknown. The web searches of an answer are an expense of their own,
    unless the transcript has the dollars of both."""

    session: Conversation
    usage: CountedAnswer
    dollars: float | None
    use: str = BY_MAIN_AGENT

    @property
    def is_for_searches(self) -> bool:
        """Check if it is only for the web searches of an answer."""
        return self.use == SEARCHES


class SessionFiles:
    """The transcripts of the conversations that fit a filter at any time, and the origins of forks.

    The oldest name comes first, so a fork follows its origin. Transcripts of sub-agents in shared
    folders are included. `missing` counts the sessions without a transcript."""

    def __init__(
        self, watched: Sequence[SourceDirectory], store: SqliteStore, filter: Filter
    ) -> None:
        self._filter = filter
        at_any_time = filter._replace(since=None, until=None, limit=EVERY)
        self.conversations = conversations = store.conversations(at_any_time)
        self._shown = {
            (conversation.home, conversation.source_file) for conversation in conversations
        }
        if conversations and (filter.session or filter.project or filter.directories):
            runtimes = {conversation.runtime for conversation in conversations}
            every = store.conversations(
                at_any_time._replace(session="", project="", directories=())
            )
            conversations = [
                conversation for conversation in every if conversation.runtime in runtimes
            ]
        wanted = {
            (conversation.home, conversation.source_file): conversation
            for conversation in conversations
        }
        files_by_session: dict[tuple[str, str], SourceFile] = {}
        others: list[SourceFile] = []
        without_folders = {each.name for each in all_runtimes() if not each.HAS_PROJECT_FOLDERS}
        sessions = {
            (conversation.home, conversation.session_id): conversation
            for conversation in conversations
            if conversation.runtime in without_folders
        }
        for directory in watched:
            if directory.is_expected():
                for file in directory.files([]):
                    key = directory.home, file.key
                    if key in wanted:
                        files_by_session.setdefault(key, file)
                    else:
                        others.append(file)
        self.missing = len(self._shown - files_by_session.keys())
        both = [(file, wanted[key]) for key, file in files_by_session.items()]
        both += _sub_agents_of(sessions, others) if sessions else []
        self.files = sorted(both, key=lambda pair: os.path.basename(pair[0].key))

    @property
    def recent(self) -> list[tuple[SourceFile, Conversation]]:
        """Return the files that may have answers of the queried time, with their conversations."""
        since = self._filter.since
        return [pair for pair in self.files if since is None or pair[0].modified >= since]

    @property
    def shown(self) -> list[SourceFile]:
        """Return the recent files of only the queried sessions."""
        return [file for file, _ in self.recent if (file.directory.home, file.key) in self._shown]

    def shows(self, expense: Expense) -> bool:
        """Return whether an answer is of the queried sessions and time."""
        if (expense.session.home, expense.session.source_file) not in self._shown:
            return False
        at, since, until = expense.usage.timestamp, self._filter.since, self._filter.until
        if since is None and until is None:
            return True
        return at is not None and (since or 0) <= at and (until is None or at <= until)


def expenses(
    files: Sequence[tuple[SourceFile, Conversation]],
    prices: Prices,
    advance: Callable[[str, int], None],
    counted: CountedFiles,
) -> Iterator[Expense]:
    """Yield the expense of each answer in readable `files`.

    Files that were `counted` are not read again. Calls `advance` with each file and its size."""
    known: set[tuple[str, int]] = set()
    copies: list[tuple[tuple[str, int], Expense]] = []
    with counted:
        for file, session in files:
            for runtime, answer, use in _answers_of(file, session, counted):
                expense = Expense(session, answer, _price_of(answer, prices), use)
                key = runtime.name, answer.answer
                if answer.is_copy:
                    copies.append((key, expense))
                elif not answer.answer or key not in known:
                    known.add(key)
                    yield from _with_searches_apart(expense)
            advance(file.path, file.size)
    for key, expense in copies:  # of files that no longer exist
        if key not in known:
            known.add(key)
            yield from _with_searches_apart(expense)


def _with_searches_apart(expense: Expense) -> Iterator[Expense]:
    """Yield an expense, and another one for its web searches if they have a price of their own."""
    usage = expense.usage
    if not usage.searches or usage.dollars is not None:
        yield expense
        return
    if usage.tokens:
        yield expense._replace(usage=usage._replace(searches=0))
    searches = usage._replace(input=0, output=0, cached=0, written=0, written_for_an_hour=0)
    yield expense._replace(usage=searches, dollars=SEARCH_DOLLARS * usage.searches, use=SEARCHES)


def _price_of(usage: CountedAnswer, prices: Prices) -> float | None:
    """Return an answer's cost in dollars, as reported or by the model's price, or None.

    A price of its web searches is not in it."""
    if usage.dollars is not None:
        return usage.dollars
    plain = cost(Usage(usage.input, usage.output, usage.cached, usage.model), prices)
    written, for_an_hour = [
        cost(Usage(tokens, 0, 0, usage.model), prices) if tokens else 0.0
        for tokens in (usage.written, usage.written_for_an_hour)
    ]
    if plain is None or written is None or for_an_hour is None:
        return None
    return plain + WRITTEN * written + WRITTEN_FOR_AN_HOUR * for_an_hour


def _sub_agents_of(
    sessions: dict[tuple[str, str], Conversation], others: Iterable[SourceFile]
) -> Iterator[tuple[SourceFile, Conversation]]:
    """Yield the files of `others` that belong to (nested) sub-agents of `sessions`.

    `sessions` are given by home and id."""
    parents: dict[tuple[str, str], tuple[SourceFile, str]] = {}
    for _, files in groupby(others, lambda file: file.directory):
        for file in files:
            runtime, parent = _sub_agent_in(file)
            # they are beside their session's, so already found
            if runtime and runtime.HAS_PROJECT_FOLDERS:
                break
            if runtime and parent:
                parents[file.directory.home, runtime.session_id_of(file.plain_path)] = file, parent
    for (home, session_id), (file, parent) in parents.items():
        seen = {session_id}
        while (home, parent) in parents and parent not in seen:
            seen.add(parent)
            parent = parents[home, parent][1]
        if (home, parent) in sessions:
            yield file, sessions[home, parent]


def _sub_agent_in(file: SourceFile) -> tuple[Runtime | None, str]:
    """Return the runtime of a transcript; for a sub-agent's, also the id of its session."""
    try:
        with Closing(file.open()) as descriptor:
            runtime = runtime_of(descriptor)
            branch = runtime.records.open_transcript(first_line(descriptor)) if runtime else None
            return runtime, branch.of_session if branch else ""
    except (OSError, OutsideGroupError):
        return None, ""


def _answers_of(
    file: SourceFile, session: Conversation, counted: CountedFiles
) -> Iterator[tuple[Runtime, CountedAnswer, str]]:
    """Yield the answers in a transcript and its sub-agents' transcripts, each with its runtime and
    use. The transcript is the session's, or a sub-agent's in a shared folder."""
    transcript = CountedTranscript(file.path, file.stamp, file.named_path)
    known = _counted(transcript, file.open, counted)
    if known is None:
        return
    runtime, confined_to = known.runtime, file.directory.confined_to
    opened = partial(open_inside, confined_to) if confined_to else open_regular
    agents = [path for path in runtime.sub_agents(file.path) if path != file.path]
    of_agents = [
        _of_agent(path, file.named_path, partial(opened, path), runtime, counted) for path in agents
    ]
    own_use = BY_MAIN_AGENT if file.key == session.source_file else BY_SUB_AGENTS
    uses = [BY_WORKFLOWS if runtime.is_of_workflow(path) else BY_SUB_AGENTS for path in agents]
    for each, use in zip((known, *of_agents), (own_use, *uses)):
        for answer in (each.answers if each else None) or ():
            yield runtime, answer, BY_ADVISOR if answer.is_advisor else use


def _of_agent(
    path: str, session: str, opened: Callable[[], int], runtime: Runtime, counted: CountedFiles
) -> CountedFile | None:
    """Return the counts of a sub-agent's transcript, which has the runtime of its session.

    `session` is the path by which the store knows the session's transcript."""
    try:
        stamp = stamp_of(os.lstat(path))
    except OSError:
        return None
    return _counted(CountedTranscript(path, stamp, session), opened, counted, runtime)


def _counted(
    transcript: CountedTranscript,
    opened: Callable[[], int],
    counted: CountedFiles,
    runtime: Runtime | None = None,
) -> CountedFile | None:
    """Return the counts of a transcript with its answers; None if no runtime wrote it.

    It is read if it was not counted in this state. Its `runtime` may be known."""
    known = counted.find(transcript, with_answers=True)
    if known is not None and known.answers is not None:
        return known
    answers: list[CountedAnswer] = []
    try:
        with Closing(opened()) as descriptor:
            runtime = runtime or runtime_of(descriptor)
            if runtime is None:
                return None
            for _, usage, at in answers_in(runtime, descriptor):
                answers.append(_numbered(usage, at))
    except (OSError, OutsideGroupError):  # the answers until then, and its sub-agents', still count
        return CountedFile(runtime, answers=answers) if runtime else None
    new = CountedFile(runtime, answers=answers)
    counted.keep(transcript, new)
    return new


def _numbered(usage: ModelUsage, at: int | None) -> CountedAnswer:
    return CountedAnswer(
        key_of(usage.id) if usage.id else 0,
        at,
        _model_name(usage.model),
        usage.input,
        usage.output,
        usage.cached,
        usage.written,
        usage.written_for_an_hour,
        usage.dollars,
        usage.searches,
        usage.is_copy,
        usage.is_advisor,
    )


@cache
def _model_name(name: str) -> str:
    """Return a model's name for the store, where it is kept."""
    return for_storage(name)


def answers_in(runtime: Runtime, descriptor: int) -> Iterator[tuple[int, ModelUsage, int | None]]:
    """Yield the answers in one file, each with the offset of its first record and its time.

    If an answer has several records, the one with the most tokens counts, because others may have
    been written during streaming."""
    records = runtime.records
    counts = _Counts(records.open_transcript(first_line(descriptor)))
    for offset, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
        if not records.prefilter(line, USAGE):
            continue
        for number, record in enumerate(decode_line(line)[0]):
            events = records.events(record, offset, USAGE) if isinstance(record, dict) else []
            usages = [event for event in events if isinstance(event, ModelUsage)]
            at = records.time(record) if usages else None
            for place, usage in enumerate(usages):
                counts.add(usage, offset, (offset, number, place), at)
    yield from counts.answers.values()


class _Counts:
    """The answers in one file. `branch` decides which records count."""

    def __init__(self, branch: Branch | None) -> None:
        self.answers: dict[object, tuple[int, ModelUsage, int | None]] = {}
        self._branch = branch
        self._model = ""
        self._turn = ""
        self._total: int | None = None
        self._sums = (0, 0, 0)

    def add(self, usage: ModelUsage, offset: int, place: object, at: float | None) -> None:
        """Add the usage in a record at `offset`, unless it is repeated.

        It is repeated from the previous record, or as a copy without an id."""
        self._model = usage.model or self._model
        if usage.is_sum:
            usage = self._difference(usage)
        if not usage.tokens and not usage.searches:
            self._turn = usage.id if usage.running_total is None else self._turn
            return
        if usage.running_total is not None and usage.running_total == self._total:
            return
        self._total = usage.running_total
        identified = self._identified(usage, at)
        if identified is not None:
            self._keep(identified, offset, place, at)

    def _identified(self, usage: ModelUsage, at: float | None) -> ModelUsage | None:
        """Return the usage with an id that its copies share; None for a copy without one."""
        if usage.running_total is not None and self._turn:
            usage = usage._replace(id=f"{self._turn} {usage.running_total}")
        if self._branch is None or at is None or not self._branch.is_copied(at):
            return usage
        return usage._replace(is_copy=True) if self._branch.copies_keep_ids else None

    def _keep(self, usage: ModelUsage, offset: int, place: object, at: float | None) -> None:
        """Keep an answer's record with the most tokens, at the first record's offset and time."""
        key = usage.id or place
        first = self.answers.get(key)
        named = usage._replace(model=usage.model or self._model)
        if first is None:
            self.answers[key] = offset, named, None if at is None else round(at * 1000)
        elif usage.tokens > first[1].tokens:
            self.answers[key] = first[0], named, first[2]

    def _difference(self, usage: ModelUsage) -> ModelUsage:
        """Return the tokens since the previous record, for records with running totals.

        A total smaller than the previous one starts again from 0."""
        sums = (usage.input, usage.output, usage.cached)
        before = (
            self._sums if all(now >= then for now, then in zip(sums, self._sums)) else (0, 0, 0)
        )
        self._sums = sums
        new_input, output, cached = (now - then for now, then in zip(sums, before))
        return usage._replace(input=new_input, output=output, cached=cached)


BY = ("day", "project", "session", "model", "runtime", "use")


@dataclass
class CostSum:
    """The sum of several answers.

    `unpriced` are the models without a price; `dollars` is None if no model has one."""

    name: str = ""
    title: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    searches: int = 0
    dollars: float | None = None
    unpriced: set[str] = field(default_factory=set)

    @property
    def is_by_main_agent(self) -> bool:
        """Check if it is the sum of the answers of main agents."""
        return self.name == BY_MAIN_AGENT

    @property
    def label(self) -> str:
        """The name; of web searches, with their number."""
        is_searches = self.name == SEARCHES
        return counted(self.searches, "web search", SEARCHES) if is_searches else self.name

    @property
    def cache_hits(self) -> float | None:
        """Return the share of input tokens that came from a cache; None without input tokens."""
        read = self.input + self.cached + self.written
        return self.cached / read if read else None

    def add(self, expense: Expense) -> None:
        """Add an answer."""
        usage = expense.usage
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.written += usage.written + usage.written_for_an_hour
        self.searches += usage.searches
        if expense.dollars is None:
            self.unpriced.add(usage.model)
        else:
            self.dollars = (self.dollars or 0.0) + expense.dollars


def sums_of(paid: Iterable[Expense], *by: str) -> tuple[CostSum, list[list[CostSum]]]:
    """Return the total, and the sums by each requested key of BY.

    Days (local time) begin with the latest, other keys with the most expensive. The expenses are
    not kept in memory."""
    total = CostSum()
    sums: list[dict[str, CostSum]] = [{} for _ in by]
    for expense in paid:
        total.add(expense)
        for kind, known in zip(by, sums):
            name = name_of(expense, kind)
            if name not in known:
                known[name] = CostSum(name, expense.session.title if kind == "session" else "")
            known[name].add(expense)
    return total, [_in_order(known.values(), kind) for kind, known in zip(by, sums)]


def name_of(expense: Expense, kind: str) -> str:
    """Return the value of an answer for a key of BY, or ''.

    The keys are day, project, session, model, runtime and use."""
    if kind == "day":
        return local_time(at / 1000)[:10] if (at := expense.usage.timestamp) is not None else ""
    if kind == "model":
        return expense.usage.model
    if kind == "use":
        return expense.use
    if kind == "runtime":
        return expense.session.runtime
    return expense.session.cwd if kind == "project" else expense.session.session_id


def _in_order(sums: Iterable[CostSum], kind: str) -> list[CostSum]:
    if kind == "day":
        return sorted(sums, key=lambda day_sum: day_sum.name, reverse=True)
    return sorted(
        sums, key=lambda total: (-(total.dollars or 0.0), -total.input - total.output, total.name)
    )


def of_memories(location: StoreLocation, wanted: Filter, prices: Prices) -> list[CostSum]:
    """Return our strategies' expenses in the queried days (UTC), by model."""
    since = day_of(wanted.since) if wanted.since is not None else ""
    until = day_of(wanted.until) if wanted.until is not None else "9"
    with closing(StoredQueue(location.database)) as queue:
        spent = queue.accounts.by_model(since, until)
    sums = []
    for usage in spent:
        dollars = cost(usage, prices)
        tokens = usage.input_tokens, usage.output_tokens, usage.cached_tokens, 0
        unpriced = {usage.model} if dollars is None else set()
        sums.append(
            CostSum(for_prompt(usage.model), "", *tokens, dollars=dollars, unpriced=unpriced)
        )
    return sums
