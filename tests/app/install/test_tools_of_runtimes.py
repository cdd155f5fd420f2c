"""The tools after one install, in the real clients: the model gets them, and a call has a result."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clients.claude import Claude
from clients.everyone import CLIENTS, User, results_in
from clients.npm import NpmPlace
from install_machine import REPOSITORY, Machine, copy_repository
from skills_scene import link_packages

from session_memory.app.tools.definitions import TOOLS
from session_memory.sessions.runtimes.table import all_runtimes, runtime

INSTALLS = {one.name: one.install for one in all_runtimes()}

# The names by which each offers a tool of ours to its model.
NAMES = {
    "claude-code": "mcp__session-memory__{}",
    "cline": "session-memory__{}",
    "codex": "mcp__session_memory__{}",
    "copilot": "session-memory-{}",
    "droid": "session-memory___{}",
    "gemini": "mcp_session-memory_{}",
    "kilo": "session-memory_{}",
    "kimi": "mcp__session-memory__{}",
    "omp": "mcp__session_memory_{}",
    "openclaw": "session-memory__{}",
    "opencode": "session-memory_{}",
    "pi": "mcp__session_memory__{}",
    "qwen-code": "mcp__session-memory__{}",
}
FACT = "We avoid Redis here because it is serverless."
# By tool: its arguments, and what its answer has.
CALLS: dict[str, tuple[dict[str, str], str]] = {
    "list_sessions": ({}, FACT),
    "read_session": ({"name": "We avoid"}, FACT),
    "search_sessions": ({"query": "Redis"}, FACT),
    "seen_error": ({"error": "KeyError: 'cart'"}, "No tool has failed with this error"),
    "why": ({"what": "README.md:1"}, "README.md:1: it is not in a git worktree"),
    "remember": ({"kind": "decision", "text": FACT, "quote": FACT}, "Remembered as decision"),
    "forget": ({"id": "0000"}, "no memory has the id"),
    "clear_session": ({"name": "garden"}, "Nothing has changed yet"),
    "resume_session": ({"id": "0000"}, "no session is called"),
}
# OpenClaw makes a repository of the directory that it works in.
OTHER_ANSWERS = {("openclaw", "why"): "README.md:1: neither a file nor a commit here"}
REFUSALS = (
    "unknown argument",
    "is no argument",
    "takes no argument",
    "Invalid arguments",
    "failed (",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_remembers_and_another_session_finds_it(
    tmp_path: Path, npm_place: NpmPlace, name: str
) -> None:
    has_bom = INSTALLS[name].HAS_BOM
    with user_with_tools(tmp_path, npm_place, name, has_bom=has_bom) as (user, machine, before):
        assert CALLS["remember"][1] in answer_of(user, "remember")
        user.has_begun = False
        assert FACT in answer_of(user, "search_sessions")

        assert machine.install("--uninstall").returncode == 0
    assert {path: text for path, text in settings(machine.home).items() if path in before} == before
    assert not [path for path, text in settings(machine.home).items() if b"session-memory" in text]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_tool_answers_through_a_real_client(
    tmp_path: Path, npm_place: NpmPlace, name: str
) -> None:
    with user_with_tools(tmp_path, npm_place, name) as (user, _, _):
        answers = {tool: answer_of(user, tool) for tool in CALLS}
    wrong = {
        tool: answer[-600:]
        for tool, answer in answers.items()
        if OTHER_ANSWERS.get((name, tool), CALLS[tool][1]) not in answer
        or any(refusal in answer for refusal in REFUSALS)
    }
    assert wrong == {}


@pytest.mark.slow
def test_pi_lists_the_tools_and_declares_them_to_its_model(
    tmp_path: Path, npm_place: NpmPlace
) -> None:
    with user_with_tools(tmp_path, npm_place, "pi") as (user, _, _):
        listed = user.program.execute("mcp", "list", "--json")
        with user.model.lock:
            declared = [one["name"] for one in user.model.requests[-1].body["tools"]]
    assert '"connected"' in listed
    assert {NAMES["pi"].format(tool) for tool in CALLS} <= {*declared}
    assert "codemode" not in declared  # its user did not switch that on


def test_each_tool_has_a_call() -> None:
    assert set(CALLS) == {tool.name for tool in TOOLS}


def test_codex_gets_no_longer_limit_than_it_allows_at_the_end_of_a_session() -> None:
    """It prints a warning at each start otherwise."""
    declared = (REPOSITORY / "hooks" / "hooks.json").read_text()
    hooks = runtime("codex").install.wanted_hooks(declared, "python3", "/app")
    assert [hook.entry["timeout"] for hook in hooks if hook.event == "SessionEnd"] == [3]


@contextmanager
def user_with_tools(
    tmp_path: Path, npm_place: NpmPlace, name: str, *, has_bom: bool = False
) -> Iterator[tuple[User, Machine, dict[str, bytes]]]:
    """After an install, somebody who has told a session the fact, which is in the store; with the
    settings as before, perhaps behind a byte order mark."""
    client = CLIENTS[name]
    with client.model() as model:
        user = User(name, client.program(tmp_path, npm_place(client.package), model), model)
        for folder in (".codex", ".factory", ".kimi-code", ".qwen"):
            (tmp_path / "home" / folder).mkdir(exist_ok=True)
        machine = (
            Machine(tmp_path / "home", copy_repository(tmp_path / "copy"))
            .has_environment()
            .has_program()
        )
        link_packages(machine.program_dir / "env")
        if has_bom:
            install = INSTALLS[name]
            file = Path(install.mcp_files(install.settings_dir(machine.environ))[0])
            # the version that Qwen Code would add by itself
            usual = '{\n  "$version": 4\n}'
            file.write_text("\ufeff" + (file.read_text() if file.exists() else usual))
        before = settings(machine.home)
        machine.installed("--runtime", name)
        command = str(machine.program_dir / "bin/session-memory")
        if isinstance(user.program, Claude):  # whose user adds the server by hand
            words = ["mcp", "add", "--scope", "user", "session-memory", "--", command, "mcp"]
            assert (
                machine.run(user.program.executable, *words, **user.program.environment).returncode
                == 0
            )
        user.ask(FACT)
        assert machine.run(command, "ingest").returncode == 0
        yield user, machine, before


def answer_of(user: User, tool: str) -> str:
    """What the model is sent as the result of a tool of ours, which a prompt lets it call."""
    prompt, called, arguments = f"Call {tool}.", NAMES[user.name].format(tool), CALLS[tool][0]
    if user.name == "codex":
        script = f"text(JSON.stringify(await tools.{called}({json.dumps(arguments)})))"
        user.orders(prompt, ("exec", {"script": script}))
    else:
        # Droid's model gets a tool once it has asked for it
        first = [("ToolSearch", {"query": f"select:{called}"})] if user.name == "droid" else []
        user.orders(prompt, *first, (called, arguments))
    user.ask(prompt)
    with user.model.lock:
        results = [results_in(request.body) for request in user.model.requests]
    return max(results, key=len)[-1]


def settings(home: Path) -> dict[str, bytes]:
    """The files that an install of any of them may change."""
    names = (
        ".claude/settings.json",
        ".cline/data/settings/cline_mcp_settings.json",
        ".codex/config.toml",
        ".copilot/mcp-config.json",
        ".factory/mcp.json",
        ".gemini/settings.json",
        ".openclaw/openclaw.json",
        ".pi/agent/mcp.json",
        ".qwen/settings.json",
        ".config/kilo/kilo.json",
        ".config/opencode/opencode.json",
    )
    return {name: (home / name).read_bytes() for name in names if os.path.exists(home / name)}
