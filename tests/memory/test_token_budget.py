"""The budget limits models' spending to the token, whatever happens in between; and its cost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories_scene import QueueScene, Scripted
from stored import HOUR, START, talk

from session_memory.common.text.tokens import estimated_tokens, longest_within
from session_memory.history.prices import all_prices, cost
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.values import Conversation, StoredEntry
from session_memory.memory.entry_points import note_strategies
from session_memory.memory.queue import PartResult
from session_memory.memory.runner import UnknownStrategyError, _load_strategy
from session_memory.memory.strategy import BudgetError, MemoryResult, StrategyError, Usage
from session_memory.memory.token_budget import ConversationBudgetError, TokenBudget
from session_memory.sessions.settings.sections import MemorySettings, memory_settings

DAY = 24 * HOUR


class Paying(Scripted):
    """A strategy that says what it will spend, and makes calls of it."""

    def __init__(
        self, budget: TokenBudget, *calls: tuple[int, int], estimate: int | None = None
    ) -> None:
        super().__init__("paying")
        self.budget = budget
        self.calls = calls
        self.sum = sum(asked for asked, _ in calls) if estimate is None else estimate
        self.made: list[int] = []

    def estimate(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> Usage:
        return Usage(self.sum, model="claude-haiku-4-5")

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        for asked, spent in self.calls:
            with self.budget.call(Usage(asked, model="claude-haiku-4-5")) as call:
                self.made.append(asked)
                call.report(Usage(spent, model="claude-haiku-4-5"))
        return super().process(conversation, entries)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[QueueScene]:
    with closing(QueueScene(tmp_path / "store.db")) as machine:
        for number in range(4):
            machine.stored.add(*talk(f"topic {number}"), at=START + number * HOUR)
        yield machine


def budget(machine: QueueScene, day: int, conversation: int = 10**6) -> TokenBudget:
    return TokenBudget(machine.work.accounts, day, conversation, machine.now)


def spend(
    machine: QueueScene,
    *calls: tuple[int, int],
    day: int,
    conversation: int = 10**6,
    estimate: int | None = None,
    **options: Any,
) -> tuple[Paying, list[PartResult]]:
    """A strategy that made these calls for each conversation within a budget, and the outcomes."""
    allowed = budget(machine, day, conversation)
    strategy = Paying(allowed, *calls, estimate=estimate)
    return strategy, machine.run(strategy, budget=allowed, **options)


def statuses(machine: QueueScene) -> list[str]:
    return [machine.stored.status(number)[0] for number in range(1, 5)]


class TestDay:
    def test_it_is_spent_to_the_last_token_and_not_one_more(self, machine):
        strategy, [*_, last] = spend(machine, (100, 100), day=200)
        assert strategy.made == [100, 100]
        assert last.status == "stopped"
        assert last.reason == "today's budget of 200 tokens is used up: 200 spent or reserved"
        assert statuses(machine) == ["archived", "archived", "ready", "ready"]

    def test_one_token_too_few_and_the_call_is_not_made(self, machine):
        strategy, _ = spend(machine, (100, 100), day=199)
        assert strategy.made == [100]

    def test_what_was_spent_beyond_the_estimate_counts_against_the_day(self, machine):
        strategy, _ = spend(machine, (100, 201), day=300)
        assert strategy.made == [100]
        assert machine.work.accounts.of_day(machine.now()) == 201

    def test_what_was_not_spent_of_an_estimate_is_there_for_others(self, machine):
        strategy, _ = spend(machine, (100, 10), day=130)
        assert strategy.made == [100] * 4
        assert machine.work.accounts.of_day(machine.now()) == 40

    def test_the_next_day_goes_on(self, machine):
        strategy, _ = spend(machine, (100, 100), day=200)
        machine.later += DAY
        machine.run(strategy, budget=strategy.budget)
        assert statuses(machine) == ["archived"] * 4

    def test_days_end_at_midnight_utc(self, machine):
        spending = machine.work.accounts
        midnight = START // DAY * DAY
        spending.settle(spending.open("a", 1, Usage(), midnight - 1, 100), Usage(7))
        assert spending.of_day(midnight - 1) == 7
        assert spending.of_day(midnight) == 0

    def test_two_processes_share_it(self, machine):
        other = StoredQueue(machine.stored.path)
        first, second = budget(machine, day=150), TokenBudget(other.accounts, 150, 150, machine.now)
        first.open("a", 1, Usage(100))
        with pytest.raises(BudgetError, match="today's budget"):
            second.open("b", 2, Usage(51))
        second.open("b", 2, Usage(50))
        other.close()

    def test_no_budget_is_no_call(self, machine):
        assert spend(machine, (1, 1), day=0)[0].made == []

    def test_a_strategy_that_spends_nothing_needs_none(self, machine):
        machine.run(Scripted(), budget=budget(machine, day=0, conversation=0))
        assert statuses(machine) == ["archived"] * 4


class TestConversation:
    def test_one_that_needs_too_much_is_skipped_with_the_reason(self, machine):
        strategy, _ = spend(machine, (100, 100), day=1000, conversation=99)
        assert strategy.made == []
        assert machine.stored.status(1) == (
            "skipped",
            "budget: needs about 100 tokens, 99 are allowed",
        )

    def test_one_that_no_day_could_pay_for_is_skipped_too(self, machine):
        spend(machine, (100, 100), day=99)
        assert machine.stored.status(1) == (
            "skipped",
            "budget: needs about 100 tokens, 99 are allowed",
        )

    def test_a_call_beyond_the_limit_is_not_made_even_if_the_estimate_was_too_low(self, machine):
        strategy, [done, *_] = spend(
            machine, (60, 60), (40, 40), (1, 1), day=1000, conversation=100, estimate=50
        )
        assert strategy.made[:2] == [60, 40]
        assert (done.status, done.reason) == (
            "skipped",
            "budget: needs about 101 tokens, 100 are allowed",
        )
        assert machine.work.accounts.of_day(machine.now()) == 400

    def test_the_day_stops_a_strategy_between_two_calls(self, machine):
        strategy, [*_, done] = spend(machine, (100, 100), (100, 100), day=350, estimate=10)
        assert strategy.made == [100, 100, 100]
        assert done.status == "stopped"
        assert statuses(machine) == ["archived", "ready", "ready", "ready"]


class TestAccounts:
    def test_a_crash_in_the_middle_of_a_call_leaves_its_estimate_counted(self, machine):
        machine.work.take("paying", machine.now())
        dead = budget(machine, day=200)
        dead.open("paying", 1, Usage(100))
        dead.call(Usage(80)).__enter__()
        assert machine.work.accounts.of_day(machine.now()) == 100
        machine.later += HOUR
        strategy, _ = spend(machine, (100, 100), day=200)
        assert machine.work.accounts.of_day(machine.now()) == 180
        assert strategy.made == [100]

    def test_a_call_that_fails_without_a_report_counts_as_estimated(self, machine):
        allowed = budget(machine, day=1000)
        allowed.open("paying", 1, Usage())
        with pytest.raises(StrategyError), allowed.call(Usage(80)):
            raise StrategyError("cut off", is_temporary=True)
        assert machine.work.accounts.of_day(machine.now()) == 80

    def test_a_call_that_was_refused_counts_nothing(self, machine):
        allowed = budget(machine, day=1000)
        allowed.open("paying", 1, Usage())
        with allowed.call(Usage(80)) as call:
            call.report(Usage())
        assert machine.work.accounts.of_day(machine.now()) == 0

    def test_a_strategy_that_only_tells_at_the_end_is_believed(self, machine):
        machine.run(Scripted("scripted", MemoryResult(usage=Usage(1, 2, 3, "model"))), limit=1)
        assert machine.work.accounts.of_day(machine.now()) == 6

    def test_what_was_told_call_by_call_is_not_counted_again_at_the_end(self, machine):
        allowed = budget(machine, day=1000)
        strategy = Paying(allowed, (10, 10))
        strategy.script = [MemoryResult(usage=Usage(10))]
        machine.run(strategy, budget=allowed, limit=1)
        assert machine.work.accounts.of_day(machine.now()) == 10

    def test_nonsense_from_a_provider_gives_nothing_back(self, machine):
        spend(machine, (10, -500), day=1000, limit=1)
        assert machine.work.accounts.of_day(machine.now()) == 0

    def test_a_call_outside_the_queue_is_refused(self, machine):
        with (
            pytest.raises(StrategyError, match="no budget account"),
            budget(machine, day=1000).call(Usage(1)),
        ):
            pass

    def test_too_much_for_one_conversation_is_told_from_too_much_for_today(self, machine):
        with pytest.raises(ConversationBudgetError):
            budget(machine, day=1000, conversation=10).open("a", 1, Usage(11))


class TestTokens:
    def test_an_estimate_errs_towards_too_many(self):
        for text, tokens in [
            ("", 0),
            ("a", 1),
            ("abcde", 2),
            ("abcdef", 3),
            ("日本語", 5),
            ("naïve", 4),
        ]:
            assert estimated_tokens(text) == tokens

    def test_what_is_cut_to_fit_fits_and_nothing_more_would(self):
        for text in ["abcdefgh" * 9, "日本語のテキスト" * 9, "mixed 混ぜた text " * 9]:
            length = longest_within(text, 20)
            assert estimated_tokens(text[:length]) <= 20 < estimated_tokens(text[: length + 1])


class TestPrices:
    TABLE = all_prices({})

    def test_a_model_is_known_by_the_names_that_providers_give_it(self):
        for model in [
            "claude-opus-4-5",
            "claude-opus-4-5-20251101",
            "claude-opus-4-5@20251101",
            "claude-opus-4-5-20251101[1m]",
            "anthropic.claude-opus-4-5-20251101-v1:0",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-5-20251101-v1:0",
            "global.anthropic.claude-opus-4-5-v1",
            "anthropic/claude-opus-4.5",
            "anthropic/claude-opus-4.5:thinking",
            "openrouter/anthropic/claude-opus-4.5",
            "bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0",
            "vertex_ai/claude-opus-4-5@20251101",
            "bedrock/us-east-1/anthropic.claude-opus-4-5-20251101-v1:0",
            "claude-opus-4-5-latest",
        ]:
            assert cost(Usage(1_000_000, 0, 0, model), self.TABLE) == 5.0

    def test_so_are_those_of_other_makers(self):
        for model, dollars in [
            ("openai/gpt-5", 1.25),
            ("models/gemini-2.5-pro", 1.25),
            ("gpt-5-2025-08-07", 1.25),
            ("gpt-5-mini-2025-08-07", 0.25),
            ("anthropic/claude-3.5-haiku", 0.8),
        ]:
            assert cost(Usage(1_000_000, 0, 0, model), self.TABLE) == dollars

    def test_so_are_those_that_codex_uses(self):
        for model, dollars in [
            ("gpt-5.2-codex", 15.75),
            ("gpt-5.4", 17.5),
            ("gpt-5.5-2026-04-23", 35.0),
            ("gpt-6.1-sol", 12.0),
        ]:
            assert cost(Usage(1_000_000, 1_000_000, 0, model), self.TABLE) == dollars

    def test_a_model_that_only_begins_as_one_of_the_table_has_no_price(self):
        for model in [
            "gpt-5.99",
            "gpt-5.4-ultra",
            "gpt-5-ultra",
            "claude-opus-4-9",
            "claude-opus-50",
            "gpt-50",
            "openai/gpt-5:free",
            "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc",
            "gemini-2.5-pro-exp",
            "",
            "claude-",
        ]:
            assert cost(Usage(1_000_000, 0, 0, model), self.TABLE) is None

    def test_ones_own_prices_come_first_and_unknown_models_have_none(self):
        prices = all_prices({"claude-haiku-4-5": {"input": 9.0}})
        assert cost(Usage(1_000_000, 0, 0, "claude-haiku-4-5-20251001"), prices) == 9.0
        assert cost(Usage(1, model="llama"), prices) is None
        assert cost(Usage(model="llama"), prices) == 0.0

    def test_every_price_of_the_table_is_complete(self):
        for model, price in self.TABLE.items():
            assert set(price) == {"input", "output", "cached"}, model
            assert price["cached"] <= price["input"] < max(price["output"], 0.2), model


class TestStrategies:
    def test_an_unknown_one_is_an_error_that_names_the_known(self, machine):
        with pytest.raises(UnknownStrategyError) as caught:
            _load_strategy("sumary", MemorySettings(), budget(machine, day=0))
        assert "extractive" in caught.value.hint

    def test_a_package_adds_one_by_an_entry_point(self, machine, tmp_path, monkeypatch):
        package = tmp_path / "site"
        (package / "other-1.0.dist-info").mkdir(parents=True)
        (package / "other-1.0.dist-info" / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n"
        )
        entry = "[session_memory.strategies]\nother = other_strategy:Other\nwrong = other_strategy:Missing\n"
        (package / "other-1.0.dist-info" / "entry_points.txt").write_text(entry)
        (package / "other_strategy.py").write_text(
            "class Other:\n    id = 'other'\n    def __init__(self, values, budget): self.values = values\n"
        )
        monkeypatch.syspath_prepend(str(package))
        monkeypatch.setenv("SESSION_MEMORY_DIR", str(tmp_path / "ours"))
        with pytest.raises(UnknownStrategyError) as caught:
            _load_strategy("other", MemorySettings(), budget(machine, day=0))
        assert "run session-memory doctor" in caught.value.hint
        assert note_strategies(os.environ) == (["other", "wrong"], [])
        settings = memory_settings({"strategies": ["other"], "other": {"depth": 3}})
        other = _load_strategy("other", settings, budget(machine, day=0))
        assert other.values["other"] == {"depth": 3}
        with pytest.raises(UnknownStrategyError, match="cannot be loaded"):
            _load_strategy("wrong", settings, budget(machine, day=0))
