"""The status line in runtimes' settings: added on request after an existing one, fully removed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from install_machine import Machine, agent_home, installed_machine
from own_process import run_here
from records import append, new_id, user

from session_memory.app.install._status_line import switch_status_line
from session_memory.common.errors import SessionMemoryError
from session_memory.common.system.file_changes import checksum
from session_memory.sessions.settings.homes import Home, home_at, person_home

FILES = {
    "claude-code": ".claude/settings.json",
    "qwen-code": ".qwen/settings.json",
    "copilot": ".copilot/settings.json",
}
# As people and other programs leave their settings.
ODD = {
    "empty": "{}",
    "spaced": "{ }\n",
    "one line": '{"theme":"dark"}',
    "four spaces": '{\n    "theme": "dark",\n    "ui": {\n        "compact": true\n    }\n}\n',
    "tabs and CRLF": '{\r\n\t"theme": "dark"\r\n}\r\n',
    "behind a byte order mark": '\ufeff{"theme": "dark"}\n',
    "no end of line": '{\n  "theme": "dark"\n}',
    "odd escapes": '{"th\\u0065me": "\\u00e9\\/", "ui" : { }}',
    "its own line": '{"statusLine": {"type":"command",  "command": "echo \\u0022mine\\u0022", "padding": 2},\n "ui": {"statusLine":'
    ' {"type": "command", "command": "echo \\u0022mine\\u0022"}}}',
}


@pytest.fixture
def machine() -> Machine:
    """A machine with an install into Claude Code, Qwen Code and Copilot."""
    return installed_machine(".qwen", ".copilot")


def switch(machine: Machine, home: Home | None = None, *, is_on: bool = True) -> list[str]:
    """Switch the line on or off; what was refused."""
    return switch_status_line(home or person_home(machine.environ), machine.environ, is_on=is_on)[1]


def line_of(path: Path) -> dict[str, Any] | None:
    values = json.loads(path.read_bytes())
    found = (
        values.get("ui", {}).get("statusLine") if ".qwen" in str(path) else values.get("statusLine")
    )
    return dict(found) if found else None


def printed(command: str, event: Any, machine: Machine) -> str:
    """What a runtime shows that runs the command."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(event),
        env=machine.environ,
        cwd=machine.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    return done.stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_off_and_an_uninstall_restore_every_byte(text: str) -> None:
    machine = installed_machine()
    machine.install("--uninstall")
    paths = [machine.home / file for file in FILES.values()]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    machine.has_environment().has_program().installed()
    before = [path.read_bytes() for path in paths]
    switch(machine)
    switch(machine)
    assert all("hooks/status_line.py" in (line_of(path) or {})["command"] for path in paths)
    switch(machine, is_on=False)
    assert [path.read_bytes() for path in paths] == before
    switch(machine)
    assert machine.install("--uninstall").returncode == 0
    assert {path.read_bytes() for path in paths} == {text.encode()}


def test_a_file_that_was_not_there_is_gone_again(machine: Machine) -> None:
    path = machine.home / FILES["copilot"]
    switch(machine)
    assert line_of(path)
    switch(machine, is_on=False)
    assert not path.exists()
    switch(machine)
    machine.install("--uninstall")
    assert not path.exists()


@pytest.mark.parametrize("way", ["off", "uninstall", "uninstall without a ledger"])
def test_of_files_that_were_changed_since_only_what_is_ours_goes(
    machine: Machine, way: str
) -> None:
    paths = [machine.home / file for file in FILES.values()]
    for path in paths:
        path.write_text(ODD["its own line"])
    switch(machine)
    for path in paths:
        path.write_text(path.read_text().replace("{", '{"added": 1, ', 1))
    if way == "off":
        switch(machine, is_on=False)
    else:
        if "without" in way:
            (machine.program_dir / "installed.json").unlink()
        machine.install("--uninstall")
    for path in paths:
        assert json.loads(path.read_text()) == {"added": 1, **json.loads(ODD["its own line"])}


