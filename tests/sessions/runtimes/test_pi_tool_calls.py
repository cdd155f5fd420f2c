"""Sessions of Pi that edit one file: what the hook answers to its extension, and what the real Pi
makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients.npm import NpmPlace, node_at
from clients.pi import EXTENSION, PACKAGE, RUN_SECONDS, Pi, Rpc
from git_scene import GIT_ENVIRONMENT, git, repository
from records import PiSession

from session_memory.sessions.runtimes.records import RESULTS
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import INTRODUCTION

ROOT = Path(__file__).resolve().parents[3]
TOLD = f'{INTRODUCTION}! app: edited just now by "discord", before you edited it'


class Project:
    """A user's repository, with the session at hand and one called discord that has just edited the
    file app."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = repository(root / "project", app="1\n", db="1\n")
        self.own = PiSession(cwd=str(self.directory))
        project_dir = (
            root / ".pi" / "agent" / "sessions" / f"-{str(self.directory).replace('/', '-')}--"
        )
        other = PiSession(cwd=str(self.directory))
        other.name("discord")
        other.assistant(("edit", {"path": "app"}))
        other.write(project_dir)
        (self.directory / "app").write_text("2\n")
        self.path = self.own.write(project_dir)
        self._other, self._project_dir = other, project_dir

    def ran(self, command: str) -> None:
        """The other session runs a command, now."""
        self._other.assistant(("bash", {"command": command}))
        call = self._other.records[-1]["message"]["content"][0]["id"]
        subprocess.run(["sh", "-c", command], cwd=self.directory, env=GIT_ENVIRONMENT, check=True)
        done = [{"type": "text", "text": "done"}]
        self._other.message("toolResult", toolCallId=call, content=done)
        self._other.write(self._project_dir)

    def answer(self, tool: str, argument: str, **fields: Any) -> dict[str, Any]:
        """What the hook answers to a tool call; empty for nothing."""
        event = {
            "hook_event_name": "tool_call",
            "runtime": "pi",
            "session_id": self.own.id,
            "cwd": str(self.directory),
            "transcript_path": str(self.path),
            "session_dir": str(self.path.parent),
            "tool_name": tool,
            "tool_input": {"command" if tool == "bash" else "path": argument},
            "tool_use_id": "toolu_9",
            **fields,
        }
        done = subprocess.run(
            [sys.executable, "-I", "-S", ROOT / "hooks" / "pre_tool_use.py"],
            input=json.dumps(event).encode(),
            env={"HOME": str(self.root)},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout else {}

    def ask_first(self) -> None:
        (self.root / ".session-memory").mkdir(exist_ok=True)
        (self.root / ".session-memory" / "config.yaml").write_text("collisions: ask\n")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_edit_is_told_once_what_another_session_did_to_the_file(project: Project) -> None:
    assert project.answer("write", "app") == {
        "message": {"customType": "session-update", "content": TOLD, "display": True}
    }
    assert project.answer("edit", "./app") == {}
    assert project.answer("edit", "db") == {}
    assert project.answer("read", "app") == {}
    assert project.answer("bash", "git stash", can_ask=True) == {}


def test_a_call_is_held_back_where_the_settings_say_so_and_somebody_can_be_asked(
    project: Project,
) -> None:
    project.ask_first()
    time.sleep(1.1 - time.time() % 1)  # git's times are whole seconds
    (project.directory / "app").write_text("3\n")
    held = project.answer("bash", "git switch -c fix", can_ask=True)["held"]
    assert (
        held
        == 'session-memory: `git switch -c fix` changes the worktree of "discord", active just now'
    )
    told = project.answer("bash", "git switch -c fix", can_ask=False)
    assert told["message"]["content"] == f"{INTRODUCTION}! {held.removeprefix('session-memory: ')}"


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("echo 3 > app", "git reset --hard"),
        ("echo 3 > new", "git clean -f"),
        ("echo 3 > app && git add app", "git commit -m x"),
        ("git stash -q", "git stash pop"),
        ("git stash -q", "git stash drop"),
        ("git stash -q", "git stash clear"),
        (
            "git worktree add -q ../wt -b wt && echo 3 > ../wt/app",
            "git worktree remove --force ../wt",
        ),
    ],
)
def test_a_command_that_loses_work_of_another_session_is_held_back(
    project: Project, before: str, command: str
) -> None:
    project.ask_first()
    project.ran(before)
    assert f"`{command}` " in project.answer("bash", command, can_ask=True)["held"]


def test_what_the_extension_puts_behind_a_result_is_no_part_of_it() -> None:
    content = [{"type": "text", "text": "edited"}, {"type": "text", "text": TOLD}]
    message = {"role": "toolResult", "toolCallId": "toolu_1", "content": content}
    [found] = runtime("pi").records.events({"type": "message", "message": message}, 0, RESULTS)
    assert found.content == content[:1]


@pytest.fixture
def app(pi: Pi) -> Path:
    """A file of the repository that the project is."""
    pi.project.rmdir()
    return repository(pi.project, app="port = 1\n") / "app"


