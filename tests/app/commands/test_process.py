"""`session-memory process` as a separate process, with the strategy that is always configured."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from records import exchange
from store_scene import COMMAND, StoreUser

CONVERSATIONS = 12


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user with finished conversations, one of them short."""
    machine = StoreUser(tmp_path)
    for number in range(CONVERSATIONS):
        records = [
            record
            for turn in range(3)
            for record in exchange(f"Question {turn} of {number}?", "So.", at=1e9)
        ]
        machine.session(f"session-{number}", *records)
    machine.session("short", *exchange("hi", "hello", at=1e9))
    return machine


def as_json(machine: StoreUser, *arguments: str) -> dict:
    return json.loads(machine.run("process", "--json", *arguments).stdout)


def test_it_takes_in_what_is_new_and_archives_what_is_finished(machine):
    done = as_json(machine)
    assert (done["archived"], done["skipped"], done["waiting"]) == (CONVERSATIONS, 0, 0)
    assert done["memories"] == CONVERSATIONS
    episodes = machine.home / ".session-memory" / "memories" / "episodes"
    # not what a kill left beside a page
    pages = "".join(path.read_text() for path in episodes.glob("*.md"))
    assert pages.count("Asked: Question 0 of ") == CONVERSATIONS
    said = machine.run("process").stdout
    assert said.startswith("Nothing waits: a conversation is ready after an hour of silence")
    assert said.endswith(": session-memory process --archived --dry-run\n")


def test_it_prints_a_line_for_each_and_what_it_was_altogether(machine):
    done = machine.run("process", "--limit", "2")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) == 4
    assert lines[0].startswith("  archived ")
    assert lines[0].endswith("(extractive: 1 memory)")
    assert lines[-1] == "2 archived; 2 memories."


def test_a_dry_run_does_nothing_but_say_what_would_be_done(machine):
    planned = as_json(machine, "--dry-run")
    assert len(planned["planned"]) == CONVERSATIONS
    assert (planned["tokens"], planned["tokens_today"], planned["tokens_per_day"]) == (
        0,
        0,
        500_000,
    )
    shown = machine.run("process", "--dry-run").stdout
    assert f"extractive: {CONVERSATIONS} conversations, no tokens" in shown
    assert not (machine.home / ".session-memory" / "memories" / "episodes").exists()
    assert len(as_json(machine, "--dry-run", "--limit", "3")["planned"]) == 3


def test_a_strategy_of_a_package_runs_once_doctor_has_found_it_and_a_dry_run_tells_its_cost(
    machine,
):
    site = machine.home / "site"
    (site / "paid-1.0.dist-info").mkdir(parents=True)
    (site / "paid-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: paid\nVersion: 1.0\n"
    )
    (site / "paid-1.0.dist-info" / "entry_points.txt").write_text(
        "[session_memory.strategies]\npaid = paid:Paid\n"
    )
    (site / "paid.py").write_text(
        "from session_memory.memory.strategy import MemoryResult, Usage\n"
        "class Paid:\n"
        "    id = 'paid'\n"
        "    def __init__(self, values, budget): self.budget = budget\n"
        "    def should_process(self, conversation, entries): return True\n"
        "    def estimate(self, conversation, entries): return Usage(90_000, 10_000, 0, "
        "'my-model-1')\n"
        "    def process(self, conversation, entries):\n"
        "        import os\n"
        "        assert os.environ['SESSION_MEMORY_GUARD']\n"
        "        return MemoryResult(usage=Usage(80_000, 5_000, 0, 'my-model-1'))\n"
    )
    price = "my-model-1: {input: 10, output: 100}"
    machine.config(
        f"memories: {{strategies: [paid], tokens_per_day: 250000, prices: {{{price}}}}}\n"
    )

    path = f"{machine.environment['PYTHONPATH']}:{site}"

    def run(*arguments: str) -> str:
        return machine.run_process("process", *arguments, PYTHONPATH=path).stdout

    refused = machine.run_process("process", "--strategy", "paid", PYTHONPATH=path)
    assert "if another package has it, first run session-memory doctor" in refused.stderr
    checked = machine.run_process("doctor", "hooks", PYTHONPATH=path).stdout
    assert "of other packages: paid; new: paid" in " ".join(checked.split())
    assert "new: paid" not in machine.run_process("doctor", "hooks", PYTHONPATH=path).stdout
    assert f"paid: {CONVERSATIONS} conversations, at most 1,200,000 tokens, $22.80" in run(
        "--dry-run"
    )
    done = json.loads(run("--json"))
    assert done["archived"] == 2  # a third would need 100,000, of which 80,000 are left
    assert done["done"][-1]["status"] == "stopped"
    assert done["tokens_today"] == 170_000
    assert run("--dry-run").endswith("Tokens today: 170,000 of 250,000.\n")