def test_a_line_of_the_user_s_own_is_shown_before_ours_and_gets_the_same_input(
    machine: Machine,
) -> None:
    path = machine.settings
    path.write_text(
        json.dumps(
            {"statusLine": {"type": "command", "command": 'cat  # it\'s "all"', "padding": 3}}
        )
    )
    switch(machine)
    line = line_of(path)
    assert line is not None
    assert (line["padding"], line["type"]) == (3, "command")
    assert printed(line["command"], {"session_id": "x"}, machine) == '{"session_id": "x"}\n'
    (machine.program_dir / "app").unlink()
    assert printed(line["command"], {"session_id": "x"}, machine) == '{"session_id": "x"}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"statusLine": {"type": "preset"}}',
            ":1:16: `statusLine` is not a command, so session-memory cannot add its own to it",
        ),
        (
            '{"statusLine": "mine"}',
            ":1:16: `statusLine` is not a command, so session-memory cannot add its own to it",
        ),
        (
            '{"a": 1, // mine\n}',
            ":1:10: expecting property name enclosed in double quotes (JSON has no comments)",
        ),
    ],
)
def test_what_is_not_safe_to_change_is_left_as_it_is(
    machine: Machine, text: str, said: str
) -> None:
    machine.settings.write_text(text)
    refused = switch(machine)
    assert machine.settings.read_text() == text
    assert [words.endswith(said) for words in refused] == [True], refused
    assert line_of(machine.home / FILES["qwen-code"]), "the others have it"


def test_without_an_install_there_is_no_line(tmp_path: Path) -> None:
    with pytest.raises(SessionMemoryError, match="no installed runtime shows a status line"):
        switch(Machine(tmp_path))
    assert switch(Machine(tmp_path), is_on=False) == []


def test_an_agent_home_has_its_own(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.installed("--home", str(agent))
    before = checksum((agent / ".claude/settings.json").read_bytes())
    switch(machine, home_at(str(agent), machine.environ))
    assert line_of(agent / ".claude/settings.json")
    assert line_of(machine.settings) is None
    switch(machine, home_at(str(agent), machine.environ), is_on=False)
    assert checksum((agent / ".claude/settings.json").read_bytes()) == before


def test_the_setting_switches_it_and_doctor_says_so(machine: Machine) -> None:
    def run(*words: str) -> str:
        return run_here([*words], machine.environ, machine.home).stdout

    def found() -> list[str]:
        return [
            one["text"]
            for one in json.loads(run("doctor", "--json"))["findings"]
            if "status" in one["about"]
        ]

    assert found() == []
    assert "in ~/.claude/settings.json" in run("config", "statusline", "on")
    assert f"on, in {machine.settings}" in found()
    machine.settings.write_text("{}")
    assert f"on, but {machine.settings} does not name it" in found()
    run("config", "statusline", "on")
    run("config", "statusline", "off")
    assert (machine.home / ".session-memory/config.yaml").read_text() == "statusline: false\n"
    assert line_of(machine.settings) is None


def test_the_installed_command_shows_the_line(machine: Machine) -> None:
    (project_dir,) = (machine.claude / "projects").iterdir()
    (machine.home / ".session-memory").mkdir(exist_ok=True)
    (machine.home / ".session-memory/config.yaml").write_text("statusline: true\n")
    switch(machine)
    # compiled here: the environment of this machine has no parser
    person_home(machine.environ).settings()
    session_id = new_id()
    append(next(project_dir.glob("*.jsonl")), user("and now?", cwd="/srv/shop"))
    machine.prompt(project_dir, session_id)
    event = {
        "session_id": session_id,
        "transcript_path": f"{project_dir}/{session_id}.jsonl",
        "cwd": "/srv/shop",
    }
    line = line_of(machine.settings)
    assert line is not None
    assert " active (" in printed(line["command"], event, machine)


def test_pi_s_extension_shows_it_by_itself_so_that_no_file_changes() -> None:
    def contents(directory: Path) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}

    machine = installed_machine()
    machine.install("--uninstall")
    agent = machine.home / ".pi" / "agent"
    agent.mkdir(parents=True)
    (agent / "settings.json").write_text('{"theme": "dark"}')
    before = contents(machine.home / ".pi")
    machine.has_environment().has_program().installed("--runtime", "pi")
    installed = contents(machine.home / ".pi")
    extension = agent / "extensions" / "session-memory.ts"
    for is_on in (True, False):
        home = person_home(machine.environ)
        assert switch_status_line(home, machine.environ, is_on=is_on) == ([extension], [])
        assert contents(machine.home / ".pi") == installed
    assert machine.install("--uninstall").returncode == 0
    assert contents(machine.home / ".pi") == before
