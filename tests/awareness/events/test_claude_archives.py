"""Archives in the real Claude Code: their content, the note to the agent, nothing to the summariser."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from clients.claude import Claude, ask, resume
from clients.terminal import Terminal
from fakes.fake_anthropic import FakeAnthropic

from session_memory.agent_sdk import conversation_archive_hook
from session_memory.history.archives.format import facts_in, messages_in


def archives(claude: Claude, home: Path | None = None) -> list[Path]:
    return sorted(((home or claude.home / ".session-memory") / "conversations").glob("*.md"))


def said(path: Path) -> list[str]:
    return [text for _, text, _ in messages_in(path.read_text())]


def compact(claude: Claude, api: FakeAnthropic, terminal: Terminal) -> None:
    terminal.enter("/compact")
    terminal.wait(
        lambda: any(request.kind == "compaction" for request in api.requests), "the compaction"
    )
    terminal.wait(lambda: "Compacted" in terminal.text(), "its end")


@pytest.mark.slow
def test_one_archive_holds_what_was_said_before_and_after_a_compaction_until_the_clearing(
    claude: Claude, api: FakeAnthropic
) -> None:
    tool = {"text": "I look.", "tools": [{"name": "Bash", "input": {"command": "echo hello"}}]}
    api.replies = [tool, "The garden is planned.", "The seeds are bought."]
    with claude.terminal() as terminal:
        ask(terminal, api, "plan the garden")
        terminal.wait(
            lambda: "Thegardenisplanned" in "".join(terminal.text().split()), "the answer"
        )
        compact(claude, api, terminal)
        (archive,) = archives(claude)
        assert said(archive) == ["plan the garden", "I look.", "The garden is planned."]
        ask(terminal, api, "buy the seeds")
        terminal.wait(lambda: "Theseedsarebought" in "".join(terminal.text().split()), "the answer")
        before = claude.live_session_ids()
        terminal.enter("/clear")
        terminal.wait(lambda: bool(claude.live_session_ids() - before), "a new session")
        terminal.wait(lambda: "The seeds are bought." in said(archives(claude)[0]), "the archive")
    assert archives(claude) == [archive]
    assert said(archive) == [
        "plan the garden",
        "I look.",
        "The garden is planned.",
        "",
        "buy the seeds",
        "The seeds are bought.",
    ]


def test_the_request_after_a_compaction_holds_the_pointer_and_the_summariser_s_nothing_of_ours(
    claude: Claude,
) -> None:
    turn = claude.run("plan the garden")
    resume(claude, turn, "/compact keep the roses")
    (summarising,) = [request for request in claude.api.requests if request.kind == "compaction"]
    assert "keep the roses" in summarising.text
    (archive,) = archives(claude)
    assert str(archive) not in json.dumps(summarising.body)
    assert "conversations/" not in summarising.text
    after = resume(claude, turn, "and the roses?")
    assert after.request is not None
    assert str(archive) in after.request.text


@pytest.mark.slow
def test_an_automatic_compaction_goes_through_and_keeps_the_conversation(
    claude: Claude, api: FakeAnthropic
) -> None:
    command = {"tools": [{"name": "Bash", "input": {"command": "echo hello"}}]}
    api.replies = [
        {"text": "I look.", **command},
        command,
        {**command, "usage": {"input_tokens": 985_000}},
        "All done.",
    ]
    turn = claude.run("plan the garden")
    assert [request.kind for request in api.requests].count("compaction") == 1
    assert turn.answer == "All done."
    (archive,) = archives(claude)
    assert said(archive)[:2] == ["plan the garden", "I look."]


@pytest.mark.slow
def test_a_compaction_goes_on_where_archives_cannot_be_written(claude: Claude) -> None:
    conversations = claude.home / ".session-memory" / "conversations"
    conversations.parent.mkdir(exist_ok=True)
    conversations.write_text("in the way")
    turn = claude.run("plan the garden")
    resume(claude, turn, "/compact")
    assert [request.kind for request in claude.api.requests].count("compaction") == 1
    assert resume(claude, turn, "and the roses?").answer
    faults = (claude.state_dir() / "hook.log").read_text().splitlines()
    # others are of programs that began or ended
    assert len([fault for fault in faults if "PreCompact" in fault]) == 1


@pytest.mark.slow
def test_an_agent_home_keeps_its_conversations_itself(claude: Claude) -> None:
    turn = claude.run("plan the garden", "--session-id", claude.name_session("main"))
    resume(claude, turn, "/compact")
    (archive,) = archives(claude, claude.project)
    assert said(archive)[0] == "plan the garden"


@pytest.mark.slow
def test_the_callback_for_the_sdk_keeps_the_conversation_before_a_compaction(
    claude: Claude,
) -> None:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

    session_id = claude.name_session("main")

    async def converse() -> None:
        options = ClaudeAgentOptions(
            cwd=claude.project,
            setting_sources=[],
            hooks={
                "PreCompact": [
                    HookMatcher(hooks=[conversation_archive_hook(claude.project, "main")])
                ]
            },
            extra_args={"session-id": session_id},
            env=claude.environment,
        )
        async with ClaudeSDKClient(options) as client:
            for prompt in ("plan the garden", "/compact"):
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    asyncio.run(converse())
    (archive,) = archives(claude, claude.project)
    assert said(archive)[0] == "plan the garden"
    facts = facts_in(archive.read_text()[-4096:])
    assert facts is not None
    assert facts["session"] == session_id
