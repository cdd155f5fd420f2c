"""The callback for claude-agent-sdk: with the real SDK and CLI, and alone with deadlines and faults."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from clients.claude import REPOSITORY, Claude, activity
from memories_scene import EXPIRY, MemoryDirectory
from records import NamedHome, append, exchange, new_id, show_told

from session_memory.agent_sdk import conversation_archive_hook, session_updates_hook, start_upkeep
from session_memory.awareness.activity import session_state as cursors
from session_memory.history.archives import at_end

if TYPE_CHECKING:
    from claude_agent_sdk import HookCallback

PATIENCE_SECONDS = 10.0  # longer than anything here should take


class Host:
    """A program that serves the named sessions of an agent home through the SDK, with our callback
    as the only hook."""

    def __init__(self, claude: Claude) -> None:
        self.claude = claude
        self.ids: dict[str, str] = {}
        self.stderr: list[str] = []

    def ask(
        self, session: str, *prompts: str, fork_of: str = "", callback: HookCallback | None = None
    ) -> list[list[str]]:
        """Send prompts to a session, new, resumed or forked; return each prompt's text about the others."""
        return asyncio.run(self._ask(session, prompts, fork_of, callback))

    async def _ask(
        self, session: str, prompts: tuple[str, ...], fork_of: str, callback: HookCallback | None
    ) -> list[list[str]]:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

        known = self.ids.get(session)
        self.ids[session] = known or self.claude.name_session(session)
        hook = callback or session_updates_hook(self.claude.project, session, is_fork=bool(fork_of))
        options = ClaudeAgentOptions(
            cwd=self.claude.project,
            setting_sources=[],
            hooks={"UserPromptSubmit": [HookMatcher(hooks=[hook])]},
            resume=known or self.ids.get(fork_of),
            fork_session=bool(fork_of),
            extra_args={} if known else {"session-id": self.ids[session]},
            stderr=self.stderr.append,
        )
        told = []
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                before = len(self.claude.api.prompts())
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass
                told.append(activity(self.claude.api.prompts()[before]))
        return told


