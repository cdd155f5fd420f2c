"""The strategy that asks Claude: one episode per conversation, and memories, each with a quotation as proof."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ....settings.check import strategy_settings
from ....settings.sections import SummarySettings, memory_settings
from ....store.values import ENTRY_ROLES, Conversation, StoredEntry
from ....text.format import shorten
from ....text.sanitize import for_people
from ...budget import estimated_tokens
from ...filtering import Chunk, chunks
from ...strategy import (
    KnownMemory,
    Memory,
    MemoryResult,
    ModelBudget,
    StrategyContext,
    StrategyError,
    TextStrategy,
    Usage,
)
from . import instructions
from .model import OVERHEAD_TOKENS, Claude, FailedCallError, ModelAnswer
from .reply import BadReplyError, StatedMemory, SummaryReply, checked, checked_whole, comparable

Checked = TypeVar("Checked")

GUARD = {"SESSION_MEMORY_GUARD": "1"}  # settings.homes.ENV_GUARD
MOST_KNOWN = 20
KNOWN_TOKENS = 3000
WHOLE_TOKENS_A_PART = 3000
MOST_PROBLEMS = 10
TITLE_CHARACTERS = 160


class SummaryStrategy(TextStrategy):
    """The `Strategy` that asks Claude. Its settings are `memories: summary`."""

    id = "summary"

    def __init__(self, values: Mapping[str, Any], budget: ModelBudget) -> None:
        """Check the settings. Raises ConfigError."""
        self._settings = memory_settings(values)
        own = strategy_settings(SummarySettings, values.get(self.id, {}))
        self._input_tokens = own.max_input_tokens
        self._claude = Claude(
            own.model, output_tokens=own.max_output_tokens, timeout_seconds=own.timeout_seconds, guard=GUARD
        )
        self._budget = budget
        self._known: Callable[[Conversation, str, int], list[KnownMemory]] = lambda conversation, text, limit: []

    def attach(self, context: StrategyContext) -> None:
        """Set the function for known memories, and the runtime's working directory."""
        self._known = context.known
        self._claude.directory = f"{context.directory}/{self.id}"

    def estimate(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> Usage:
        """Return the cost of one call per part, one for the whole if there are several, and one repetition of the most
        expensive."""
        calls = [cost_of(self._claude, estimated_tokens(part) + KNOWN_TOKENS) for part in self._parts(entries)]
        if len(calls) > 1:
            calls.append(cost_of(self._claude, WHOLE_TOKENS_A_PART * len(calls)))
        dearest = max(calls, key=lambda usage: usage.tokens, default=Usage())
        return Usage(
            sum(call.input_tokens for call in calls) + dearest.input_tokens,
            sum(call.output_tokens for call in calls) + dearest.output_tokens,
            model=self._claude.model,
        )

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return an episode and memories of the entries; long ones are read in parts. Raises StrategyError."""
        parts = self._parts(entries)
        if not parts:
            return MemoryResult(skipped="nothing of it is left to be read")
        dialogue = _Dialogue(self._claude, self._budget)
        replies = [
            self._read(
                dialogue, conversation, entries, part, f"part {number} of {len(parts)}" if len(parts) > 1 else ""
            )
            for number, part in enumerate(parts, 1)
        ]
        title, summary = replies[0].title, replies[0].summary
        stated = [one for reply in replies for one in reply.memories]
        if len(parts) > 1:
            title, summary, stated = _as_whole(dialogue, replies, stated)
        project = conversation.cwd.rstrip("/").rpartition("/")[2]
        episode = Memory("episode", title, summary, project)
        spoken = [(entry, comparable(for_people(entry.text))) for entry in entries if entry.role in ENTRY_ROLES]
        memories = [_memory(one, spoken) for one in _unique(stated)]
        return MemoryResult((episode, *memories))

    def _parts(self, entries: Sequence[StoredEntry]) -> list[str]:
        """Return the text in parts of at most `max_input_tokens`, cut between exchanges if possible."""
        most = min(self._settings.chunking.max_chunk_tokens, self._input_tokens)
        parts: list[str] = []
        packed: list[Chunk] = []
        tokens = 0
        for chunk in chunks(entries, self._settings.filtering, most):
            if packed and tokens + chunk.tokens + 1 > self._input_tokens:
                parts.append(_joined(packed))
                packed, tokens = [], 0
            packed.append(chunk)
            tokens += chunk.tokens + 1
        return [*parts, _joined(packed)] if packed else parts

    def _read(
        self, dialogue: _Dialogue, conversation: Conversation, entries: Sequence[StoredEntry], part: str, name: str
    ) -> SummaryReply:
        of_user = for_people("\n".join([entry.text for entry in entries if entry.role == "user"]))
        known = self._known(conversation, part, MOST_KNOWN)
        while known and sum(estimated_tokens(f"{one.subject}{one.text}") + 20 for one in known) > KNOWN_TOKENS:
            known = known[:-1]
        ids = frozenset(one.id for one in known)
        mark = new_mark()
        return dialogue.ask(
            instructions.READING.format(mark=mark),
            instructions.reading_prompt(part, mark, known, name),
            instructions.CONVERSATION_SCHEMA,
            lambda value: checked(value, part, of_user, ids),
            dialogue.cost(estimated_tokens(part) + KNOWN_TOKENS),
        )


class _Dialogue:
    """The calls for one conversation; one of them is repeated after a bad answer, with its errors."""

    def __init__(self, claude: Claude, budget: ModelBudget) -> None:
        self._claude = claude
        self._budget = budget
        self._may_ask_again = True

    def cost(self, tokens: int) -> Usage:
        """Return the most that a call with so many tokens of content costs."""
        return cost_of(self._claude, tokens)

    def ask(
        self, system: str, prompt: str, schema: Mapping[str, Any], check: Callable[[Any], Checked], estimate: Usage
    ) -> Checked:
        """Ask and return what `check` makes of the answer. Raises StrategyError, BudgetError."""
        answer = self._call(system, prompt, schema, estimate)
        found, problems = _judged(check, answer)
        if problems and self._may_ask_again:
            self._may_ask_again = False
            prompt = instructions.corrected(prompt, problems[:MOST_PROBLEMS])
            try:
                again, problems = _judged(check, self._call(system, prompt, schema, estimate))
            except StrategyError:
                if found is None:
                    raise
            else:
                found = again if again is not None else found
        if found is None:
            raise StrategyError(f"invalid answer: {problems[0]}", is_temporary=False)
        return found

    def _call(self, system: str, prompt: str, schema: Mapping[str, Any], estimate: Usage) -> ModelAnswer:
        with self._budget.call(estimate) as call:
            try:
                answer = self._claude.ask(system, prompt, schema)
            except FailedCallError as failure:
                if failure.usage is not None:
                    call.report(failure.usage)
                raise failure.error from failure
            call.report(answer.usage)
            return answer


def cost_of(claude: Claude, tokens: int) -> Usage:
    """Return the most that a call with so many tokens of content costs."""
    return Usage(tokens + OVERHEAD_TOKENS, claude.output_tokens, model=claude.model)


def new_mark() -> str:
    """Return a random mark for the beginning and the end of a conversation."""
    return f"=== record {secrets.token_hex(8)} ==="


def _judged(check: Callable[[Any], Checked], answer: ModelAnswer) -> tuple[Checked | None, Sequence[str]]:
    """Return the result of `check` for an answer (None if unusable), and the errors in it."""
    if answer.value is None:
        return None, ["not a JSON object"]
    try:
        found = check(answer.value)
    except BadReplyError as error:
        return None, [str(error)]
    return found, found.problems if isinstance(found, SummaryReply) else ()


def _joined(packed: Sequence[Chunk]) -> str:
    return for_people("\n".join([chunk.text for chunk in packed]))


def _as_whole(
    dialogue: _Dialogue, replies: Sequence[SummaryReply], stated: Sequence[StatedMemory]
) -> tuple[str, str, list[StatedMemory]]:
    """Return title and summary of all parts, and their memories without the questions that a later part answers."""
    questions = [one for one in stated if one.kind == "question"]
    mark = new_mark()
    told = [(reply.title, reply.summary) for reply in replies]
    prompt = instructions.whole_prompt(told, [one.text for one in questions], mark)
    title, summary, answered = dialogue.ask(
        instructions.WHOLE.format(mark=mark), prompt, instructions.WHOLE_SCHEMA,
        lambda value: checked_whole(value, len(questions)),
        dialogue.cost(estimated_tokens(prompt)),
    )  # fmt: skip
    closed = {id(one) for number, one in enumerate(questions, 1) if number in answered}
    return title, summary, [one for one in stated if id(one) not in closed]


def _unique(stated: Sequence[StatedMemory]) -> list[StatedMemory]:
    """Return `stated` without duplicates."""
    found: dict[tuple[str, str], StatedMemory] = {}
    for one in stated:
        found.setdefault((one.kind, comparable(one.text)), one)
    return list(found.values())


def _memory(one: StatedMemory, spoken: Sequence[tuple[StoredEntry, str]]) -> Memory:
    """Return the memory, with the message that its quotation is from: the user's, if both said it."""
    is_short = len(one.text) <= TITLE_CHARACTERS
    title = one.text if is_short else shorten(one.text, TITLE_CHARACTERS)
    sources = [entry for entry, text in spoken if comparable(one.quote) in text]
    source = min(sources, key=lambda entry: entry.role != "user", default=None)
    number, at = (source.number, source.timestamp) if source else (0, None)
    return Memory(one.kind, title, "" if is_short else one.text, one.subject, one.quote, one.replaces, number, at)
