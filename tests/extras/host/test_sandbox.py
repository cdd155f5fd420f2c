"""A group's agent behind bubblewrap: the kernel refuses everything outside its group, and without
bubblewrap the group is not started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from host_scene import Echo, HostMachine

from session_memory.extras.host._launch import launch
from session_memory.extras.host._sandbox import SandboxError, group_mounts, try_out, wall
from session_memory.extras.host.settings import HostSettings
from session_memory.sessions.settings.homes import home_at
from session_memory.sessions.settings.host_layout import Layout

RUNTIME = "/bin/sh"
# Prints what each attempt gives: the error's number, or what was read.
ATTEMPTS = """
import json, os, socket, sys
found = {}
def attempt(name, action):
    try:
        found[name] = action()
    except OSError as error:
        found[name] = type(error).__name__
def read(path):
    with open(path) as file:
        return file.read()
def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"
def connect(address, family=socket.AF_INET):
    with socket.socket(family) as client:
        client.settimeout(5)
        client.connect(address)
    return "connected"
for name, (verb, *arguments) in json.load(sys.stdin).items():
    if verb == "connect":
        attempt(name, lambda: connect((arguments[0], arguments[1])))
    elif verb == "socket":
        attempt(name, lambda: connect(arguments[0], socket.AF_UNIX))
    elif verb == "link":
        attempt(name, lambda: os.link(*arguments) or "linked")
    elif verb == "symlink":
        attempt(name, lambda: os.symlink(*arguments) or read(arguments[1]))
    elif verb == "list":
        attempt(name, lambda: sorted(os.listdir(arguments[0])))
    elif verb == "kill":
        attempt(name, lambda: os.kill(arguments[0], 0) or "reached")
    else:
        attempt(name, lambda: {"read": read, "write": write}[verb](arguments[0]))