def test_what_was_skipped_is_taken_up_again_when_that_is_asked_for(machine):
    commands = [
        record for number in range(6) for record in exchange("/status", "", at=1e9 + number)
    ]
    machine.session("commands", *commands)
    assert as_json(machine)["skipped"] == 1
    assert as_json(machine)["done"] == []
    [planned] = as_json(machine, "--skipped", "--dry-run")["planned"]
    assert planned["skipped"] == "only commands"
    [again] = as_json(machine, "--skipped")["done"]
    assert (again["status"], again["reason"]) == ("skipped", "only commands")


def test_a_conversation_that_failed_is_named_with_the_time_of_its_retry(machine):
    in_the_way = machine.home / ".session-memory" / "memories"
    machine.run("process", "--dry-run")
    in_the_way.write_text("")
    failed = machine.run("process", "--limit", "1")
    assert (failed.returncode, "1 waiting; 0 memories." in failed.stdout) == (1, True)
    in_the_way.unlink()
    machine.run("process")
    done = machine.run("process")
    assert done.returncode == 1
    assert re.fullmatch(
        r"extractive: 1 conversation waits for a retry, the next at \d{4}-\d\d-\d\d \d\d:\d\d: .*directory.*\n",
        done.stdout,
    ), done.stdout
    [retry] = as_json(machine)["retries"]
    assert (retry["strategy"], retry["at"][-1]) == ("extractive", "Z")
    assert retry["conversation"]["title"].startswith("Question 0 of ")
    assert machine.result("status")["problems"] == [done.stdout.strip()]


def test_an_unknown_strategy_is_told_and_the_others_go_on(machine):
    machine.config("memories: {strategies: [imagined, extractive]}\n")
    done = machine.run("process", "--limit", "1")
    assert done.returncode == 1
    assert "unknown strategy 'imagined'" in done.stderr
    assert "1 memory" in done.stdout
    assert "unknown strategy 'other'" in machine.run("process", "--strategy", "other").stderr


def test_a_mistake_in_the_configuration_is_said_and_costs_that_key_alone(machine):
    machine.config("memories: {tokens: 3}\n")
    done = machine.run("process")
    assert done.returncode == 0
    assert "config.yaml:1: unknown key memories.tokens" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_at_any_moment_and_started_again_it_makes_each_memory_once(machine):
    machine.run("process", "--dry-run")  # the store is there
    for moment in random.Random(3).sample(range(20, 100), 4):
        command = [sys.executable, "-c", COMMAND, "process", "--json"]
        started = subprocess.Popen(
            command, cwd=machine.home, env=machine.environment, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while (
            started.poll() is None
            and time.monotonic() < deadline
            and not _is_at_work(machine.home, moment)
        ):
            time.sleep(0.002)
        started.send_signal(signal.SIGKILL)
        started.wait()
    while as_json(machine)["done"]:
        pass
    episodes = machine.home / ".session-memory" / "memories" / "episodes"
    # not what a kill left beside a page
    pages = "".join(path.read_text() for path in episodes.glob("*.md"))
    for number in range(CONVERSATIONS):
        assert pages.count(f"Asked: Question 0 of {number}? (") == 1


def _is_at_work(home: Path, percent: int) -> bool:
    """Whether about so much of the work is done."""
    episodes = home / ".session-memory" / "memories" / "episodes"
    try:
        done = sum(path.read_text().count("Asked: ") for path in episodes.iterdir())
    except OSError:
        return False
    return done * 100 >= CONVERSATIONS * percent
