"""What the plugin for Claude Code sets up by itself when a session starts, in the background."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clients.claude_plugin import PLUGIN, WAIT_SECONDS, ClaudePlugin, wait_until
from install_machine import make_index


def test_what_reads_the_configuration_sets_itself_up_in_the_background(plugin: ClaudePlugin, tmp_path: Path) -> None:
    index = make_index(tmp_path / "index", plugin.source / "requirements.lock")
    plugin.claude.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    plugin.plugin("install", PLUGIN)
    (said,) = plugin.messages("plan the garden")
    assert said.startswith("session-memory works.")
    assert str(plugin.data_dir) in said
    wait_until(lambda: plugin.note().get("is_made") is True, "environment")
    config = plugin.claude.state_dir().parent / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("sessions:\n  '*': {text: false}\n")
    told = plugin.claude.run("who is there?").told
    assert [line.partition(" (")[2] for line in told] == ["just now, 2 messages)"]
    assert plugin.messages("and now?") == []


def test_a_set_up_that_fails_is_not_repeated_with_every_session(plugin: ClaudePlugin) -> None:
    plugin.plugin("install", PLUGIN)
    assert len(plugin.messages("plan the garden")) == 1
    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    note = plugin.note()
    assert plugin.messages("who is there?") == []
    assert (note["is_made"], plugin.note()) == (False, note)
    assert len(plugin.claude.run("and now?").told) == 2


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


@pytest.mark.parametrize("environ", [{}, {"CLAUDE_PLUGIN_DATA": "/proc/nowhere"}, {"SESSION_MEMORY_GUARD": "1"}])
def test_a_start_without_a_data_directory_does_nothing_and_says_nothing(
    plugin: ClaudePlugin, tmp_path: Path, environ: dict[str, str]
) -> None:
    if "SESSION_MEMORY_GUARD" in environ:
        environ = {**environ, "CLAUDE_PLUGIN_DATA": str(tmp_path)}
    before = sorted(tmp_path.iterdir())
    assert run_start(plugin, environ) == b""
    assert sorted(tmp_path.iterdir()) == before


def start(plugin: ClaudePlugin, data_dir: Path) -> bytes:
    return run_start(plugin, {"CLAUDE_PLUGIN_DATA": str(data_dir)})


def run_start(plugin: ClaudePlugin, environ: dict[str, str]) -> bytes:
    """Runs the SessionStart hook as a runtime does; what it prints."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", plugin.source / "hooks/plugin_start.py"], input=b'{"source": "startup"}',
        env={**plugin.claude.environment, **environ}, capture_output=True, timeout=WAIT_SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout
