"""`session-memory process`: turns conversations that have ended into memories."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from ...common.errors import WrongCallError
from ...common.system.terminal import called_as, print_note
from ...common.text.format import counted
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import now_milliseconds
from ...history.store.refresh import NEWER
from ...history.store.values import Conversation
from ...memory.queue import PartResult
from ...memory.runner import PlannedPart, StrategyRun, known_ids, prepared
from ._upkeep_overview import retry_lines
from .arguments import add_common, positive
from .opened_store import OpenStore, refresh, with_store
from .output import brief, fields, iso, moment

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
    if arguments.strategy and arguments.strategy not in (known := known_ids()):
        raise WrongCallError(
            f"unknown strategy {arguments.strategy!r}", f"choose one of {', '.join(known)}"
        )
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
            _show_plan(opened, work, plan)
            return 1 if work.missing else 0
        if arguments.skipped:
            work.reopen()
        return _work_off(opened, work, work.work_off(limit=arguments.limit, statuses=statuses))


def _work_off(opened: OpenStore, work: StrategyRun, pieces: Iterable[PartResult]) -> int:
    finished: list[PartResult] = []
    for done in pieces:
        finished.append(done)
        opened.terminal.line(_line(done))
    numbers = numbers_of(finished)
    memories = sum(len(done.memories) for done in finished)
    if finished:
        opened.terminal.line()
    summary = ", ".join(f"{number} {status}" for status, number in numbers.items() if number)
    retries = work.retries()
    if summary:
        opened.terminal.line(f"{summary}; {counted(memories, 'memory', 'memories')}.")
    elif not retries:
        silent = (
            "a conversation is ready when it was silent for an hour "
            "(store.conversation_gap_minutes)"
        )
        opened.terminal.line(f"Nothing waits: {silent}.")
        opened.terminal.line(
            f"  those that other strategies have done: {called_as()} process --archived --dry-run"
        )
    for line in retry_lines(retries):
        opened.terminal.line(line)
    if work.spent_today():
        opened.terminal.line(_budget(work))
    opened.terminal.result(
        {
            "done": [
                {
                    **done._asdict(),
                    "conversation": fields(done.conversation) if done.conversation else None,
                    "memories": list(done.memories),
                }
                for done in finished
            ],
            **numbers,
            "memories": memories,
            "missing": {id: str(error) for id, error in work.missing},
            "retries": [
                {**one._asdict(), "conversation": fields(one.conversation), "at": iso(one.at)}
                for one in retries
            ],
            "tokens_today": work.spent_today(),
        }
    )
    is_unfinished = any(done.status in ("waiting", "stopped") for done in finished)
    return 1 if is_unfinished or retries or work.missing else 0


def numbers_of(finished: Sequence[PartResult]) -> dict[str, int]:
    """Count the conversations that were archived, skipped or must wait.

    Each counts once for all its strategies, as archived if one of them archived it."""
    statuses = ("archived", "waiting", "skipped")
    of_each: dict[int, set[str]] = {}
    for done in finished:
        if done.conversation:
            of_each.setdefault(done.conversation.id, set()).add(done.status)
    firsts = [
        next((status for status in statuses if status in found), "") for found in of_each.values()
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


def _show_plan(opened: OpenStore, work: StrategyRun, planned: Sequence[PlannedPart]) -> None:
    terminal = opened.terminal
    for one in planned:
        what = one.reason and f"would be skipped: {for_prompt(one.reason)}"
        terminal.line(
            f"  {_name(one.piece.conversation)}  ({one.piece.strategy}: {what or _spending([one])})"
        )
    if planned:
        terminal.line()
    by_strategy: dict[str, list[PlannedPart]] = {strategy.id: [] for strategy in work.strategies}
    for one in planned:
        if not one.reason:
            by_strategy[one.piece.strategy].append(one)
    for id, chosen in by_strategy.items():
        terminal.line(f"{id}: {counted(len(chosen), 'conversation')}, {_spending(chosen)}")
    terminal.line(_budget(work))
    terminal.result(
        {
            "planned": [
                {
                    "strategy": one.piece.strategy,
                    "conversation": fields(one.piece.conversation),
                    "skipped": one.reason,
                    **one.usage._asdict(),
                    "tokens": one.usage.tokens,
                    "dollars": one.dollars,
                }
                for one in planned
            ],
            "tokens": sum(one.usage.tokens for one in planned),
            "tokens_today": work.spent_today(),
            "tokens_per_day": work.settings.tokens_per_day,
        }
    )


def _spending(planned: Sequence[PlannedPart]) -> str:
    """Return `at most 12,000 tokens, $0.05`."""
    tokens = sum(one.usage.tokens for one in planned)
    if not tokens:
        return "no tokens"
    models = sorted({one.usage.model for one in planned if one.dollars is None})
    dollars = sum(one.dollars or 0.0 for one in planned)
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


def _budget(work: StrategyRun) -> str:
    return f"Tokens today: {work.spent_today():,} of {work.settings.tokens_per_day:,}."
