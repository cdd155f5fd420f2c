"""The real Claude Code's agent gets each update exactly once, even if prompts are interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from clients.claude import Claude, Turn, ask, resume
from fakes.fake_anthropic import FakeAnthropic
from fakes.loopback import Request

PATIENCE_SECONDS = 30


@pytest.fixture
def disturbed(claude: Claude) -> Disturbed:
    return Disturbed(claude)


class Disturbed:
    """A user's Claude Code whose prompt hook is followed by a command, once, as soon as it has printed."""

    def __init__(self, claude: Claude) -> None:
        self.claude = claude
        self._next = claude.home / "next.sh"
        interpreter = claude.home / "python"
        interpreter.write_text(
            f'#!/bin/sh\n"{sys.executable}" "$@"\n'
            f'case "$*" in *user_prompt_submit*) '
            f'[ -e "{self._next}" ] && mv "{self._next}" "{self._next}.run" && . "{self._next}.run";; esac\nexit 0\n'
        )
        interpreter.chmod(0o755)
        claude.install_hooks(interpreter=str(interpreter))

    def follow_with(self, command: str) -> None:
        """Has the next prompt's hook followed by `command`."""
        self._next.write_text(command)

    def has_followed(self) -> bool:
        return self._next.with_suffix(".sh.run").exists()

    def give_up_after(self, seconds: int) -> None:
        """Has Claude Code wait for the prompt hook so long."""
        path = self.claude.config_dir / "settings.json"
        settings = json.loads(path.read_text())
        for group in settings["hooks"]["UserPromptSubmit"]:
            group["hooks"] = [{**hook, "timeout": seconds} for hook in group["hooks"]]
        path.write_text(json.dumps(settings))

    def killed(self, prompt: str, turn: Turn, api_has_it: bool = False) -> None:
        """Send a prompt to the session of `turn` and kill the CLI meanwhile.

        It is killed by the command after the hook, or as soon as the API has the request and the
        transcript the prompt."""
        claude = self.claude
        (path,) = claude.config_dir.glob(f"projects/*/{turn.session_id}.jsonl")
        size = path.stat().st_size
        child = subprocess.Popen(
            [claude.executable, "-p", prompt, "--resume", turn.session_id],
            cwd=claude.project,
            env=claude.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if api_has_it:
            wait_for(lambda: b"hook_additional_context" in path.read_bytes()[size:])
            child.kill()
        assert child.wait(PATIENCE_SECONDS) == -9


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def times_told(request: Request | None, answer: str) -> int:
    """Return how often a request reports another session's last `answer` to the model."""
    assert request is not None
    return request.text.count(f'last: "{answer}"')


def test_what_a_prompt_was_told_is_told_again_where_the_cli_was_killed_before_it_had_it(
    disturbed: Disturbed,
) -> None:
    claude = disturbed.claude
    own = claude.run("first")
    other = claude.run("another")
    disturbed.follow_with('kill -9 "$CLAUDE_PID"\n')
    disturbed.killed("second", own)
    assert times_told(resume(claude, own, "third").request, other.answer) == 1
    assert times_told(resume(claude, own, "fourth").request, other.answer) == 1


@pytest.mark.slow
def test_what_stands_in_the_transcript_when_the_cli_is_killed_is_in_the_next_request_once(
    disturbed: Disturbed, api: FakeAnthropic
) -> None:
    claude = disturbed.claude
    own = claude.run("first")
    other = claude.run("another")
    api.replies = [{"text": "too late", "seconds": 5}]
    disturbed.killed("second", own, api_has_it=True)
    third = resume(claude, own, "third")
    assert times_told(third.request, other.answer) == 1
    assert third.told == []


@pytest.mark.slow
def test_what_a_hook_told_that_took_too_long_is_told_with_the_next_prompt(
    disturbed: Disturbed,
) -> None:
    claude = disturbed.claude
    own = claude.run("first")
    other = claude.run("another")
    disturbed.give_up_after(1)
    disturbed.follow_with("sleep 3\n")
    assert times_told(resume(claude, own, "second").request, other.answer) == 0
    assert times_told(resume(claude, own, "third").request, other.answer) == 1


@pytest.mark.slow
def test_a_prompt_that_was_killed_at_the_first_of_a_session_that_goes_by_its_id_is_told_again(
    disturbed: Disturbed,
) -> None:
    claude = disturbed.claude
    other = claude.run("another", "--session-id", claude.name_session("other"))
    own_id = claude.name_session("main")
    disturbed.follow_with('kill -9 "$CLAUDE_PID"\n')
    subprocess.run(
        [claude.executable, "-p", "first", "--session-id", own_id],
        cwd=claude.project,
        env=claude.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert disturbed.has_followed()
    assert times_told(claude.run("first", "--session-id", own_id).request, other.answer) == 1


@pytest.mark.slow
def test_neither_a_compaction_nor_a_fork_keeps_back_what_was_lost_or_repeats_what_was_not(
    disturbed: Disturbed,
) -> None:
    claude = disturbed.claude
    own = claude.run("first")
    other = resume(claude, claude.run("another"), "and one more")
    disturbed.follow_with('kill -9 "$CLAUDE_PID"\n')
    disturbed.killed("second", own)
    resume(claude, own, "/compact")
    fork = resume(claude, own, "a fork", "--fork-session")
    third = resume(claude, own, "third")
    assert times_told(third.request, other.answer) == 1
    again = resume(claude, own, "another fork", "--fork-session")
    assert fork.session_id != again.session_id
    assert times_told(again.request, other.answer) == 1
    assert again.told == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["while the hook runs", "before the answer"])
def test_what_a_prompt_was_told_that_is_cancelled_with_escape_is_told_with_the_next(
    disturbed: Disturbed, api: FakeAnthropic, moment: str
) -> None:
    claude = disturbed.claude
    with claude.terminal() as terminal:
        ask(terminal, api, "first")
        terminal.wait(lambda: "ok(1)" in "".join(terminal.text().split()), "the answer")
        other = claude.run("another")
        if moment == "while the hook runs":
            disturbed.follow_with("sleep 60\n")
            terminal.enter("second")
            terminal.wait(disturbed.has_followed, "the hook")
        else:
            api.replies = [{"text": "too late", "seconds": 3}]
            ask(terminal, api, "second")
            wait_for(lambda: api.prompts()[-1].news.count(other.answer))
        shown = terminal.text().count("second")
        terminal.press("\x1b")
        terminal.wait(
            lambda: terminal.text().count("second") > shown,
            "the prompt to come back to the input line",
        )
        terminal.press("\x15")
        ask(terminal, api, "third")
        assert times_told(api.prompts()[-1], other.answer) == 1
        answer = f"ok ({len(api.prompts())})"  # shown some time before it stands in the transcript
        wait_for(
            lambda: any(
                answer in path.read_text() for path in claude.config_dir.glob("projects/*/*.jsonl")
            )
        )
        ask(terminal, api, "fourth")
        assert times_told(api.prompts()[-1], other.answer) == 1
