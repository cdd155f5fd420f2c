"""The queue: gives finished conversations to each strategy in turn and records the outcome.

A strategy works in one process at a time, which holds a lock. Each step is recorded before the
next, so a crash at any moment is safe: take a part of a conversation; record the strategy's result
together with its cost; write the memories, which is idempotent; mark the part done. A strategy runs
again only if its result was not recorded."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..common.errors import LockedError, SessionMemoryError
from ..common.system.files import Closing, lock
from ..common.text.format import counted
from ..common.text.sanitize import shortened
from ..history.filtering import is_command
from ..history.store.sqlite.queue import ConversationPart, StoredQueue
from ..history.store.values import Conversation, StoredEntry
from .strategy import (
    BudgetError,
    Memory,
    MemoryResult,
    Strategy,
    StrategyError,
    UnavailableError,
    Usage,
)
from .token_budget import ConversationBudgetError, TokenBudget, checked

Sink = Callable[[Conversation, Sequence[StoredEntry], str, MemoryResult], list[str]]

MOST_INTERRUPTIONS = 10
FAILURES_IN_A_ROW = 3
FIRST_PAUSE_SECONDS = 60
LONGEST_PAUSE_SECONDS = 24 * 3600
REASON_CHARACTERS = 200


class PartResult(NamedTuple):
    """The outcome of a part of a conversation.

    `status` is archived, skipped, waiting (will be retried) or stopped (with all other parts of its
    strategy). `reason` is '' if archived; `memories` are the ids of the memories made."""

    strategy: str
    conversation: Conversation | None
    status: str
    reason: str = ""
    memories: tuple[str, ...] = ()


class Queue:
    """The waiting parts in the store of `work`.

    `sink` writes the memories of a result and returns their ids; it is idempotent for the same
    conversation (`last_message_at`), strategy and entries. `clock` returns milliseconds since
    1970."""

    def __init__(
        self,
        sink: Sink,
        budget: TokenBudget,
        work: StoredQueue,
        clock: Callable[[], int],
        *,
        attempts: int = 5,
        interruptions: int = MOST_INTERRUPTIONS,
    ) -> None:
        self._sink = sink
        self._budget = budget
        self._work = work
        self._clock = clock
        self._attempts = attempts
        self._interruptions = interruptions

    def work_off(
        self,
        strategies: Sequence[Strategy],
        all_ids: tuple[str, ...],
        *,
        limit: int | None = None,
        statuses: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[PartResult]:
        """Process at most `limit` parts until none waits or `stop` is true; yield outcomes.

        A conversation is archived once all strategies of `all_ids` are done with it. Takes ready
        conversations, and those with one of `statuses`. Raises DatabaseError."""
        self._work.close_done(all_ids)
        left = -1 if limit is None else limit
        for strategy in strategies:
            for done in self._work_off(strategy, all_ids, statuses):
                yield done
                if done.status == "stopped":
                    break
                left -= 1
                if left == 0 or stop():
                    return

    def _work_off(
        self, strategy: Strategy, all_ids: tuple[str, ...], statuses: tuple[str, ...]
    ) -> Iterator[PartResult]:
        try:
            held = lock(f"{self._work.path}.{strategy.id}.lock", 0.0)
        except LockedError:
            yield PartResult(strategy.id, None, "stopped", "another process is running it")
            return
        failures = 0
        with Closing(held):
            while piece := self._work.take(strategy.id, self._clock(), statuses=statuses):
                done = self._step(strategy, piece, all_ids)
                yield done
                failures = failures + 1 if done.status == "waiting" else 0
                if failures == FAILURES_IN_A_ROW:
                    yield PartResult(
                        strategy.id, None, "stopped", f"{failures} in a row failed: {done.reason}"
                    )
                if done.status == "stopped" or failures == FAILURES_IN_A_ROW:
                    return

    def _step(
        self, strategy: Strategy, piece: ConversationPart, all_ids: tuple[str, ...]
    ) -> PartResult:
        """Process one part, or release it."""
        try:
            entries, is_known = self._work.entries(piece)
            # the file was ingested again, or split differently
            if not entries and not piece.result and is_known:
                return self._finish(piece, "archived", "", all_ids)
            reason = ""
            # a part that ended the process again and again may do so on each attempt
            if not piece.result:
                ended = (
                    f"the process ended {counted(piece.interruptions, 'time')} while processing it"
                )
                reason = (
                    ended
                    if piece.interruptions >= self._interruptions
                    else unfit(strategy, piece, entries)
                )
            result = (
                MemoryResult(skipped=reason) if reason else self._result(strategy, piece, entries)
            )
            if result.skipped:
                return self._finish(piece, "skipped", _reason(result.skipped), all_ids)
            ids = (
                tuple(self._sink(piece.conversation, entries, piece.strategy, result))
                if result.memories
                else ()
            )
            return self._finish(piece, "archived", "", all_ids, ids)
        except ConversationBudgetError as error:
            return self._finish(piece, "skipped", _reason(str(error)), all_ids)
        except (UnavailableError, BudgetError) as error:
            self._put_back(piece, piece.attempts, 0, str(error))
            return PartResult(piece.strategy, piece.conversation, "stopped", _reason(str(error)))
        except Exception as error:
            return self._failed(piece, error, all_ids)
        except BaseException:
            self._put_back(piece, piece.attempts, 0, "")
            raise

    def _result(
        self, strategy: Strategy, piece: ConversationPart, entries: Sequence[StoredEntry]
    ) -> MemoryResult:
        """Return the strategy's result for a part, recorded by now."""
        if piece.result:
            return _decoded(piece.result)
        estimate = estimate_of(strategy, piece.conversation, entries)
        account = self._budget.open(strategy.id, piece.conversation.id, estimate)
        try:
            result = strategy.process(piece.conversation, entries)
        except BaseException:
            self._work.accounts.settle(account, Usage())
            raise
        self._work.keep_result(piece, _encoded(result), account, checked(result.usage))
        return result

    def _finish(
        self,
        piece: ConversationPart,
        outcome: str,
        reason: str,
        all_ids: tuple[str, ...],
        memories: tuple[str, ...] = (),
    ) -> PartResult:
        self._work.finish(piece, outcome, reason, all_ids)
        return PartResult(piece.strategy, piece.conversation, outcome, reason, memories)

    def _failed(
        self, piece: ConversationPart, error: Exception, all_ids: tuple[str, ...]
    ) -> PartResult:
        """Skip a part that failed for good or too often; put any other back for a retry.

        A part with a recorded result is never skipped."""
        problem = (
            str(error)
            if isinstance(error, SessionMemoryError)
            else f"{type(error).__name__}: {error}"
        )
        attempts = piece.attempts + 1
        has_result = bool(piece.result) or self._work.has_result(piece)
        is_final = isinstance(error, StrategyError) and not error.is_temporary
        if not has_result and is_final:
            return self._finish(piece, "skipped", _reason(problem), all_ids)
        if not has_result and attempts >= self._attempts:
            reason = f"failed {counted(attempts, 'time')}: {problem}"
            return self._finish(piece, "skipped", _reason(reason), all_ids)
        pause = min(FIRST_PAUSE_SECONDS * 4 ** min(attempts - 1, 9), LONGEST_PAUSE_SECONDS)
        self._put_back(piece, attempts, self._clock() + pause * 1000, problem)
        return PartResult(piece.strategy, piece.conversation, "waiting", _reason(problem))

    def _put_back(
        self, piece: ConversationPart, attempts: int, next_try: int, problem: str
    ) -> None:
        self._work.put_back(piece, attempts=attempts, next_try=next_try, problem=_reason(problem))