def tool(name: str, **arguments: object) -> str:
    return f"TOOL {name} {json.dumps(arguments)}"


@contextmanager
def in_the_middle_of_a_turn(pi: Pi, *after: str) -> Iterator[None]:
    """A turn that waits until the block is left, and then makes the calls `after`."""
    waits, goes_on = pi.root / "waits", pi.root / "goes_on"
    wait = tool("bash", command=f"touch {waits}; while [ ! -e {goes_on} ]; do sleep 0.02; done")
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(pi.run, "\n".join([wait, *after]))
        deadline = time.monotonic() + RUN_SECONDS
        while not waits.exists():
            assert time.monotonic() < deadline, "the turn has not begun"
            time.sleep(0.02)
        try:
            yield
        finally:
            goes_on.touch()
        turn.result()


def results(pi: Pi) -> list[str]:
    """What the model was told as results of tools, of all that was."""
    return [
        json.dumps(request.messages[-1])
        for request in pi.model.requests
        if request.kind == "result"
    ]


def test_the_real_pi_gives_it_to_the_model_with_the_result_of_the_edit_once(
    pi: Pi, app: Path
) -> None:
    pi.use_package()
    write = tool("write", path=str(app), content="port = 3\n")
    with in_the_middle_of_a_turn(pi, write, write):
        pi.run(f"change the port\n{tool('write', path='app', content='port = 2')}")
    told = [result for result in results(pi) if "! app: edited just now by " in result]
    assert len(told) == 1
    assert "Successfully wrote" in told[0]
    assert "change the port" in told[0]
    assert app.read_text() == "port = 3\n"


def test_the_real_pi_blocks_a_call_that_its_user_does_not_allow(pi: Pi, app: Path) -> None:
    pi.use_package()
    (pi.home / ".session-memory").mkdir()
    (pi.home / ".session-memory" / "config.yaml").write_text("collisions: ask\n")
    pi.run(f"look around\n{tool('read', path=str(app))}")
    switch = tool("bash", command="git switch -q -c fix")
    with pi.rpc() as rpc:
        refuse(rpc, switch)
    assert git(pi.project, "branch", "--show-current") == "main"
    assert all(
        part in results(pi)[-1] for part in ("changes the worktree of ", "look around TOOL read")
    )
    pi.run(switch)
    assert git(pi.project, "branch", "--show-current") == "fix"
    assert "changes the worktree of" in results(pi)[-1]


def refuse(rpc: Rpc, prompt: str) -> None:
    """Sends a prompt, and says no to what its user is asked."""
    rpc.send("prompt", message=prompt)
    asked = rpc.wait("extension_ui_request")
    assert asked["method"] == "confirm"
    rpc.write({"type": "extension_ui_response", "id": asked["id"], "confirmed": False})
    rpc.wait("agent_settled")


def test_the_real_pi_gives_what_its_script_is_told_to_the_model_and_tells_others_of_its_edits(
    pi: Pi, app: Path
) -> None:
    pi.use_package()
    pi.run(f"look around\n{tool('read', path='app')}")
    pi.configure(defaultTools=["+codemode"])
    write = {"path": str(app), "content": "port = 3\n"}
    script = tool("codemode", code=f"return JSON.stringify(await tools.write({json.dumps(write)}))")
    with in_the_middle_of_a_turn(pi, script):
        pi.run(f"change the port\n{tool('write', path='app', content='port = 2')}")
    told = [result for result in results(pi) if "! app: edited just now by " in result]
    assert len(told) == 1
    assert all(
        part in told[0] for part in ("Script completed", "Successfully wrote", "change the port")
    )
    assert app.read_text() == "port = 3\n"
    reader = next(path for path in pi.sessions() if "look around" in path.read_text())
    lines = pi.run("go on", "--session", str(reader)).told
    assert any(line.startswith('! app: edited just now by "TOOL bash') for line in lines), lines


@pytest.mark.parametrize("tool", ["ask", "edit", "read"])
def test_a_call_without_arguments_is_not_blocked(tool: str, npm_place: NpmPlace) -> None:
    """Pi and omp block a call whose handler throws."""
    script = f"""
        const {{ default: extension }} = await import({json.dumps(str(EXTENSION))});
        const handlers = {{}};
        extension({{ on: (name, handler) => void (handlers[name] = handler) }});
        const answers = [];
        for (const input of [undefined, null, {{}}])
            for (const name of ["tool_call", "tool_result"]) {{
                const event = {{ toolName: {json.dumps(tool)}, toolCallId: "1", input, isError: true }};
                answers.push((await handlers[name](event, {{ cwd: "/" }})) ?? "none");
            }}
        console.log(answers.join());
    """
    node = node_at(npm_place(PACKAGE))
    command = [node, "--experimental-strip-types", "--input-type=module", "-e", script]
    environ = {"PATH": os.defpath}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == ",".join(["none"] * 6), done.stderr