print(json.dumps(found))
"""


def why_not() -> str:
    """Why bubblewrap cannot be tested here; '' if it can."""
    try:
        trial = wall(Layout("/nonexistent-host"), [], RUNTIME, has_network=True)
        try_out(trial, RUNTIME, {"PATH": os.defpath})
    except SandboxError as error:
        return str(error)
    return ""


WHY_NOT = why_not()
needs_bubblewrap = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture
def neighbours(layout: Layout) -> Layout:
    """A host where both groups and the host itself have secrets."""
    for name in ("main", "garden"):
        group = layout.group(name)
        for directory in (group.root, group.config_dir, group.ipc_dir):
            Path(directory, "secret").write_text(f"secret of {name}")
    Path(layout.database).write_text("secret of the host")
    Path(layout.root, ".session-memory").mkdir()
    Path(layout.root, ".session-memory", "config.yaml").write_text("secret of the host")
    Path(layout.global_instructions).write_text("for all")
    return layout


def attempted(
    layout: Layout, group: str, attempts: dict[str, list[Any]], *, has_network: bool = True
) -> dict[str, Any]:
    """What a program behind the wall of a group gets."""
    mounts = group_mounts(layout, layout.group(group))
    words = wall(layout, mounts, RUNTIME, has_network=has_network)
    done = subprocess.run(
        [*words, sys.executable, "-I", "-c", ATTEMPTS],
        input=json.dumps(attempts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_bubblewrap
class TestTheWall:
    def test_a_group_reads_and_writes_its_own_files(self, neighbours: Layout) -> None:
        garden = neighbours.group("garden")
        found = attempted(
            neighbours,
            "garden",
            {
                "own": ["read", f"{garden.root}/secret"],
                "home": ["write", f"{garden.config_dir}/new"],
                "conversations": ["write", f"{garden.root}/new"],
                "ipc": ["write", f"{garden.tasks_dir}/new.json"],
                "global": ["read", neighbours.global_instructions],
            },
        )
        assert found == {
            "own": "secret of garden",
            "home": "written",
            "conversations": "written",
            "ipc": "written",
            "global": "for all",
        }
        assert Path(garden.config_dir, "new").read_text() == "x"

    def test_everything_else_does_not_exist(self, neighbours: Layout, tmp_path: Path) -> None:
        main, garden = neighbours.group("main"), neighbours.group("garden")
        home_file = Path.home() / ".session-memory-sandbox-test"
        outside = tmp_path / "outside"
        outside.write_text("secret")
        found = attempted(
            neighbours,
            "garden",
            {
                "group": ["read", f"{main.root}/secret"],
                "transcripts": ["read", f"{main.config_dir}/secret"],
                "ipc": ["read", f"{main.ipc_dir}/secret"],
                "database": ["read", neighbours.database],
                "settings": ["read", f"{neighbours.root}/.session-memory/config.yaml"],
                "outside": ["read", str(outside)],
                "write beside": ["write", f"{neighbours.groups_dir}/new"],
                "write home": ["write", str(home_file)],
                "write global": ["write", neighbours.global_instructions],
                "write program": ["write", f"{sys.prefix}/new"],
                "password": ["read", "/etc/shadow"],
                "symlink": ["symlink", f"{main.root}/secret", f"{garden.root}/symlink"],
                "hard link": ["link", f"{main.root}/secret", f"{garden.root}/link"],
                "groups": ["list", neighbours.groups_dir],
                "home": ["list", str(Path.home())],
            },
        )
        own = {"session-memory-sandbox-test", ".ssh", ".bashrc", ".claude"}
        assert own.isdisjoint(found.pop("home"))
        assert "secret of" not in str(found)
        assert found.pop("groups") == ["garden", "global"]
        assert set(found.values()) <= {"FileNotFoundError", "OSError", "PermissionError"}
        assert not home_file.exists()

    def test_a_link_that_the_host_follows_elsewhere_leads_nowhere_inside(
        self, neighbours: Layout
    ) -> None:
        main, garden = neighbours.group("main"), neighbours.group("garden")
        os.symlink(f"{main.root}/secret", f"{garden.root}/inherited")
        found = attempted(neighbours, "garden", {"link": ["read", f"{garden.root}/inherited"]})
        assert found == {"link": "FileNotFoundError"}

    def test_processes_of_the_machine_are_neither_seen_nor_reached(
        self, neighbours: Layout
    ) -> None:
        found = attempted(
            neighbours,
            "garden",
            {
                "environment": ["read", f"/proc/{os.getpid()}/environ"],
                "kill": ["kill", os.getpid()],
                "processes": ["list", "/proc"],
                "root": ["list", "/proc/1/root/home"],
            },
        )
        assert found["environment"] == "FileNotFoundError"
        assert found["kill"] == "ProcessLookupError"
        assert len([name for name in found["processes"] if name.isdecimal()]) <= 3

    def test_without_a_network_no_connection_leaves(self, neighbours: Layout) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            attempts = {"connect": ["connect", *address]}
            with_network = attempted(neighbours, "garden", attempts)
            without = attempted(neighbours, "garden", attempts, has_network=False)
        assert with_network == {"connect": "connected"}
        assert without == {"connect": "ConnectionRefusedError"}

    def test_the_hosts_socket_is_out_of_reach(self, neighbours: Layout) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(neighbours.socket)
            server.listen()
            for group in ("main", "garden"):
                found = attempted(neighbours, group, {"say": ["socket", neighbours.socket]})
                assert found == {"say": "FileNotFoundError"}

    def test_main_reads_other_groups_and_cannot_write_there(self, neighbours: Layout) -> None:
        garden = neighbours.group("garden")
        found = attempted(
            neighbours,
            "main",
            {
                "read": ["read", f"{garden.root}/secret"],
                "write": ["write", f"{garden.root}/secret"],
                "own": ["write", f"{neighbours.group('main').root}/secret"],
                "database": ["read", neighbours.database],
            },
        )
        assert found == {
            "read": "secret of garden",
            "write": "OSError",
            "own": "written",
            "database": "FileNotFoundError",
        }

    def test_a_program_inside_has_no_capability_even_if_root_started_it(
        self, neighbours: Layout
    ) -> None:
        found = attempted(neighbours, "garden", {"status": ["read", "/proc/self/status"]})
        rights = dict(
            line.split(":\t", 1) for line in found["status"].splitlines() if ":\t" in line
        )
        assert int(rights["CapEff"], 16) == int(rights["CapBnd"], 16) == 0


@pytest.fixture
def machine() -> Iterator[HostMachine]:
    """A host with the groups main and garden, whose agents are allowed everything, behind the
    wall."""
    config = "sandbox: bubblewrap\nattempts: 1\nallowed_tools: [Bash, Read, Write]\n"
    with Echo() as api, closing(HostMachine(api)) as machine:
        yield machine.init("main", "garden", config=config)


def tool_results(machine: HostMachine) -> dict[str, str]:
    """What the last calls of tools gave, by the name that the model gave each."""
    found = {}
    for message in machine.api.prompts()[-1].messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "tool_result":
                found[block["tool_use_id"]] = json.dumps(block["content"])
    return found


@needs_bubblewrap
class TestARealAgent:
    def test_it_works_in_its_group_and_reaches_nothing_else_whatever_it_may_run(
        self, machine: HostMachine, bundled_cli: None
    ) -> None:
        main, garden = machine.group("main"), machine.group("garden")
        Path(main.root, "plan.md").write_text("secret of main")
        Path(garden.root, "plan.md").write_text("beans beside peas")
        os.symlink(f"{main.root}/plan.md", f"{garden.root}/linked.md")
        outside = machine.root / "home" / "mail.txt"
        outside.write_text("secret of the user")
        machine.environment["TELEGRAM_BOT_TOKEN"] = "secret of the host"
        calls = [
            {"name": "Read", "input": {"file_path": f"{garden.root}/plan.md"}},
            {"name": "Read", "input": {"file_path": f"{main.root}/plan.md"}},
            {"name": "Read", "input": {"file_path": f"{garden.root}/linked.md"}},
            {"name": "Read", "input": {"file_path": str(outside)}},
            {"name": "Bash", "input": {"command": f"cat {main.root}/plan.md {outside}; ls /"}},
            {"name": "Bash", "input": {"command": f"cat {machine.layout.database} | head -c 9"}},
            {
                "name": "Bash",
                "input": {"command": "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; env"},
            },
            {"name": "Bash", "input": {"command": f"ln {main.root}/plan.md hard.md; cat hard.md"}},
            {"name": "Bash", "input": {"command": "echo sown > sown.md; cat sown.md"}},
            {"name": "Write", "input": {"file_path": f"{main.root}/new.md", "content": "x"}},
            {"name": "Write", "input": {"file_path": f"{garden.root}/new.md", "content": "y"}},
        ]
        machine.api.replies = [{"tools": [one]} for one in calls] + ["Tried all."]
        machine.start()
        assert machine.ask("garden", "what is there?") == "Tried all."
        results = list(tool_results(machine).values())
        assert len(results) == len(calls)
        assert "beans beside peas" in results[0]
        assert "sown" in results[8]
        assert "secret of" not in "".join(results)
        assert Path(garden.root, "new.md").read_text() == "y"
        assert not Path(main.root, "new.md").exists()

    @pytest.mark.slow
    def test_it_is_answered_from_the_same_session_after_a_kill_of_the_host(
        self, machine: HostMachine, bundled_cli: None
    ) -> None:
        machine.start()
        assert machine.ask("garden", "plan m-bed-1") == "m-bed-1"
        before = machine.sessions.get("garden")
        machine.kill()
        machine.start()
        assert machine.ask("garden", "and m-bed-2") == "m-bed-2"
        assert machine.sessions.get("garden") == before


class TestWithoutBubblewrap:
    @pytest.mark.parametrize(
        ("program", "says"),
        [
            (None, "bwrap is not installed; install bubblewrap"),
            ("echo 'bwrap: No permissions to create a new namespace' >&2; exit 1", "kernel."),
        ],
    )
    def test_a_group_is_not_started_and_the_chat_is_told_what_to_do(
        self, machine: HostMachine, program: str | None, says: str
    ) -> None:
        programs = machine.root / "bin"
        programs.mkdir()
        if program is not None:
            (programs / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
            (programs / "bwrap").chmod(0o755)
        machine.environment["PATH"] = str(programs)
        machine.start()
        reply = machine.reply_to("garden", machine.say("garden", "who are you?"))
        assert reply.kind == "error"
        assert says in reply.text
        assert machine.api.requests == []
        assert says.split(";")[0] in machine.output()

    @pytest.mark.parametrize(
        "key",
        ["sandbox: bubblewarp", "sandbx: bubblewrap", "sandbox: true", "agent_command: docker run"],
    )
    def test_a_misspelled_wall_is_not_taken_away(self, layout: Layout, key: str) -> None:
        Path(layout.root, ".session-memory").mkdir()
        Path(layout.config_file).write_text(f"host: {{{key}}}\n")
        found = HostSettings(**home_at(layout.root, {}, is_host=True).settings().host)
        assert found.sandbox == "bubblewrap" or found.agent_command == [""]
        if found.agent_command:
            with pytest.raises(SandboxError, match="is not a list of words"):
                launch(layout, layout.group("garden"), found, [])

    def test_a_sandbox_and_a_command_together_start_nothing(self, layout: Layout) -> None:
        config = HostSettings(sandbox="bubblewrap", agent_command=["docker", "run"])
        with pytest.raises(SandboxError, match="are both set"):
            launch(layout, layout.group("garden"), config, [])

    def test_a_host_with_unreadable_settings_does_not_start(self, machine: HostMachine) -> None:
        Path(machine.layout.config_file).write_text("host: {sandbox: bubblewrap\n")
        machine.start()
        assert machine.child is not None
        assert machine.child.wait(60) == 1
        assert "config.yaml" in machine.output()
