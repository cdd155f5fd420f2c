"""The tools as an MCP server: its process, and real clients (the mcp package, Claude Code, its SDK)."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients.claude import REPOSITORY, Claude
from fakes.fake_anthropic import FakeAnthropic
from fakes.loopback import Request
from host_scene import GroupDir, ingested
from install_machine import copy_repository, make_bare_environment
from own_process import run_here
from records import NamedHome, exchange, write

from session_memory.app.commands.mcp import main
from session_memory.app.tools.definitions import TOOLS
from session_memory.app.tools.sdk_server import sdk_server
from session_memory.extras.host.group_backend import GroupBackend

NAMES = [tool.name for tool in TOOLS]
SERVER = REPOSITORY / "scripts" / "mcp_server.py"
SECONDS = 60


@pytest.fixture
def home(tmp_path: Path) -> NamedHome:
    home = NamedHome(tmp_path / "agent")
    home.session("main", *exchange("plan the garden", "Beans."))
    home.session("discord", *exchange("how do I deploy this?", "With the script."))
    return home


def environment(home: NamedHome) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "CLAUDE_CONFIG_DIR": str(home.root / ".claude"),
        "SESSION_MEMORY_HOME": str(home.root),
        "CLAUDE_CODE_SESSION_ID": home.session_id("main"),
    }


def run_server(*words: str, lines: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", SERVER, *words],
        input=lines,
        env={"PATH": os.defpath, "HOME": "/nonexistent", **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def test_sessions_whose_files_are_not_called_in_utf_8_are_listed_and_read(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/.claude/projects/-srv-caf\xe9"
    os.makedirs(folder)
    written = write(tmp_path / "one.jsonl", *exchange("plan the garden", "Beans."))
    os.rename(written, folder + b"/gart\xe9n.jsonl")
    calls = [("list_sessions", {}), ("read_session", {"name": "plan the garden"})]
    lines = [
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": name,
                "method": "tools/call",
                "params": {"name": name, "arguments": given},
            }
        )
        for name, given in calls
    ]
    done = run_server(
        "--home", str(tmp_path / ".claude"), lines="\n".join(lines) + "\n", HOME=str(tmp_path)
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    assert '"plan the garden"' in told["list_sessions"]["content"][0]["text"]
    assert "Beans." in told["read_session"]["content"][0]["text"]
    assert not any(result.get("isError") for result in told.values())


class TestServer:
    def test_it_needs_nothing_but_an_interpreter_and_ends_with_its_client(
        self, home: NamedHome
    ) -> None:
        line = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_sessions"}}\n'
        done = run_server(lines=line, **environment(home))
        assert (done.returncode, done.stderr) == (0, "")
        (text,) = [block["text"] for block in json.loads(done.stdout)["result"]["content"]]
        assert text.startswith("2 sessions, latest first.")
        assert f'"main" (id {home.session_id("main")}, the one you are in)' in text

    def test_a_python_that_is_too_old_can_read_why_it_is_refused(self) -> None:
        ast.parse(SERVER.read_text(), feature_version=(3, 7))

    def test_a_place_that_is_none_is_one_line_and_a_hint(self, tmp_path: Path) -> None:
        for words, said in (
            (["--host", "/nowhere", "--group", "a"], "session-memory: /nowhere: no host"),
            (["--host", "/nowhere"], "session-memory: --host and --group must be used together"),
            (["--group", "a"], "session-memory: --host and --group must be used together"),
            (["--ipc", "/nowhere"], "session-memory: /nowhere: no tasks/ in there"),
        ):
            done = run_here(words, {"HOME": "/nonexistent"}, tmp_path, main)
            assert (done.returncode, done.stdout) == (
                2 if "must be used together" in said else 1,
                "",
            ), words
            assert done.stderr.startswith(said + "\n  ")
            assert done.stderr.count("\n") == 2

    def test_a_group_of_a_host_is_served_and_no_other(self, tmp_path: Path) -> None:
        host = GroupDir(tmp_path / "host")
        for name in ("family", "work"):
            host.add(name)
            host.begin(name, *exchange(f"the secret of {name}", "Yes."))
        host.close()
        line = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_sessions"}}\n'
        command = [sys.executable, SERVER, "--host", host.root, "--group", "work"]
        done = subprocess.run(
            command,
            input=line,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={"PATH": os.defpath, "HOME": str(tmp_path)},
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "the secret of work" in done.stdout
        assert "family" not in done.stdout
        unknown = run_server("--host", str(host.root), "--group", "../family")
        assert unknown.stderr.startswith(
            "session-memory: '../family' is not a valid name for a group\n"
        )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_of_the_mcp_package_lists_and_calls_every_tool(
    home: NamedHome, mode: Any
) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    async def ask() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-I", "-S", str(SERVER)], env=environment(home)
        )
        async with Client(server, mode=mode, read_timeout_seconds=SECONDS) as client:
            assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == NAMES
            for name, arguments, expected in calls(home):
                result = await client.call_tool(name, arguments)
                (block,) = result.content
                assert expected in block.text  # type: ignore[union-attr]
                assert bool(result.is_error) == (name == "search_sessions")  # for want of a store

    asyncio.run(ask())


def calls(home: NamedHome) -> list[tuple[str, dict[str, Any], str]]:
    """A call of each tool in an agent home, and a part of what it answers."""
    discord = home.session_id("discord")
    return [
        ("list_sessions", {}, f'"discord" (id {discord})'),
        ("read_session", {"name": "discord", "lines": 5}, "how do I deploy this?"),
        (
            "search_sessions",
            {"query": "submarine"},
            "the store of all conversations does not exist yet",
        ),
        ("clear_session", {"name": "Garden"}, "Done: this conversation is kept as 'Garden'"),
        ("resume_session", {"id": discord}, f"run `claude --resume {discord}`"),
    ]


def offered(request: Request, prefix: str) -> list[str]:
    """The tools with that prefix that a request offers the model, without it."""
    names = [str(tool["name"]) for tool in request.body["tools"]]
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


@pytest.fixture
def user(bare_claude: Claude) -> Claude:
    """A user of the real CLI, without our hooks."""
    bare_claude.environment["ENABLE_TOOL_SEARCH"] = "false"
    return bare_claude


class TestClaudeCode:
    def test_the_model_gets_what_each_tool_of_a_configured_server_answers(
        self, user: Claude, api: FakeAnthropic, tmp_path: Path
    ) -> None:
        config = tmp_path / "mcp.json"
        server = {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
        config.write_text(json.dumps({"mcpServers": {"sessions": server}}))
        garden = user.run("plan the garden").session_id
        replies: list[tuple[str, dict[str, Any], Callable[[str, str], bool]]] = [
            (
                "list_sessions",
                {},
                lambda own, text: f'{{"id":"{garden}","name":"plan the garden",' in text,
            ),
            (
                "read_session",
                {"name": "plan"},
                lambda own, text: "plan the garden" in text and "ok (1)" in text,
            ),
            (
                "search_sessions",
                {"query": "garden"},
                lambda own, text: "does not exist yet" in text,
            ),
            (
                "clear_session",
                {"name": "Garden"},
                lambda own, text: f"`claude --resume {own}`" in text,
            ),
            (
                "resume_session",
                {"id": garden},
                lambda own, text: f"`claude --resume {garden}`" in text,
            ),
            (
                "read_session",
                {"name": "../etc"},
                lambda own, text: "no session is called '../etc'. The sessions are: " in text,
            ),
        ]
        api.replies = [
            {"tools": [{"name": f"mcp__sessions__{name}", "input": given}]}
            for name, given, _ in replies
        ]
        turn = user.run(
            "what was that?", "--mcp-config", str(config), "--allowedTools", "mcp__sessions"
        )
        requests = api.prompts()[-len(replies) :]
        assert sorted(offered(requests[0], "mcp__sessions__")) == sorted(NAMES)
        for request, (name, _, is_right) in zip(requests, replies):
            (text,) = request.tool_results
            assert is_right(turn.session_id, text), f"{name}: {text}"

    @pytest.mark.slow
    def test_a_plugin_brings_the_server_which_any_python_runs(
        self, user: Claude, api: FakeAnthropic, tmp_path: Path
    ) -> None:
        make_bare_environment(tmp_path / "bare")
        user.environment["PATH"] = f"{tmp_path}/bare/bin:{user.environment['PATH']}"
        copy = copy_repository(tmp_path / "copy")
        tool = "mcp__plugin_session-memory_sessions__list_sessions"
        user.run("plan the garden")
        api.replies = [{"tools": [{"name": tool, "input": {}}]}]
        user.run("and now?", "--plugin-dir", str(copy), "--allowedTools", tool)
        (text,) = api.prompts()[-1].tool_results
        assert '"name":"plan the garden"' in text

    @pytest.mark.slow
    def test_after_a_clear_the_server_knows_the_new_session(
        self, user: Claude, api: FakeAnthropic
    ) -> None:
        (user.config_dir / "settings.json").write_text(
            '{"permissions": {"allow": ["mcp__sessions"]}}'
        )
        answers = json.loads((user.home / ".claude.json").read_text())
        answers["mcpServers"] = {
            "sessions": {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
        }
        (user.home / ".claude.json").write_text(json.dumps(answers))
        with user.terminal() as terminal:
            terminal.enter("plan the garden")
            terminal.wait(lambda: "ok(1)" in "".join(terminal.text().split()), "the first answer")
            (before,) = user.live_session_ids()
            terminal.enter("/clear")
            terminal.wait(
                lambda: user.live_session_ids() not in ({before}, set()), "the new session"
            )
            (after,) = user.live_session_ids()
            api.replies = [
                {"tools": [{"name": "mcp__sessions__list_sessions", "input": {}}]},
                "listed",
            ]
            terminal.enter("what else is there?")
            terminal.wait(lambda: len(api.prompts()) >= 3, "the result of the tool")
        (text,) = api.prompts()[2].tool_results
        listed = {one["id"]: one for one in json.loads(text)["sessions"]}
        assert listed[after]["is_yours"]
        assert (listed[before]["name"], "is_yours" in listed[before]) == ("plan the garden", False)


class TestSDK:
    @pytest.fixture
    def host(self, tmp_path: Path) -> Iterator[GroupDir]:
        host = GroupDir(tmp_path / "host")
        host.add("family")
        yield host
        host.close()

    def test_an_agent_clears_and_resumes_its_group_s_session_in_the_real_cli(
        self, user: Claude, api: FakeAnthropic, host: GroupDir
    ) -> None:
        before = host.begin("family", *exchange("plan a trip to Japan", "With pleasure."))
        ingested(host)
        calls = [
            ("search_sessions", {"query": "submarine"}),
            ("clear_session", {"name": "Japan trip"}),
            ("list_sessions", {}),
            ("search_sessions", {"query": "japan"}),
            ("read_session", {"name": "Japan trip"}),
            ("resume_session", {"id": "1"}),
        ]
        api.replies = [
            {"tools": [{"name": f"mcp__session-memory__{name}", "input": given}]}
            for name, given in calls
        ]
        asyncio.run(self.ask(user, host.backend("family")))
        requests = api.prompts()
        assert set(NAMES) - {"why"} < set(offered(requests[0], "mcp__session-memory__"))
        told = [text for request in requests[1:] for text in request.tool_results]
        assert [text[:30] for text in told] == [
            "Nothing was found in earlier c",
            "Done: this conversation is kep",
            "1 session, latest first. read_",
            "1 found, best first. The text ",
            '"Japan trip" (id 1): the last ',
            "Done: the next message continu",
        ]
        assert host.sessions.get("family") == before

    @pytest.mark.slow
    def test_an_agent_remembers_and_forgets_in_the_real_cli(
        self, user: Claude, api: FakeAnthropic, host: GroupDir
    ) -> None:
        host.begin("family", *exchange("we leave for Japan on 3 May", "Noted."))
        ingested(host)
        backend = GroupBackend(host.layout, "family", host.sessions)

        def ask(tool: str, **arguments: str) -> str:
            api.replies = [
                {"tools": [{"name": f"mcp__session-memory__{tool}", "input": arguments}]}
            ]
            before = len(api.prompts())
            asyncio.run(self.ask(user, backend))
            (text,) = [
                text for request in api.prompts()[before + 1 :] for text in request.tool_results
            ]
            return text

        kept = ask(
            "remember", text="The trip to Japan begins on 3 May.", quote="leave for Japan on 3 May"
        )
        assert kept.startswith("Remembered as fact ")
        id = kept.split()[3].rstrip(":")
        assert f"memory {id}" in ask("search_sessions", query="trip to Japan")
        assert ask("forget", id=id).startswith(f"Forgotten: fact {id}:")
        assert f"memory {id}" not in ask("search_sessions", query="trip to Japan")

    async def ask(self, user: Claude, backend: GroupBackend) -> None:
        from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

        options = ClaudeAgentOptions(
            cwd=user.project,
            env=user.environment,
            mcp_servers={"session-memory": sdk_server(backend)},
            allowed_tools=["mcp__session-memory"],
            setting_sources=[],
        )
        async for message in query(prompt="do it all", options=options):
            if isinstance(message, ResultMessage):
                assert not message.is_error, message.result
