"""The tools after one install in the real clients: offered to the model, and a call comes back with a result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from install_machine import REPOSITORY, Machine, copy_repository
from skills_scene import link_packages

from session_memory.runtimes import runtime
from session_memory.tools import TOOLS

# The names by which each offers a tool of ours to its model.
NAMES = {
    "codex": "mcp__session_memory__{}",
    "copilot": "session-memory-{}",
    "gemini": "mcp_session-memory_{}",
    "opencode": "session-memory_{}",
    "qwen-code": "mcp__session-memory__{}",
}
FACT = "We avoid Redis here because it is serverless."
# By tool: its arguments, and what its answer has.
CALLS: dict[str, tuple[dict[str, str], str]] = {
    "list_sessions": ({}, "Redis"),
    "read_session": ({"name": "other"}, "other"),
    "search_sessions": ({"query": "Redis"}, "serverless"),
    "seen_error": ({"error": "KeyError: 'cart'"}, "KeyError"),
    "why": ({"what": "README.md:1"}, "README.md"),
    "remember": ({"kind": "decision", "text": FACT, "quote": FACT}, "Remembered"),
    "forget": ({"id": "0000"}, "0000"),
    "clear_session": ({"name": "garden"}, "garden"),
    "resume_session": ({"id": "0000"}, "0000"),
}
REFUSALS = ("unknown argument", "is no argument", "takes no argument", "Invalid arguments", "failed (")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_remembers_and_another_session_finds_it(tmp_path: Path, npm_place: NpmPlace, name: str) -> None:
    client = CLIENTS[name]
    with client.model() as model:
        user = User(name, client.program(tmp_path, npm_place(client.package), model), model)
        for folder in (".codex", ".qwen"):
            (tmp_path / "home" / folder).mkdir(exist_ok=True)
        machine = Machine(tmp_path / "home", copy_repository(tmp_path / "copy")).has_environment().has_program()
        link_packages(machine.program_dir / "env")
        before = settings(machine.home)
        machine.installed("--runtime", name)

        user.ask(FACT)
        assert machine.run(str(machine.program_dir / "bin/session-memory"), "ingest").returncode == 0
        order(user, "Keep that.", "remember", {"kind": "decision", "text": FACT, "quote": FACT})
        user.ask("Keep that.")
        assert "Remembered" in last_result(user), str(user.model.requests[-1].body.get("input"))[-1500:]
        user.has_begun = False
        order(user, "Which database?", "search_sessions", {"query": "Redis"})
        user.ask("Which database?")
        assert "serverless" in last_result(user), str(user.model.requests[-1].body.get("input"))[-1500:]

        assert machine.install("--uninstall").returncode == 0
    assert {path: text for path, text in settings(machine.home).items() if path in before} == before
    assert not [path for path, text in settings(machine.home).items() if b"session-memory" in text]


def order(user: User, prompt: str, tool: str, arguments: dict[str, str]) -> None:
    """Lets the model call a tool of ours with a prompt."""
    called = NAMES[user.name].format(tool)
    if user.name == "codex":
        script = f"text(JSON.stringify(await tools.{called}({json.dumps(arguments)})))"
        user.orders(prompt, ("exec", {"script": script}))
    else:
        user.orders(prompt, (called, arguments))


def last_result(user: User) -> str:
    """What the model was sent last that is not for a title, behind the call."""
    with user.model.lock:
        return json.dumps(user.model.requests[-1].body)


def settings(home: Path) -> dict[str, bytes]:
    """The files that an install of any of them may change."""
    names = (
        ".codex/config.toml", ".copilot/mcp-config.json", ".gemini/settings.json", ".qwen/settings.json",
        ".config/opencode/opencode.json",
    )  # fmt: skip
    return {name: (home / name).read_bytes() for name in names if os.path.exists(home / name)}


def test_codex_gets_no_longer_limit_than_it_allows_at_the_end_of_a_session() -> None:
    """It prints a warning at each start otherwise."""
    declared = (REPOSITORY / "hooks" / "hooks.json").read_text()
    hooks = runtime("codex").install.wanted_hooks(declared, "python3", "/app")
    assert [hook.entry["timeout"] for hook in hooks if hook.event == "SessionEnd"] == [3]


def test_each_tool_has_a_call() -> None:
    assert set(CALLS) == {tool.name for tool in TOOLS}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_tool_answers_through_a_real_client(tmp_path: Path, npm_place: NpmPlace, name: str) -> None:
    client = CLIENTS[name]
    with client.model() as model:
        user = User(name, client.program(tmp_path, npm_place(client.package), model), model)
        for folder in (".codex", ".qwen"):
            (tmp_path / "home" / folder).mkdir(exist_ok=True)
        machine = Machine(tmp_path / "home", copy_repository(tmp_path / "copy")).has_environment().has_program()
        link_packages(machine.program_dir / "env")
        machine.installed("--runtime", name)
        user.ask(FACT)
        assert machine.run(str(machine.program_dir / "bin/session-memory"), "ingest").returncode == 0
        answers = {}
        for tool, (arguments, _) in CALLS.items():
            prompt = f"Call {tool}."
            order(user, prompt, tool, arguments)
            user.ask(prompt)
            answers[tool] = answer_to(last_result(user), prompt)
        wrong = {
            tool: answer[-600:]
            for tool, answer in answers.items()
            if CALLS[tool][1] not in answer or any(refusal in answer for refusal in REFUSALS)
        }
        assert wrong == {}


def answer_to(request: str, prompt: str) -> str:
    """The part of a request behind the last mention of a prompt: the call and its result."""
    return request[request.rindex(json.dumps(prompt)[1:-1]) :]
