"""The plugin for Claude Code sets up its needs in the background at the start of a session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clients.claude_plugin import WAIT_SECONDS, ClaudePlugin, wait_until
from fakes.fake_anthropic import FakeAnthropic
from install_machine import (
    NOBODY_LISTENS,
    PYTHON,
    compiled_copy_of_repository,
    copy_repository,
    make_index,
)
from records import new_id

from session_memory.sessions.runtimes.table import all_runtimes


def test_what_reads_the_configuration_sets_itself_up_in_the_background(
    plugin: ClaudePlugin, tmp_path: Path
) -> None:
    index = make_index(tmp_path / "index", plugin.source / "requirements.lock")
    plugin.claude.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    plugin.install()
    config = plugin.claude.state_dir().parent / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("sessions:\n  'mail*': {text: false}\n")
    said = plugin.messages("plan the garden")
    assert [
        text.startswith("session-memory works.") and str(plugin.data_dir) in text for text in said
    ].count(True) == 1
    assert ["PyYAML is needed to read it" in text for text in said].count(True) == 1
    wait_until(lambda: plugin.note().get("is_made") is True, "environment")
    told = plugin.claude.run("who is there?").told
    assert ["plan the garden" in line for line in told] == [True]
    assert plugin.messages("and now?") == []


@pytest.mark.slow
def test_a_set_up_that_fails_is_not_repeated_with_every_session(plugin: ClaudePlugin) -> None:
    plugin.install()
    assert len(plugin.messages("plan the garden")) == 1
    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    note = plugin.note()
    assert plugin.messages("who is there?") == []
    assert (note["is_made"], plugin.note()) == (False, note)
    assert plugin.claude.run("and now?").told != []


def test_a_newer_list_of_packages_is_set_up_anew(plugin: ClaudePlugin, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    start(plugin, data_dir)
    wait_until(lambda: "problem" in (data_dir / "environment.json").read_text(), "first set-up")
    first = json.loads((data_dir / "environment.json").read_text())
    with (plugin.source / "requirements.lock").open("a") as lock_file:
        lock_file.write("# newer\n")
    assert start(plugin, data_dir) == b""
    assert json.loads((data_dir / "environment.json").read_text())["wanted"] != first["wanted"]


@pytest.mark.slow
def test_what_any_session_said_is_found_a_moment_later_by_the_tool_and_the_command(
    plugin: ClaudePlugin, api: FakeAnthropic, tmp_path: Path
) -> None:
    index = make_index(tmp_path / "index", plugin.source / "requirements.lock")
    plugin.claude.environment.update(
        PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index), ENABLE_TOOL_SEARCH="false"
    )
    plugin.install()
    plugin.claude.run("the zinnias go beside the shed")
    state = plugin.claude.state_dir() / "upkeep.json"
    wait_until(  # the first run may begin before the session is written: the search reads it then
        lambda: state.exists() and not json.loads(state.read_text())["runs"][-1]["problem"],
        "run of upkeep",
    )
    assert plugin.claude.run("the dahlias go to the porch").told != []
    tool = "mcp__plugin_session-memory_sessions__search_sessions"
    api.replies = [{"tools": [{"name": tool, "input": {"query": "dahlias porch"}}]}]
    plugin.claude.run("where do they go?", "--allowedTools", tool)
    (text,) = api.prompts()[-1].tool_results
    assert "the dahlias go to the porch" in text
    command = [
        f"{tmp_path}/bare/bin/python3",
        plugin.source / "scripts/memory.py",
        "search",
        "zinnias",
    ]
    done = subprocess.run(
        command, env=plugin.claude.environment, capture_output=True, text=True, check=True
    )
    assert "the **zinnias** go beside the shed" in done.stdout


def test_until_the_store_can_be_made_a_search_says_so(
    plugin: ClaudePlugin, api: FakeAnthropic
) -> None:
    plugin.claude.environment["ENABLE_TOOL_SEARCH"] = "false"
    plugin.install()
    tool = "mcp__plugin_session-memory_sessions__search_sessions"
    api.replies = [{"tools": [{"name": tool, "input": {"query": "zinnias"}}]}]
    plugin.claude.run("where do they go?", "--allowedTools", tool)
    told = json.dumps(api.prompts()[-1].body["messages"])
    assert "the store of all conversations does not exist yet" in told


def test_a_start_without_a_data_directory_does_nothing_and_says_nothing(
    plugin: ClaudePlugin, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    guarded = {"SESSION_MEMORY_GUARD": "1", "CLAUDE_PLUGIN_DATA": str(tmp_path)}
    for environ in ({}, {"CLAUDE_PLUGIN_DATA": "/proc/nowhere"}, guarded):
        assert run_start(plugin, environ) == b""
        assert sorted(tmp_path.iterdir()) == before


def test_a_package_of_pi_sets_itself_up_in_a_directory_of_its_own_unless_there_is_an_install(
    tmp_path: Path,
) -> None:
    source = copy_repository(tmp_path / "copy")
    session = {
        "hook_event_name": "session_start",
        "runtime": "pi",
        "session_id": "a",
        "cwd": "/srv",
        "reason": "new",
    }

    def start(home: Path) -> Path:
        (home / ".pi/agent").mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, "-I", "-S", source / "hooks/pi_session_start.py"],
            input=json.dumps(session).encode(),
            env={
                "HOME": str(home),
                "PIP_INDEX_URL": NOBODY_LISTENS,
                "PIP_RETRIES": "0",
                "PIP_CONFIG_FILE": "/dev/null",
            },
            capture_output=True,
            timeout=WAIT_SECONDS,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return home / ".pi/agent/session-memory/environment.json"

    note = start(tmp_path / "alone")
    wait_until(lambda: bool(json.loads(note.read_text())["problem"]), "end of the set-up")
    (tmp_path / "installed/.local/share/session-memory/env").mkdir(parents=True)
    assert not start(tmp_path / "installed").exists()


def test_a_plugin_that_is_used_in_place_sets_itself_up_through_its_links(
    plugin: ClaudePlugin, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    start(plugin, data_dir, "/.claude-plugin/package")
    wait_until(lambda: "no package index" in (data_dir / "environment.json").read_text(), "set-up")


def start(plugin: ClaudePlugin, data_dir: Path, root: str = "") -> bytes:
    return run_start(plugin, {"CLAUDE_PLUGIN_DATA": str(data_dir)}, root)


def run_start(plugin: ClaudePlugin, environ: dict[str, str], root: str = "") -> bytes:
    """Runs the SessionStart hook as a runtime does, from a folder of the source; what it prints."""
    hook = f"{plugin.source}{root}/hooks/plugin_start.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", hook],
        input=b'{"source": "startup"}',
        env={**plugin.claude.environment, **environ},
        capture_output=True,
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["codex", "copilot", "qwen-code"])
def test_a_plugin_in_another_runtime_sets_up_the_store_in_the_person_s_place(
    name: str, tmp_path: Path
) -> None:
    source, home = compiled_copy_of_repository(tmp_path / "copy"), tmp_path / "home"
    index = make_index(tmp_path / "index", source / "requirements.lock")
    [runtime] = [one for one in all_runtimes() if one.name == name]
    start, config_dir = str(home / "work"), runtime.config_dir({"HOME": str(home)})
    (home / "work").mkdir(parents=True)
    path = runtime.own_path({"session_id": new_id()}, start, config_dir)
    event = {
        **runtime.install.prompt_event(runtime.session_id_of(path), path, start, ""),
        "source": "startup",
    }
    event["hook_event_name"] = "SessionStart"
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
    }
    environ.update(runtime.install.hook_variables(event["session_id"], start))
    command = [PYTHON, "-I", "-S", str(source / "hooks/plugin_start.py")]
    done = subprocess.run(
        command, input=json.dumps(event).encode(), env=environ, capture_output=True, check=True
    )
    assert done.stdout == b""
    note = home / ".session-memory/plugin/environment.json"
    wait_until(lambda: note.exists() and json.loads(note.read_text())["is_made"], "environment")
    wait_until((home / ".session-memory/store/memory.db").exists, "store")
    searching = subprocess.run(
        [PYTHON, source / "scripts/memory.py", "search", "zinnias"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert "apsw" not in searching.stdout + searching.stderr
