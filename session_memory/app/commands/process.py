"""`session-memory process`: turns conversations that have ended into memories."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import Result, Terminal, called_as, print_note
from ...common.text.format import counted
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import now_milliseconds
from ...history.store.refresh import NEWER
from ...history.store.values import Conversation
from ...memory.queue import PartResult
from ...memory.runner import PlannedPart, StrategyRun, known_ids, prepared, unknown_strategy
from ._upkeep_overview import retry_lines
from .arguments import add_common, positive
from .opened_store import OpenStore, refresh, with_store
from .output import brief, fields, iso, moment

if TYPE_CHECKING:
    from ...history.store.sqlite.queue import Retry

SUMMARY = "turn finished conversations into memories"
TITLE_CHARACTERS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        metavar="S",
        default="",
        help="only this strategy: extractive, summary, graphiti, ...",
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="at most N conversations")
    parser.add_argument(
        "--archived",
        action="store_true",
        help="include conversations archived before the strategy was set",
    )
    parser.add_argument(
        "--skipped",
        action="store_true",
        help="include skipped conversations, except those that were too short",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the planned work with its tokens and cost"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make memories of waiting conversations; return 1 if some must wait for another run.

    Raises SessionMemoryError."""
    if arguments.strategy and arguments.strategy not in known_ids():
        unknown = unknown_strategy(arguments.strategy)
        raise WrongCallError(str(unknown), unknown.hint)
    return with_store(arguments, lambda opened: _process(opened, arguments), writes=True)


def _process(opened: OpenStore, arguments: argparse.Namespace) -> int:
    if opened.store.is_newer:
        print_note(NEWER)
        return 1
    for fault in opened.location.home.settings().faults:
        print_note(fault)
    refresh(opened)
    opened.store.mark_ready(now_milliseconds())
    with prepared(opened.location, (arguments.strategy,) if arguments.strategy else ()) as work:
        for id, error in work.missing:
            print_note(f"{id}: {error}" + (f" ({error.hint})" if error.hint else ""))
        statuses = ("archived",) if arguments.archived else ()
        if arguments.dry_run:
            plan = work.plan(
                limit=arguments.limit, statuses=statuses, with_skipped=arguments.skipped
            )
            ids = [strategy.id for strategy in work.strategies]
            today, a_day = work.spent_today(), work.settings.tokens_per_day
            opened.terminal.show(WorkPlan(plan, ids, today, a_day))
            return 1 if work.missing else 0
        if arguments.skipped:
            work.reopen()
        return _work_off(opened, work, work.work_off(limit=arguments.limit, statuses=statuses))


def _work_off(opened: OpenStore, work: StrategyRun, pieces: Iterable[PartResult]) -> int:
    finished: list[PartResult] = []
    for done in pieces:
        finished.append(done)
        opened.terminal.line(_line(done))
    worked = WorkedOff(
        finished, work.missing, work.retries(), work.spent_today(), work.settings.tokens_per_day
    )
    opened.terminal.show(worked)
    return 1 if worked.is_unfinished or worked.retries or worked.missing else 0


@dataclass(frozen=True)
class WorkedOff(Result):
    """The results of the finished pieces of work, and the work that is left.

    It has the missing strategies, each with the reason, the work to retry, the tokens spent today,
    and the tokens that may be spent per day."""

    finished: list[PartResult]
    missing: Sequence[tuple[str, SessionMemoryError]]
    retries: list[Retry]
    tokens_today: int
    tokens_per_day: int

    @property
    def is_unfinished(self) -> bool:
        """True if a piece of work must wait."""
        return any(done.status in ("waiting", "stopped") for done in self.finished)

    @property
    def memories(self) -> int:
        """The number of memories that were made."""
        return sum(len(done.memories) for done in self.finished)

    def show(self, terminal: Terminal) -> None:
        """Print the sums; each piece was printed when it was done."""
        if self.finished:
            terminal.line()
        numbers = numbers_of(self.finished)
        summary = ", ".join(f"{number} {status}" for status, number in numbers.items() if number)
        if summary:
            terminal.line(f"{summary}; {counted(self.memories, 'memory', 'memories')}.")
        elif not self.retries:
            silent = (
                "a conversation is ready after an hour of silence (store.conversation_gap_minutes)"
            )
            terminal.line(f"Nothing waits: {silent}.")
            again = f"{called_as()} process --archived --dry-run"
            terminal.line(f"  those that other strategies have done: {again}")
        for line in retry_lines(self.retries):
            terminal.line(line)
        if self.tokens_today:
            terminal.line(_budget(self.tokens_today, self.tokens_per_day))

    def as_json(self) -> dict[str, Any]:
        return {
            "done": [
                {
                    **done._asdict(),
                    "conversation": fields(done.conversation) if done.conversation else None,
                    "memories": list(done.memories),
                }
                for done in self.finished
            ],
            **numbers_of(self.finished),
            "memories": self.memories,
            "missing": {id: str(error) for id, error in self.missing},
            "retries": [
                {**each._asdict(), "conversation": fields(each.conversation), "at": iso(each.at)}
                for each in self.retries
            ],
            "tokens_today": self.tokens_today,
            "tokens_per_day": self.tokens_per_day,
        }