@pytest.fixture
def host(claude: Claude, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose environment, which the SDK passes on to the CLI, is that of the temporary machine alone."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in claude.environment.items():
        monkeypatch.setenv(name, value)
    host = Host(claude)
    yield host
    assert host.stderr == []


def test_a_prompt_through_the_sdk_is_told_once_what_the_other_sessions_did(host: Host) -> None:
    assert host.ask("main", "plan the garden") == [[]]
    assert host.ask("discord", "who is there?", "anybody?") == [
        ['- main (just now, 2 messages): "plan the garden"; last: "ok (1)"'],
        [],
    ]
    assert [
        [line.partition(" (")[0] for line in told]
        for told in host.ask("main", "and water it", "done?")
    ] == [
        ["- discord"],
        [],
    ]


@pytest.mark.slow
def test_a_prompt_through_the_sdk_is_told_once_what_is_remembered_about_it(host: Host) -> None:
    with closing(MemoryDirectory(Path(host.claude.project))) as memories:
        memories.keep(EXPIRY)
    prompt = "Why does the login JWT have such a short expiry?"
    host.ask("main", "plan the garden", prompt, prompt)
    told = [request.news for request in host.claude.api.prompts()]
    assert ["3600 seconds" in news for news in told] == [False, True, False]


@pytest.mark.slow
def test_nothing_is_repeated_after_a_compaction_through_the_sdk(host: Host) -> None:
    host.ask("main", "plan the garden")
    host.ask("discord", "who is there?")
    assert len(host.ask("main", "and water it")[0]) == 1
    host.ask("discord", "one more")
    host.claude.run("/compact", "--resume", host.ids["discord"])
    assert host.claude.api.requests[-1].kind == "compaction"
    (told,) = host.ask("main", "what now?")
    assert [line.partition('"')[2] for line in told] == ['one more"; last: "ok (4)"']
    assert host.ask("discord", "and now?", "and then?")[1] == []
    assert [len(told) for told in host.ask("main", "good night", "sleep well")] == [1, 0]


@pytest.mark.slow
def test_a_fork_through_the_sdk_hears_only_of_what_comes_after_it(host: Host) -> None:
    host.ask("main", "plan the garden")
    host.ask("discord", "who is there?")
    assert host.ask("branch", "what if?", "what else?", fork_of="discord") == [[], []]
    host.ask("main", "and water it")
    assert host.ask("branch", "what now?") == [
        ['- main (just now, 2 messages): "and water it"; last: "ok (5)"']
    ]
    (told,) = host.ask("discord", "my branch?")
    assert [line.partition(" (")[0] for line in told] == ["- branch", "- main"]
    assert "who is there?" not in "".join(told)


@pytest.mark.slow
def test_a_copy_that_the_sdk_made_repeats_nothing_and_is_not_repeated(host: Host) -> None:
    from claude_agent_sdk import fork_session

    host.ask("main", "plan the garden")
    host.ask("discord", "who is there?")
    host.ask("main", "and water it")
    host.ids["copy"] = fork_session(
        host.ids["discord"], directory=str(host.claude.project)
    ).session_id
    host.claude.name_session("copy", host.ids["copy"])
    assert host.ask("main", "what now?") == [[]]
    assert host.ask("copy", "I am the copy") == [[]]
    assert host.ask("main", "and now?") == [
        ['- copy (just now, 2 messages): "I am the copy"; last: "ok (5)"']
    ]
    (told,) = host.ask("copy", "and I?")
    assert [line.partition(" (")[2] for line in told] == ['just now, 2 messages): last: "ok (6)"']


@pytest.mark.slow
def test_a_prompt_through_the_sdk_goes_on_where_there_is_no_home(
    host: Host, tmp_path: Path
) -> None:
    callback = session_updates_hook(tmp_path / "nowhere", "discord")
    assert host.ask("discord", "is anybody there?", callback=callback) == [[]]
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture
def home(tmp_path: Path) -> NamedHome:
    """An agent home with sessions main and discord, of which main has something to tell."""
    home = NamedHome(tmp_path / "agent")
    home.session("main", *exchange("plan the garden", "Beans."))
    home.session("discord")
    return home


def prompt(home: NamedHome, text: str = "hello", prompt_id: str = "") -> dict[str, Any]:
    """Return the SDK's input for a prompt to discord, by default a new one each time."""
    return {
        "prompt_id": prompt_id or new_id(),
        "hook_event_name": "UserPromptSubmit",
        "session_id": home.session_id("discord"),
        "transcript_path": str(home.resolve("discord")),
        "cwd": str(home.root),
        "prompt": text,
    }


def call(callback: HookCallback, event: Any, backend: str = "asyncio") -> Any:
    async def main() -> Any:
        return await callback(event, None, {"signal": None})

    return anyio.run(main, backend=backend)


def told(answer: Any) -> str:
    """The text in an answer that adds one."""
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    return str(answer["hookSpecificOutput"]["additionalContext"])


def log(home: NamedHome) -> list[str]:
    return (home.root / ".session-memory/state/hook.log").read_text().splitlines()


@contextmanager
def locked_cursors(home: NamedHome) -> Iterator[None]:
    """Holds the lock of discord's cursors, as a look of another process would."""
    path = home.root / ".session-memory/state/cursors/discord.json.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_callback_tells_what_is_new_and_nothing_the_next_time(home: NamedHome) -> None:
    callback = session_updates_hook(str(home.root), "discord")
    answer = call(callback, prompt(home))
    assert '- main (just now, 2 messages): "plan the garden"' in told(answer)
    show_told(home.resolve("discord"), json.dumps(answer).encode())
    assert call(callback, prompt(home)) == {}


def test_what_the_runtime_dropped_of_a_callback_s_answer_is_told_again(home: NamedHome) -> None:
    callback = session_updates_hook(str(home.root), "discord")
    assert "plan the garden" in told(call(callback, prompt(home)))
    assert "plan the garden" in told(call(callback, prompt(home)))


def test_a_callback_runs_on_trio_as_the_sdk_does(home: NamedHome) -> None:
    pytest.importorskip("trio", reason="trio, the SDK's other event loop, is not installed")
    assert "plan the garden" in told(
        call(session_updates_hook(home.root, "discord"), prompt(home), "trio")
    )


def test_a_program_that_ends_starts_the_upkeep_of_its_home(home: NamedHome) -> None:
    home.session("email", *exchange("plant a tree", "Planted."))
    start_upkeep(home.root)
    state = home.root / ".session-memory/state/upkeep.json"
    deadline = time.monotonic() + 60
    while not (state.exists() and json.loads(state.read_text())["runs"][-1]["ended"]):
        assert time.monotonic() < deadline, "no upkeep"
        time.sleep(0.05)
    assert json.loads(state.read_text())["runs"][0]["files"] >= 1


def test_a_callback_that_is_not_ready_in_time_tells_nothing_and_moves_no_cursor(
    home: NamedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "LOCK_WAIT_SECONDS", PATIENCE_SECONDS)
    callback = session_updates_hook(home.root, "discord", timeout_seconds=0.05)
    with locked_cursors(home):
        assert call(callback, prompt(home)) == {}
    wait_for_line(home, "the answer was not ready in time")
    assert "plan the garden" in told(call(session_updates_hook(home.root, "discord"), prompt(home)))


def test_a_callback_that_is_cancelled_moves_no_cursor(
    home: NamedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "LOCK_WAIT_SECONDS", PATIENCE_SECONDS)
    callback: Any = session_updates_hook(home.root, "discord")

    async def cancelled() -> None:
        task = asyncio.create_task(callback(prompt(home), None, {"signal": None}))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with locked_cursors(home):
        asyncio.run(cancelled())
    wait_for_line(home, "the answer was not ready in time")
    assert "plan the garden" in told(call(callback, prompt(home)))


def wait_for_line(home: NamedHome, part: str) -> None:
    """Waits until the thread of a callback that gave up has noticed, and said so in the log."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    path = home.root / ".session-memory/state/hook.log"
    while not (path.exists() and part in path.read_text()):
        assert time.monotonic() < deadline, f"the log does not say {part!r}"
        time.sleep(0.01)


def test_a_callback_whose_cursors_are_locked_says_so_in_the_log(home: NamedHome) -> None:
    with locked_cursors(home):
        assert call(session_updates_hook(home.root, "discord"), prompt(home)) == {}
    (line,) = log(home)
    assert "discord.json.lock: held by another process" in line


def test_a_callback_for_an_impossible_name_answers_nothing(home: NamedHome) -> None:
    for name in ("../main", "", "a/b"):
        assert call(session_updates_hook(home.root, name), prompt(home)) == {}
        assert "not the name of a session" in log(home)[-1]


def test_a_callback_in_a_directory_without_named_sessions_answers_nothing(home: NamedHome) -> None:
    inside = home.root / "inside"
    inside.mkdir()
    assert call(session_updates_hook(inside, "discord"), prompt(home)) == {}
    assert (
        f"{inside} has no named sessions" in (inside / ".session-memory/state/hook.log").read_text()
    )


@pytest.mark.parametrize("event", [{}, {"prompt": None, "transcript_path": 7}, None, "text"])
def test_a_callback_answers_nothing_to_an_event_that_it_does_not_know(
    home: NamedHome, event: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(session_updates_hook(home.root, "discord"), event) == {}
    assert len(log(home)) == 1
    assert capfd.readouterr() == ("", "")


def test_a_callback_tells_nothing_to_a_task_notification(home: NamedHome) -> None:
    callback = session_updates_hook(home.root, "discord")
    assert call(callback, prompt(home, "<task-notification>\n<status>completed</status>")) == {}
    assert "plan the garden" in told(call(callback, prompt(home)))


def test_a_callback_archives_the_conversation_before_a_compaction(
    home: NamedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_end, "QUIET_SECONDS", 0.02)
    append(home.resolve("discord"), *exchange("plan the pond", "Deep."))
    event = {**prompt(home), "hook_event_name": "PreCompact"}
    assert call(conversation_archive_hook(home.root, "discord"), event) == {}
    (path,) = (home.root / "conversations").glob("*.md")
    assert "plan the pond" in path.read_text()


def test_a_callback_sets_a_corrupt_cursor_file_aside(home: NamedHome) -> None:
    callback = session_updates_hook(home.root, "discord")
    cursor_file = home.root / ".session-memory/state/cursors/discord.json"
    cursor_file.parent.mkdir(parents=True)
    cursor_file.write_text('{"discord": {"main": 7}}')
    assert call(callback, prompt(home)) == {}
    append(home.resolve("main"), *exchange("and water it", "Done."))
    assert '2 messages): "and water it"' in told(call(callback, prompt(home)))


@pytest.mark.parametrize(
    "is_first", [True, False], ids=["at the first prompt", "with a transcript"]
)
def test_two_callbacks_at_once_tell_it_once(home: NamedHome, is_first: bool) -> None:
    append(home.resolve("discord"), *exchange("hello", "hi"))
    if is_first:
        home.resolve("discord").unlink()
    callback: Any = session_updates_hook(home.root, "discord")
    event = prompt(home)

    async def both() -> list[Any]:
        calls = [callback(event, None, {"signal": None}) for _ in range(2)]
        return list(await asyncio.gather(*calls))

    answers = asyncio.run(both())
    assert sorted(len(answer) for answer in answers) == [0, 1]


def test_the_module_of_the_callback_does_not_import_the_sdk() -> None:
    program = "import sys, json, session_memory.agent_sdk; print(json.dumps(sorted(sys.modules)))"
    completed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        env={"HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = json.loads(completed.stdout)
    assert "session_memory.agent_sdk" in modules
    assert not {"claude_agent_sdk", "mcp", "anyio", "asyncio"}.intersection(modules)
