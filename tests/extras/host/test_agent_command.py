"""An agent started by the operator's command, such as `docker run`.

It covers the command, its directories and variables, and its prompts by stdin or by files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from clients.claude import claude_executable
from host_scene import Echo, HostMachine

from session_memory.extras.host import _runner
from session_memory.extras.host._launch import RUNNER, launch
from session_memory.extras.host._prompt_files import PromptFiles
from session_memory.extras.host._sandbox import SandboxError
from session_memory.extras.host._values import Prompt
from session_memory.extras.host.settings import HostSettings
from session_memory.sessions.settings.host_layout import Layout

# Does what `docker run -i` does with its options, without a container: only the variables that are
# named reach the program, and it notes its words.
DOCKER = """#!{python}
import json, os, sys
words, names, place = sys.argv[1:], [], None
with open({note!r}, "a") as file:
    file.write(json.dumps(words) + "\\n")
assert words.pop(0) == "run"
while words[0].startswith("-"):
    option = words.pop(0)
    if option == "-e":
        names.append(words.pop(0))
    elif option == "-w":
        place = words.pop(0)
    elif option == "-v":
        source, target, mode = words.pop(0).split(":")
        assert os.path.exists(source) and source == target and mode in ("ro", "rw")
image, *command = words
os.chdir(place)
variables = {{name: os.environ[name] for name in names if name in os.environ}}
os.execve(command[0], command, {{**variables, "PATH": os.defpath}})
"""


def prompt(number: int) -> Prompt:
    return Prompt(
        number, "garden", "local:garden", f"id-{number}", "", 1, "", False, "", f"text {number}"
    )


@pytest.fixture
def machine(bundled_cli: None) -> Iterator[HostMachine]:
    with Echo() as api, closing(HostMachine(api)) as machine:
        yield machine


@pytest.mark.parametrize("prompts", ["stdin", "files"])
def test_an_agent_in_a_container_answers_in_its_session_and_ends(
    machine: HostMachine, prompts: str
) -> None:
    docker, note = machine.root / "docker", machine.root / "note"
    docker.write_text(DOCKER.format(python=sys.executable, note=str(note)))
    docker.chmod(0o755)
    program = [claude_executable()]
    if prompts == "files":
        program = [sys.executable, "{runner}", "{ipc}", *program]
    words = [
        str(docker),
        "run",
        "-i",
        "--rm",
        "{mounts}",
        "{env}",
        "-w",
        "{cwd}",
        "image",
        *program,
    ]
    config = f"agent_command: {json.dumps(words)}\nprompts: {prompts}\nidle_seconds: 1\n"
    machine.init("main", "garden", config=config)
    machine.environment["SECRET_OF_THE_HOST"] = "x"
    machine.start()
    assert machine.ask("garden", "plan m-bed-1") == "m-bed-1"
    first = machine.sessions.get("garden")
    assert machine.ask("garden", "and m-bed-2") == "m-bed-2"
    assert machine.sessions.get("garden") == first
    machine.wait(lambda: "garden: agent ended" in machine.output(), "end of the agent")
    started = json.loads(note.read_text().splitlines()[0])
    garden = machine.group("garden")
    assert f"{garden.root}:{garden.root}:rw" in started
    assert f"{machine.layout.groups_dir}/global:{machine.layout.groups_dir}/global:ro" in started
    assert not [word for word in started if machine.group("main").root in word]
    assert "SECRET_OF_THE_HOST" not in started
    assert {"ANTHROPIC_API_KEY", "HOME", "CLAUDE_CONFIG_DIR"} <= set(started)
    assert machine.environment["ANTHROPIC_API_KEY"] not in started
    if prompts == "files":
        assert [
            name for name in os.listdir(f"{garden.ipc_dir}/input") if name.endswith(".json")
        ] == []


def test_prompts_are_files_in_order_and_those_of_an_earlier_run_go(layout: Layout) -> None:
    group = layout.group("garden")
    files, place = PromptFiles(group), Path(group.ipc_dir, "input")
    files.clear()
    for number in range(3):
        files.give(prompt(number))
    files.close()
    *prompts, close = sorted(os.listdir(place))
    assert close == "_close"
    assert [json.loads((place / name).read_text()) for name in prompts] == [
        {"type": "message", "text": f"text {number}", "uuid": f"id-{number}"} for number in range(3)
    ]
    files.clear()
    assert os.listdir(place) == []


def test_the_runner_passes_on_stdin_and_files_and_ends_with_close(layout: Layout) -> None:
    group = layout.group("garden")
    files, place = PromptFiles(group), Path(group.ipc_dir, "input")
    files.clear()
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    with subprocess.Popen(
        [sys.executable, _runner.__file__, group.ipc_dir, sys.executable, "-c", echo],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b'{"type": "control_request"}\n')
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["type"] == "control_request"
        (place / "0.json").write_text("not JSON")
        (place / ".half.tmp").write_text("{")
        files.give(prompt(7))
        record = json.loads(running.stdout.readline())
        assert (record["uuid"], record["message"]["content"]) == ("id-7", "text 7")
        files.close()
        assert running.wait(60) == 0
    deadline = time.monotonic() + 10
    while os.listdir(place) != [".half.tmp"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert os.listdir(place) == [".half.tmp"]


def test_prompts_by_files_without_a_command_start_nothing(layout: Layout) -> None:
    with pytest.raises(SandboxError, match=r"host\.agent_command is not set"):
        launch(layout, layout.group("garden"), HostSettings(prompts="files"), [])


def test_the_runner_is_mounted_for_those_who_need_it(layout: Layout) -> None:
    config = HostSettings(agent_command=["podman", "{mounts}", "{runner}"], prompts="files")
    script = Path(launch(layout, layout.group("garden"), config, []).program).read_text()
    assert f"{RUNNER}:{RUNNER}:ro" in script
    assert script.startswith("#!/bin/sh\n")
