"""Ctrl-C at any moment ends a command, and never by a crash (SIGSEGV)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_process import ROOT
from records import exchange
from share import some
from store_scene import COMMAND, MONDAY, WAIT_SECONDS, StoreUser

# Interrupts whatever orjson imports, from the first module on.
INTERRUPTED_IMPORT = """
import os, signal, sys
begun = []
def interrupt(event, values):
    if event == "import" and begun:
        os.kill(os.getpid(), signal.SIGINT)
    elif event == "import" and values[0] == "orjson.orjson":
        begun.append(True)
sys.addaudithook(interrupt)
try:
    import session_memory.common.system.quick_json
except KeyboardInterrupt:
    print("interrupted")
"""
# Ends by an interrupt that is to be raised once more. An exec takes handlers away and keeps the
# timer, as the end of Python does.
INTERRUPTED_TWICE = """
import os, signal
from session_memory.common.system.terminal import exit_code
def command():
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    raise KeyboardInterrupt
assert exit_code(command) == 130
os.execvp("sleep", ["sleep", "0.4"])
"""
COMMANDS = (
    ["search", "harbour"],
    ["ingest", "--reimport"],
    ["conversations"],
    ["search", '"plan 5 of the harbour"'],
)


@pytest.fixture(autouse=True)
def is_interruptible() -> Iterator[None]:
    """Programs started here obey SIGINT, which a shell has its jobs in the background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_orjson_is_imported_waits_until_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=WAIT_SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_the_second_alarm_of_an_interrupt_does_not_kill_a_command_that_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_TWICE], capture_output=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr


@pytest.mark.timeout(900)
def test_commands_that_are_interrupted_end_and_the_store_stays_whole(tmp_path: Path) -> None:
    user = StoreUser(tmp_path)
    for number in range(20):
        said = [
            one
            for plan in range(20)
            for one in exchange(f"plan {plan} of the harbour", "Fine.", at=MONDAY + plan)
        ]
        user.session(f"s{number}", *said)
    assert user.run("ingest").returncode == 0
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(some(40, 8)):
        words = chance.choice(COMMANDS)
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=user.home,
            env=user.environment,
        )
        time.sleep(chance.uniform(0.05, 0.8))
        for pause in chance.choice(((0.0,), (0.0, 0.01))):  # some press it twice
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_SECONDS)
        # 1 and -SIGINT: Python had not started the command yet.
        assert process.returncode in (0, 1, 130, -signal.SIGINT), (seed, words, errors)
        assert process.returncode != 1 or b"KeyboardInterrupt" in errors, (seed, words, errors)
    assert user.run("doctor", "store").returncode == 0
    assert user.run("ingest").returncode == 0  # reads what an interrupted one has only forgotten
    assert len(user.stored()) == 20 * 20 * 2
