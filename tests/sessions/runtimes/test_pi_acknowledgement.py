"""What reaches the agent in the real Pi, whatever becomes of a prompt: the next request holds what
it had not seen, and not what it had."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from clients.pi import MODEL, Pi, Turn
from fakes.loopback import text_of

PATIENCE_SECONDS = 30


@pytest.fixture
def disturbed(pi: Pi) -> Pi:
    """A user's Pi whose prompt hook is followed by the commands in `next.sh`, once, as soon as it
    has printed."""
    python = pi.home / "python"
    python.write_text(
        f'#!/bin/sh\n"{sys.executable}" "$@"\n'
        f'case "$*" in *pi_prompt*) '
        f'[ -e "{pi.home}/next.sh" ] && mv "{pi.home}/next.sh" "{pi.home}/now.sh" && . "{pi.home}/now.sh";; esac\nexit 0\n'
    )
    python.chmod(0o755)
    pi.environment["SESSION_MEMORY_PYTHON"] = str(python)
    return pi


@pytest.fixture
def own(disturbed: Pi) -> Path:
    """A session, beside which another one has said something that it has not been told."""
    disturbed.run("my own")
    disturbed.run("from elsewhere")
    return disturbed.sessions()[0]


def times_told(turn: Turn) -> int:
    """How often all that the model is given tells of the other session: its own replies repeat
    that."""
    assert turn.request is not None
    given = [
        text_of(message["content"])
        for message in turn.request.messages
        if message["role"] == "user"
    ]
    return "\n".join(given).count('- "from elsewhere" (')


def test_what_a_prompt_was_told_is_told_again_where_pi_was_killed_before_it_had_it(
    disturbed: Pi, own: Path
) -> None:
    (disturbed.home / "next.sh").write_text("kill -9 $PPID\n")
    child = subprocess.run(
        [*disturbed.command, "--model", MODEL, "--session", str(own), "-p", "second"],
        cwd=disturbed.project,
        env=disturbed.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert child.returncode == -9
    assert times_told(disturbed.run("third", "--session", str(own))) == 1
    assert times_told(disturbed.run("fourth", "--session", str(own))) == 1


def test_what_a_hook_told_that_took_too_long_is_told_with_the_next_prompt(
    disturbed: Pi, own: Path
) -> None:
    (disturbed.home / "next.sh").write_text("sleep 4\n")
    assert times_told(disturbed.run("second", "--session", str(own))) == 0
    assert times_told(disturbed.run("third", "--session", str(own))) == 1


def test_what_a_prompt_was_told_that_is_aborted_stays_in_the_conversation_and_is_not_told_again(
    disturbed: Pi, own: Path
) -> None:
    with disturbed.rpc("--session", str(own)) as rpc:
        before = len(disturbed.model.requests)
        rpc.send("prompt", message="second SLOW")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(disturbed.model.requests) == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        rpc.send("abort")
        third = rpc.prompt("third")
    assert times_told(third) == 1
