"""The callback for claude-agent-sdk that reports collisions: alone, many at once, with faults."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from records import NamedHome, append, assistant, exchange, user

from session_memory.agent_sdk import file_collisions_hook, session_updates_hook

if TYPE_CHECKING:
    from claude_agent_sdk import HookCallback

AT_ONCE = 8


@pytest.fixture
def home(tmp_path: Path) -> NamedHome:
    """An agent home with sessions main and discord; main has edited notes.md since discord's last prompt."""
    home = NamedHome(tmp_path / "agent")
    main = home.session("main", *exchange("plan the garden", "Beans."))
    home.session("discord", user("hello"))
    call(
        session_updates_hook(home.root, "discord"),
        event(home, hook_event_name="UserPromptSubmit", prompt="hello"),
    )
    edit = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Write",
        "input": {"file_path": str(home.root / "notes.md")},
    }
    append(
        main,
        assistant(edit),
        user([{"tool_use_id": "toolu_1", "type": "tool_result", "content": "Done."}]),
    )
    (home.root / "notes.md").write_text("Beans.\n")
    return home


def event(home: NamedHome, **fields: Any) -> dict[str, Any]:
    """What the SDK hands to a callback as discord is about to edit notes.md."""
    return {
        "hook_event_name": "PreToolUse",
        "session_id": home.session_id("discord"),
        "transcript_path": str(home.resolve("discord")),
        "cwd": str(home.root),
        "tool_name": "Edit",
        "tool_input": {"file_path": str(home.root / "notes.md")},
        "tool_use_id": "toolu_9",
        **fields,
    }


def call(callback: HookCallback, *events: dict[str, Any]) -> list[Any]:
    """The answers to events that come at once."""
    answers: list[Any] = []

    async def answer(one: Any) -> None:
        answers.append(await callback(one, None, {"signal": None}))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for one in events:
                group.start_soon(answer, one)

    anyio.run(main)
    return answers


def test_a_callback_tells_with_an_edit_what_another_session_did_to_the_file_once(
    home: NamedHome,
) -> None:
    callback = file_collisions_hook(home.root, "discord")
    (answer,) = call(callback, event(home))
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert (
        "! notes.md: edited just now by main, before you edited it" in output["additionalContext"]
    )
    assert call(callback, event(home)) == [{}]
    assert call(callback, event(home, tool_name="Read")) == [{}]


def test_of_many_callbacks_at_once_one_tells(home: NamedHome) -> None:
    callback = file_collisions_hook(home.root, "discord")
    answers = call(
        callback, *[event(home, tool_use_id=f"toolu_{number}") for number in range(AT_ONCE)]
    )
    assert len(answers) == AT_ONCE
    assert [answer for answer in answers if answer] == [
        answer for answer in answers if "hookSpecificOutput" in answer
    ]
    assert sum(bool(answer) for answer in answers) == 1
    log = home.root / ".session-memory/state/hook.log"
    # a busy machine may keep one waiting for the lock
    said = log.read_text().splitlines() if log.exists() else []
    assert [line for line in said if "held by another process" not in line] == []


def test_what_is_not_answered_in_time_is_told_with_the_next_call(home: NamedHome) -> None:
    callback = file_collisions_hook(home.root, "discord", timeout_seconds=0.01)
    lock = home.root / ".session-memory/state/cursors/discord.calls"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = set(threading.enumerate())
        assert call(callback, event(home)) == [{}]
        waiting = set(threading.enumerate()) - before
    for thread in waiting:
        thread.join(10)
    assert call(file_collisions_hook(home.root, "discord"), event(home)) != [{}]


def test_a_callback_where_there_is_no_home_answers_nothing(home: NamedHome, tmp_path: Path) -> None:
    assert call(file_collisions_hook(tmp_path / "nowhere", "discord"), event(home)) == [{}]
    assert call(file_collisions_hook(home.root, "../main"), event(home)) == [{}]
