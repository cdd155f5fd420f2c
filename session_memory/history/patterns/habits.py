"""An agent's habits, counted from the tool calls of its conversations. Pure."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, groupby
from typing import TYPE_CHECKING, NamedTuple

from ...common.text.shell_commands import LOOKING, family
from ._instructions import instructions_in, key_of_instruction
from .failures import ErrorQuery, Failure, failures, is_failure, normalised, what_followed
from .flows import StepCounts, tool_name

if TYPE_CHECKING:
    from ..store.sqlite.tool_uses import ConversationSteps
    from ..store.values import Conversation, StoredEntry

LEAST_TOGETHER = 3
MOST_FILES_TOGETHER = 25  # in one exchange; a sweep over more files says nothing about pairs
EXAMPLES = 3
LEAST_ORDERS = 3  # times, for an order of tools to be a habit
LONGEST_ORDER = 3  # tools
LEAST_FAILURES = 3  # of a command, to advise about it
LEAST_HELPED = 2  # times that something helped
LEAST_CHANGES = 5  # of a file with another one, to advise about them
LEAST_SESSIONS = 3  # in which a person gave the same instruction, to advise about it
LEAST_SHARE = 0.8  # of the changes of a file that came with changes of the other one
_HELPFUL = ("after running ", "with ")  # not an edit, which fixes the code
FAILED = " ✗"  # marks a tool that failed before the last one of an order


class FailingCommand(NamedTuple):
    """A command that fails.

    It has how often it ran, failed and then succeeded, and its frequent errors and fixes. `session`
    is the one in which it last failed, preferably with a fix, and `number` is that call's number.
    """

    command: str
    runs: int
    failures: int
    recovered: int
    errors: list[tuple[str, int]]
    then_worked: list[tuple[str, int]]
    session: str = ""
    number: int = 0


class ToolHabit(NamedTuple):
    """Tools used one after another for one request; repetitions count once.

    It has how often the sequence occurred, and how often its last tool failed. A tool that failed
    before is marked. A single tool represents all its calls."""

    tools: tuple[str, ...]
    times: int
    failures: int


class FilePair(NamedTuple):
    """Two files that were changed for the same request.

    It has how often they were changed together, and how often each of them."""

    first: str
    second: str
    times: int
    first_times: int
    second_times: int


class Advice(NamedTuple):
    """A habit that a person can act on: a sentence for agents, and the counts that support it."""

    sentence: str
    counts: str


class RepeatedInstruction(NamedTuple):
    """An instruction that a person gave in several sessions, and the number of these."""

    sentence: str
    sessions: int


class Habits(NamedTuple):
    """All habits, the most frequent first.

    `directories` are where the conversations started, `flows` are the sequences of steps."""

    conversations: int
    tool_uses: int
    commands: list[FailingCommand]
    together: list[FilePair]
    tools: list[ToolHabit]
    orders: list[ToolHabit]
    directories: set[str]
    steps: StepCounts
    instructions: list[RepeatedInstruction]

    def advice(self) -> list[Advice]:
        """Return the sentences that would save agents from these habits.

        They are instructions that the person keeps repeating, and sentences about commands that
        keep failing until another one runs, and about files that rarely change alone."""
        return [*self._of_instructions(), *self._of_commands(), *self._of_pairs()]

    def _of_instructions(self) -> Iterator[Advice]:
        for each in self.instructions:
            yield Advice(each.sentence, f"you asked for this in {each.sessions} sessions")

    def _of_commands(self) -> Iterator[Advice]:
        for command in self.commands:
            helped = [
                (followed, times)
                for followed, times in command.then_worked
                if followed.startswith(_HELPFUL) and times >= LEAST_HELPED
            ]
            if command.failures >= LEAST_FAILURES and helped:
                followed, times = helped[0]
                yield Advice(
                    f"`{command.command}` often fails. It works {followed}.",
                    f"failed in {command.failures} of {command.runs} runs, and worked so "
                    f"{times} times",
                )

    def _of_pairs(self) -> Iterator[Advice]:
        names = self.short_names()
        for pair in self.together:
            changes = min(pair.first_times, pair.second_times)
            if pair.times >= max(LEAST_CHANGES, LEAST_SHARE * changes):
                first, second = pair.first, pair.second
                if pair.first_times != changes:
                    first, second = second, first
                yield Advice(
                    f"If you change `{names[first]}`, check `{names[second]}` too.",
                    f"changed together in {pair.times} of {changes} requests",
                )

    def short_names(self) -> dict[str, str]:
        """Return short names for paths, which begin with the project's directory, by path."""
        directories = sorted(self.directories - {""}, key=len, reverse=True)
        names = {}
        for path in {path for pair in self.together for path in (pair.first, pair.second)}:
            above = next(
                (
                    directory
                    for directory in directories
                    if path.startswith(directory.rstrip("/") + "/")
                ),
                "",
            )
            names[path] = (
                path.removeprefix(os.path.dirname(above).rstrip("/") + "/") if above else path
            )
        return names