def numbers_of(finished: Sequence[PartResult]) -> dict[str, int]:
    """Count the conversations that were archived, that were skipped, and that must wait.

    A conversation counts once for all its strategies: as archived if any strategy archived it."""
    statuses = ("archived", "waiting", "skipped")
    of_each: dict[int, set[str]] = {}
    for done in finished:
        if done.conversation:
            of_each.setdefault(done.conversation.id, set()).add(done.status)
    firsts = [
        next((status for status in statuses if status in statuses_of_part), "")
        for statuses_of_part in of_each.values()
    ]
    return {status: firsts.count(status) for status in ("archived", "skipped", "waiting")}


def _line(done: PartResult) -> str:
    """Describe the result of a piece of work in one line."""
    result = (
        counted(len(done.memories), "memory", "memories")
        if done.status == "archived"
        else for_prompt(done.reason)
    )
    if done.conversation is None or done.status == "stopped":
        return f"  {done.strategy}: {result}"
    return f"  {done.status:<9} {_name(done.conversation)}  ({done.strategy}: {result})"


def _name(conversation: Conversation) -> str:
    title = brief(conversation.title, TITLE_CHARACTERS) or "-"
    return f"{conversation.id:>5}  {moment(conversation.last_message_at)}  {title}"


@dataclass(frozen=True)
class WorkPlan(Result):
    """The work that strategies would do, the tokens spent today, and the daily limit."""

    planned: Sequence[PlannedPart]
    strategies: list[str]
    tokens_today: int
    tokens_per_day: int

    def show(self, terminal: Terminal) -> None:
        for part in self.planned:
            what = part.reason and f"would be skipped: {for_prompt(part.reason)}"
            name, strategy = _name(part.piece.conversation), part.piece.strategy
            terminal.line(f"  {name}  ({strategy}: {what or _spending([part])})")
        if self.planned:
            terminal.line()
        by_strategy: dict[str, list[PlannedPart]] = {id: [] for id in self.strategies}
        for part in self.planned:
            if not part.reason:
                by_strategy[part.piece.strategy].append(part)
        for id, chosen in by_strategy.items():
            terminal.line(f"{id}: {counted(len(chosen), 'conversation')}, {_spending(chosen)}")
        terminal.line(_budget(self.tokens_today, self.tokens_per_day))

    def as_json(self) -> dict[str, Any]:
        return {
            "planned": [
                {
                    "strategy": part.piece.strategy,
                    "conversation": fields(part.piece.conversation),
                    "skipped": part.reason,
                    **part.usage._asdict(),
                    "tokens": part.usage.tokens,
                    "dollars": part.dollars,
                }
                for part in self.planned
            ],
            "tokens": sum(part.usage.tokens for part in self.planned),
            "tokens_today": self.tokens_today,
            "tokens_per_day": self.tokens_per_day,
        }


def _spending(planned: Sequence[PlannedPart]) -> str:
    """Return `at most 12,000 tokens, $0.05`."""
    tokens = sum(part.usage.tokens for part in planned)
    if not tokens:
        return "no tokens"
    models = sorted({part.usage.model for part in planned if part.dollars is None})
    dollars = sum(part.dollars or 0.0 for part in planned)
    unknown = (
        f"no price is known for {', '.join(for_prompt(model) or 'the model' for model in models)}"
    )
    price = (
        f"${dollars:.2f}"
        if not models
        else f"${dollars:.2f} and more: {unknown}"
        if dollars
        else unknown
    )
    return f"at most {tokens:,} tokens, {price}"


def _budget(today: int, a_day: int) -> str:
    return f"Tokens today: {today:,} of {a_day:,}."