def unfit(strategy: Strategy, piece: ConversationPart, entries: Sequence[StoredEntry]) -> str:
    """Return why a strategy does not take a part; '' if it does."""
    if not entries:
        return "nothing new in it"
    said = [entry for entry in entries if entry.text]
    if not any(
        entry.role == "assistant" or (entry.role == "user" and not is_command(entry.text))
        for entry in said
    ):
        return "only commands"
    return "" if strategy.should_process(piece.conversation, entries) else "no text"


def estimate_of(
    strategy: Strategy, conversation: Conversation, entries: Sequence[StoredEntry]
) -> Usage:
    """Return the strategy's estimate of its maximum cost; zero for a strategy without estimates."""
    estimate = getattr(strategy, "estimate", None)
    return checked(estimate(conversation, entries)) if estimate is not None else Usage()


def _encoded(result: MemoryResult) -> str:
    """Encode a result as JSON; the store keeps it until the part is done."""
    memories = [memory._asdict() for memory in result.memories]
    return json.dumps(
        {"memories": memories, "skipped": result.skipped, "usage": result.usage._asdict()}
    )


def _decoded(text: str) -> MemoryResult:
    """Decode a result, ignoring fields of memories that this version does not know."""
    value = json.loads(text)
    known = [
        {name: memory[name] for name in Memory._fields if name in memory}
        for memory in value["memories"]
    ]
    memories = [Memory(**{**memory, "replaces": tuple(memory["replaces"])}) for memory in known]
    return MemoryResult(tuple(memories), value["skipped"], Usage(**value["usage"]))


def _reason(text: str) -> str:
    return shortened(text, REASON_CHARACTERS)