class ErrorMatch(NamedTuple):
    """An earlier occurrence of an error, its similarity, and its solution ('' if unknown)."""

    conversation: Conversation
    failure: Failure
    command: str
    similarity: float
    solved: str


def find_habits(conversations: Iterable[ConversationSteps]) -> Habits:
    """Return the habits in the conversations."""
    counts = _Counts()
    for worked in conversations:
        counts.take(worked)
    return counts.habits()


def matching_errors(
    query: ErrorQuery, conversations: Iterable[ConversationSteps]
) -> list[ErrorMatch]:
    """Return the errors that match the query.

    The closest come first, then solved ones, then the latest."""
    seen = []
    for conversation, steps in conversations:
        for failure in failures(steps):
            similarity = query.similarity(failure.tool.error)
            if similarity:
                command = family(failure.tool.text) if failure.tool.kind == "command" else ""
                name = command or tool_name(failure.tool)
                seen.append(
                    ErrorMatch(conversation, failure, name, similarity, what_followed(failure))
                )
    return sorted(
        seen,
        key=lambda match: (
            -match.similarity,
            not match.solved,
            -(match.failure.tool.timestamp or 0),
        ),
    )


class _Instruction:
    """An instruction as it was last given, its sessions, and the requests with it."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.sessions: set[str] = set()
        self.requests: set[str] = set()

    @property
    def is_repeated(self) -> bool:
        """Check if a person repeats it; a script sends the same request again and again."""
        return min(len(self.sessions), len(self.requests)) >= LEAST_SESSIONS


class _Counts:
    """The counters."""

    def __init__(self) -> None:
        self._conversations = 0
        self._tool_uses = 0
        self._runs: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._recovered: Counter[str] = Counter()
        self._errors: dict[str, Counter[str]] = defaultdict(Counter)
        self._examples: dict[tuple[str, str], str] = {}
        self._followed: dict[str, Counter[str]] = defaultdict(Counter)
        self._changed: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._directories: set[str] = set()
        self._steps = StepCounts()
        self._orders: Counter[tuple[str, ...]] = Counter()
        self._failed_orders: Counter[tuple[str, ...]] = Counter()
        self._last: dict[str, tuple[bool, str, int]] = {}
        self._instructions: dict[str, _Instruction] = {}

    def take(self, worked: ConversationSteps) -> None:
        conversation, steps = worked
        self._conversations += 1
        self._directories.add(conversation.cwd)
        for step in steps:
            if step.role == "tool":
                self._tool_uses += 1
                if step.kind == "command":
                    self._take_command(step)
            else:
                self._take_request(conversation.session_id, step.text)
        failed = failures(steps)
        self._steps.take_failures(conversation, failed)
        for failure in failed:
            if failure.tool.kind == "command" and (name := family(failure.tool.text)):
                followed = what_followed(failure)
                last = bool(followed), conversation.session_id, failure.tool.number
                self._last[name] = max(self._last.get(name, last), last, key=lambda pair: pair[0])
                if followed:
                    self._recovered[name] += 1
                    self._followed[name][followed] += 1
        for is_used, exchange in groupby(steps, key=lambda step: step.role == "tool"):
            if is_used:
                calls = list(exchange)
                self._take_tools(calls, conversation.cwd)
                self._steps.take(calls)

    def habits(self) -> Habits:
        failing = []
        for name, failed in self._failed.most_common():
            errors = [
                (self._examples[name, error], times)
                for error, times in self._errors[name].most_common(EXAMPLES)
            ]
            followed = self._followed[name].most_common(EXAMPLES)
            _, session, number = self._last.get(name, (False, "", 0))
            recovered = self._recovered[name]
            failing.append(
                FailingCommand(
                    name, self._runs[name], failed, recovered, errors, followed, session, number
                )
            )
        together = [
            FilePair(first, second, times, self._changed[first], self._changed[second])
            for (first, second), times in self._pairs.most_common()
            if times >= LEAST_TOGETHER
        ]
        every = [
            ToolHabit(tools, times, self._failed_orders[tools])
            for tools, times in self._orders.most_common()
        ]
        repeated = [
            RepeatedInstruction(each.sentence, len(each.sessions))
            for each in self._instructions.values()
            if each.is_repeated
        ]
        tools = [habit for habit in every if len(habit.tools) == 1]
        orders = [habit for habit in every if len(habit.tools) > 1 and habit.times >= LEAST_ORDERS]
        return Habits(
            self._conversations,
            self._tool_uses,
            failing,
            together,
            tools,
            orders,
            self._directories,
            self._steps,
            sorted(repeated, key=lambda each: (-each.sessions, each.sentence)),
        )

    def _take_request(self, session_id: str, request: str) -> None:
        for sentence in instructions_in(request):
            key = key_of_instruction(sentence)
            known = self._instructions.setdefault(key, _Instruction(sentence))
            known.sessions.add(session_id)
            known.requests.add(request)

    def _take_command(self, step: StoredEntry) -> None:
        name = family(step.text)
        if not name or name == LOOKING or not step.outcome:
            return
        self._runs[name] += 1
        if is_failure(step):
            error = normalised(step.error)
            self._failed[name] += 1
            self._errors[name][error] += 1
            self._examples.setdefault((name, error), step.error)

    def _take_tools(self, exchange: Sequence[StoredEntry], cwd: str) -> None:
        """Count the tools of an exchange, singly and in sequence, and the files changed together.

        Calls with an unknown outcome do not count."""
        self._take_changes(exchange, cwd)
        names: list[str] = []
        failed: list[bool] = []
        for step in exchange:
            if not step.outcome:
                continue
            name, has_failed = tool_name(step), is_failure(step)
            self._orders[(name,)] += 1
            self._failed_orders[(name,)] += has_failed
            if names[-1:] == [name] and failed[-1] == has_failed:
                continue
            names.append(name)
            failed.append(has_failed)
        for end in range(LONGEST_ORDER, len(names) + 1):
            begin = end - LONGEST_ORDER
            before = [
                name + FAILED * bad
                for name, bad in zip(names[begin : end - 1], failed[begin : end - 1])
            ]
            order = (*before, names[end - 1])
            self._orders[order] += 1
            self._failed_orders[order] += failed[end - 1]

    def _take_changes(self, exchange: Sequence[StoredEntry], cwd: str) -> None:
        changed: set[str] = set()
        for step in exchange:
            changed.update(step.edited_files(cwd))
        self._changed.update(changed)
        if len(changed) <= MOST_FILES_TOGETHER:
            self._pairs.update(combinations(sorted(changed), 2))
