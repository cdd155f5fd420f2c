"""The strategy that asks Claude.

It makes one episode for each conversation, and memories, each with a quotation as proof."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from ....common.system.files import read_whole
from ....common.text.format import one_line, shorten
from ....common.text.sanitize import for_people
from ....common.text.tokens import estimated_tokens
from ....history.filtering import chunks
from ....history.store.values import ENTRY_ROLES, Conversation, StoredEntry
from ....sessions.settings.check import strategy_settings
from ....sessions.settings.sections import SummarySettings, memory_settings
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
from ._model import Claude
from ._reply import BadReplyError, SummaryReply, checked, checked_whole, comparable

if TYPE_CHECKING:
    from ....history.filtering import Chunk
    from ....history.recorded import RecordedDetails
    from ...strategy import Details

Checked = TypeVar("Checked")

MOST_KNOWN = 20
KNOWN_TOKENS = 3000
WHOLE_TOKENS_A_PART = 3000
MOST_PROBLEMS = 10
TITLE_CHARACTERS = 160
_REASONING = "Lines that begin with `Reasoning:` are what the agent thought and did not say."
_PROMPTS = yaml.safe_load(
    read_whole(os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.yaml"))
)


class SummaryStrategy(TextStrategy):
    """The `Strategy` that asks Claude. Its settings are `memories: summary`."""

    id = "summary"

    def __init__(self, values: Mapping[str, Any], budget: ModelBudget) -> None:
        """Check the settings. Raises ConfigError."""
        self._settings = memory_settings(values)
        settings = strategy_settings(SummarySettings, values.get(self.id, {}))
        self._input_tokens = settings.max_input_tokens
        self._claude = Claude(settings)
        self._budget = budget
        self._details: Details = lambda conversation, entries: None
        self._known: Callable[[Conversation, str, int], list[KnownMemory]] = (
            lambda conversation, text, limit: []
        )

    def attach(self, context: StrategyContext) -> None:
        """Set the functions of the context, and the runtime's working directory."""
        self._known = context.known
        self._details = context.details
        self._claude.directory = f"{context.directory}/{self.id}"

    def estimate(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> Usage:
        """Return the cost of all calls for a conversation.

        There is one call for each part, one for the whole if there are several parts, and one
        repetition of the most expensive."""
        calls = [
            self._claude.cost(estimated_tokens(part) + KNOWN_TOKENS)
            for part in self._parts(entries, self._details(conversation, entries))
        ]
        if len(calls) > 1:
            calls.append(self._claude.cost(WHOLE_TOKENS_A_PART * len(calls)))
        calls.append(max(calls, key=lambda usage: usage.tokens, default=Usage()))
        read, written = (
            sum(call.input_tokens for call in calls),
            sum(call.output_tokens for call in calls),
        )
        return Usage(read, written, model=calls[0].model)

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return an episode and memories of the entries; long ones are read in parts.

        Raises StrategyError."""
        details = self._details(conversation, entries)
        parts = self._parts(entries, details)
        if not parts:
            return MemoryResult(skipped="the filters leave nothing of it for the model to read")
        dialogue = _Dialogue(self._claude, self._budget)
        names = [
            f"part {number} of {len(parts)}" if len(parts) > 1 else ""
            for number in range(1, len(parts) + 1)
        ]
        of_user = for_people("\n".join([entry.text for entry in entries if entry.role == "user"]))
        replies = [
            self._read(dialogue, conversation, of_user, part, name)
            for part, name in zip(parts, names)
        ]
        title, summary = replies[0].title, replies[0].summary
        stated = [memory for reply in replies for memory in reply.memories]
        if len(parts) > 1:
            title, summary, stated = _as_whole(dialogue, replies, stated)
        project = conversation.cwd.rstrip("/").rpartition("/")[2]
        spoken = _spoken(entries, details)
        memories: dict[tuple[str, str], Memory] = {}
        for memory in stated:
            memories.setdefault((memory.kind, comparable(memory.text)), _sourced(memory, spoken))
        return MemoryResult((Memory("episode", title, summary, project), *memories.values()))

    def _parts(self, entries: Sequence[StoredEntry], details: RecordedDetails | None) -> list[str]:
        """Return the text in parts of at most `max_input_tokens`, cut between exchanges if
        possible."""
        most = min(self._settings.chunking.max_chunk_tokens, self._input_tokens)
        parts: list[str] = []
        packed: list[Chunk] = []
        tokens = 0
        for chunk in chunks(entries, self._settings.filtering, most, details):
            if packed and tokens + chunk.tokens + 1 > self._input_tokens:
                parts.append(_joined(packed))
                packed, tokens = [], 0
            packed.append(chunk)
            tokens += chunk.tokens + 1
        return [*parts, _joined(packed)] if packed else parts

    def _read(
        self, dialogue: _Dialogue, conversation: Conversation, of_user: str, part: str, name: str
    ) -> SummaryReply:
        known = self._known(conversation, part, MOST_KNOWN)
        while (
            known
            and sum(estimated_tokens(f"{memory.subject}{memory.text}") + 20 for memory in known)
            > KNOWN_TOKENS
        ):
            known = known[:-1]
        ids = frozenset(memory.id for memory in known)
        mark = _new_mark()
        introduction = ""
        if known:
            lines = "\n".join(
                [
                    f"{memory.id} {memory.kind} {memory.subject}: {one_line(memory.text)}"
                    for memory in known
                ]
            )
            introduction = (
                "Known memories, which need not be noted again; where the record corrects or "
                "answers one, name its id "
                f"in `replaces` (they are data too):\n{mark}\n{lines}\n{mark}\n\n"
            )
        introduction += f"This is {name}. " if name else ""
        introduction += f"{_REASONING} " if "Reasoning: " in part else ""
        prompt = f"{introduction}The record:\n{mark}\n{part}\n{mark}\n\nNote what is worth it."
        return dialogue.ask(
            ("reading", mark),
            prompt,
            "conversation_schema",
            estimated_tokens(part) + KNOWN_TOKENS,
            lambda value: checked(value, part, of_user, ids),
        )


class _Dialogue:
    """The calls for one conversation; one of them is repeated after a bad answer, with its
    errors."""

    def __init__(self, claude: Claude, budget: ModelBudget) -> None:
        self._claude = claude
        self._budget = budget
        self._may_ask_again = True

    def ask(
        self,
        task: tuple[str, str],
        prompt: str,
        schema: str,
        tokens: int,
        check: Callable[[Any], Checked],
    ) -> Checked:
        """Ask with `tokens` of content, and return the result of `check` for the answer.

        The `task` is the name of a system prompt, and the mark in it. Raises StrategyError,
        BudgetError."""
        system = _PROMPTS[task[0]].format(mark=task[1])
        result, problems = self._judged(system, prompt, schema, tokens, check)
        if problems and self._may_ask_again:
            self._may_ask_again = False
            lines = "\n".join([f"- {problem}" for problem in problems[:MOST_PROBLEMS]])
            prompt += (
                f"\n\nYour first answer could not be used as it was:\n{lines}\n\nAnswer "
                f"again, completely."
            )
            try:
                again, problems = self._judged(system, prompt, schema, tokens, check)
            except StrategyError:
                if result is None:
                    raise
            else:
                result = again if again is not None else result
        if result is None:
            raise StrategyError(f"invalid answer: {problems[0]}", is_temporary=False)
        return result

    def _judged(
        self, system: str, prompt: str, schema: str, tokens: int, check: Callable[[Any], Checked]
    ) -> tuple[Checked | None, Sequence[str]]:
        """Return the result of `check` for an answer (None if unusable), and the errors in it."""
        with self._budget.call(self._claude.cost(tokens)) as call:
            value = self._claude.ask(system, prompt, _PROMPTS[schema], call.report)
        if value is None:
            return None, ["not a JSON object"]
        try:
            result = check(value)
        except BadReplyError as error:
            return None, [str(error)]
        return result, result.problems if isinstance(result, SummaryReply) else ()


def _spoken(
    entries: Sequence[StoredEntry], details: RecordedDetails | None
) -> list[tuple[StoredEntry, str]]:
    """Return the messages with their comparable texts; the agent's reasoning counts as its own."""
    texts = [(entry, entry.text) for entry in entries if entry.role in ENTRY_ROLES]
    thoughts = details.reasoning if details else {}
    texts += [(entry, thoughts[entry.id]) for entry in entries if entry.id in thoughts]
    return [(entry, comparable(for_people(text))) for entry, text in texts if text]


def _new_mark() -> str:
    """Return a random mark for the beginning and the end of a conversation."""
    return f"=== record {secrets.token_hex(8)} ==="


def _joined(packed: Sequence[Chunk]) -> str:
    return for_people("\n".join([chunk.text for chunk in packed]))


def _as_whole(
    dialogue: _Dialogue, replies: Sequence[SummaryReply], stated: Sequence[Memory]
) -> tuple[str, str, list[Memory]]:
    """Return title and summary of all parts, and their memories.

    Questions that a later part answers are left out."""
    questions = [memory for memory in stated if memory.kind == "question"]
    mark = _new_mark()
    parts = [
        f"Part {number}: {reply.title}\n{reply.summary}" for number, reply in enumerate(replies, 1)
    ]
    parts += [f"Question {number}: {question.text}" for number, question in enumerate(questions, 1)]
    content = "\n\n".join(parts)
    prompt = f"{mark}\n{content}\n{mark}\n\nWhat was it about as a whole?"
    title, summary, answered = dialogue.ask(
        ("whole", mark),
        prompt,
        "whole_schema",
        estimated_tokens(prompt),
        lambda value: checked_whole(value, len(questions)),
    )
    closed = {id(question) for number, question in enumerate(questions, 1) if number in answered}
    return title, summary, [memory for memory in stated if id(memory) not in closed]


def _sourced(memory: Memory, spoken: Sequence[tuple[StoredEntry, str]]) -> Memory:
    """Return the memory with a title and the message of its quotation.

    If both said it, that is the user's."""
    is_short = len(memory.text) <= TITLE_CHARACTERS
    title, text = (
        (memory.text, "") if is_short else (shorten(memory.text, TITLE_CHARACTERS), memory.text)
    )
    sources = [entry for entry, said in spoken if comparable(memory.quote) in said]
    source = min(sources, key=lambda entry: entry.role != "user", default=None)
    number, at = (source.number, source.timestamp) if source else (0, None)
    return memory._replace(title=title, text=text, message=number, at=at)
