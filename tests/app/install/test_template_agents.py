"""The agents that the templates make, at work with the real runtimes."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
import uuid
from pathlib import Path

import pytest
from clients.claude import Claude, activity
from clients.pi import Pi, records
from clients.pi import activity as pi_activity
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_llm import FakeLLM
from install_machine import (
    AGENTS,
    PYTHON,
    REPOSITORY,
    TEMPLATES,
    Machine,
    new_home,
    prepared_machine,
)
from records import PiSession

from session_memory.app.tools.permissions import SERVERS
from session_memory.sessions.settings.program import EXTRAS

RUN_SECONDS = 120


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return prepared_machine(tmp_path / "home")


class Agent:
    """An agent made from a template, and how it is talked to."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.environment = environment
        self.command = str(next(home / name for name in AGENTS.values() if (home / name).exists()))

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Starts the agent, from some other directory, to its end."""
        return subprocess.run(
            [self.command, *words],
            cwd=self.home.parent,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=RUN_SECONDS,
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
        )

    def say(self, *words: str) -> str:
        """What the agent answers."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def session_id(self, name: str) -> str:
        return str(
            json.loads((self.home / f".session-memory/sessions/{name}.json").read_text())[
                "sessionId"
            ]
        )


def path_with(directory: Path, **commands: str) -> str:
    """A PATH on which these commands come first."""
    directory.mkdir()
    for name, script in commands.items():
        (directory / name).write_text(f"#!/bin/sh\nexec {script}\n")
        (directory / name).chmod(0o755)
    return f"{directory}{os.pathsep}{os.defpath}"


@pytest.fixture
def sdk_agent(tmp_path: Path, bare_claude: Claude) -> Agent:
    """An agent on claude-agent-sdk, which only the private environment has, not `python3` on the PATH."""
    machine = prepared_machine(bare_claude.home)
    (site_packages,) = machine.program_dir.glob("env/lib/python*/site-packages")
    (site_packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    home = new_home(machine, "agent-sdk")
    path = path_with(tmp_path / "bin", python3=f'{shlex.quote(PYTHON)} -I "$@"')
    return Agent(home, {**bare_claude.environment, "PATH": path})


@pytest.mark.slow
def test_an_agent_on_the_sdk_lives_in_two_sessions_archives_and_begins_anew(
    sdk_agent: Agent, api: FakeAnthropic
) -> None:
    assert sdk_agent.say("plan the garden") == "ok (1)\n"
    assert sdk_agent.say("--session", "discord", "who is there?") == "ok (2)\n"
    main = sdk_agent.session_id("main")
    assert sdk_agent.say("and", "water it") == "ok (3)\n"
    assert (sdk_agent.session_id("main"), sdk_agent.session_id("discord") == main) == (main, False)
    first, second, third = api.prompts()
    assert activity(first) == []
    assert activity(second) == ['- main (just now, 2 messages): "plan the garden"; last: "ok (1)"']
    assert "plan the garden" in third.text
    assert activity(third) == ['- discord (just now, 2 messages): "who is there?"; last: "ok (2)"']
    sdk_agent.say("/compact")
    (archive,) = (sdk_agent.home / "conversations").glob("*.md")
    assert "plan the garden" in archive.read_text()
    for path in (sdk_agent.home.parent / ".claude").rglob(f"{main}.jsonl"):
        path.unlink()
    done = sdk_agent.run("and now?")
    assert (done.returncode, done.stdout[:4]) == (0, "ok (")
    assert done.stderr == "agent: the transcript of main is gone; it begins anew\n"
    assert sdk_agent.session_id("main") != main


def test_an_agent_on_the_sdk_knows_who_it_is_and_has_its_skills(
    sdk_agent: Agent, api: FakeAnthropic
) -> None:
    (sdk_agent.home / "AGENTS.md").write_text("You are Anna, the gardener.\n")
    sdk_agent.say("who are you?")
    (request,) = api.prompts()
    assert "You are Anna, the gardener." in json.dumps(request.body)
    assert "- sessions: Look into the other sessions" in json.dumps(request.body)


def copy_of(home: Path) -> Path:
    """A copy of an agent's home, as `cp -r` makes it."""
    to = home.with_name(f"{home.name}-copy")
    subprocess.run(["cp", "-r", str(home), str(to)], check=True)
    return to


def list_command(skill: Path) -> str:
    """The command with which a skill lists the sessions."""
    return next(
        line.strip()
        for line in skill.read_text().splitlines()
        if line.endswith("session-memory sessions")
    )


@pytest.mark.slow
def test_a_copy_of_an_agent_on_the_sdk_has_a_memory_of_its_own(
    sdk_agent: Agent, api: FakeAnthropic
) -> None:
    sdk_agent.say("--session", "original", "plan the garden")
    copy = Agent(copy_of(sdk_agent.home), sdk_agent.environment)
    copy.say("--session", "discord", "who is there?")
    command = list_command(copy.home / ".claude/skills/sessions/SKILL.md")
    api.replies = [{"tools": [{"name": "Bash", "input": {"command": command}}]}, "I have looked."]
    assert copy.say("what goes on?") == "I have looked.\n"
    (result,) = [
        b for b in api.prompts()[-1].messages[-1]["content"] if b.get("type") == "tool_result"
    ]
    assert "discord" in json.dumps(result["content"])
    told = activity(api.prompts()[-2])
    assert [line.split(" (")[0] for line in told] == ["- discord"]
    assert (copy.home / ".session-memory/state/cursors/discord.json").exists()
    assert not (sdk_agent.home / ".session-memory/state/cursors/discord.json").exists()


def test_a_copy_of_a_home_that_was_installed_has_a_memory_of_its_own(bare_claude: Claude) -> None:
    machine, claude = prepared_machine(bare_claude.home), bare_claude
    home = claude.home / "anna"
    (home / ".session-memory/sessions").mkdir(parents=True)
    machine.installed("--home", str(claude.config_dir), "--home", str(home), "--allow")
    copy = claude.project = copy_of(home)
    ids = {name: str(uuid.uuid4()) for name in ("main", "discord")}
    for name, session_id in ids.items():
        (copy / f".session-memory/sessions/{name}.json").write_text(
            json.dumps({"sessionId": session_id})
        )
    claude.run("water the garden", "--session-id", ids["main"])
    command = list_command(copy / ".claude/skills/sessions/SKILL.md")
    claude.api.replies = [
        {"tools": [{"name": "Bash", "input": {"command": command}}]},
        "I have looked.",
    ]
    turn = claude.run("who is there?", "--session-id", ids["discord"])
    assert [line.split(" (")[0] for line in turn.told] == ["- main"]
    (result,) = [
        b
        for b in claude.api.prompts()[-1].messages[-1]["content"]
        if b.get("type") == "tool_result"
    ]
    assert "main" in json.dumps(result["content"])
    assert sorted(
        path.stem for path in (copy / ".session-memory/state/cursors").glob("*.json")
    ) == ["discord", "main"]
    assert not (home / ".session-memory/state").exists()


def test_a_copy_of_an_agent_on_pi_names_itself_as_the_home(
    machine: Machine, tmp_path: Path
) -> None:
    home = new_home(machine, "pi")
    for root, text in ((home, "plan the garden"), (copy := copy_of(home), "who is there?")):
        session = PiSession(cwd=str(root))
        session.user(text)
        session.write(root / f".session-memory/pi-sessions/{root.name}")
    list_sessions = list_command(copy / ".claude/skills/sessions/SKILL.md")
    path = path_with(tmp_path / "bin", pi=list_sessions)
    done = machine.run(str(copy / "agent"), "--session", "main", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[-1] for line in done.stdout.splitlines()[1:]] == ["anna-copy"]


@pytest.fixture
def copied_template(sdk_agent: Agent) -> Agent:
    """An agent whose home is only a copy (`cp -r`) of the repository's templates."""
    home = sdk_agent.home.with_name("bella")
    subprocess.run(["cp", "-r", str(REPOSITORY / "templates/_base"), str(home)], check=True)
    subprocess.run(["cp", "-r", f"{REPOSITORY}/templates/agent-sdk/.", str(home)], check=True)
    return Agent(home, sdk_agent.environment)


def test_a_template_copied_by_hand_is_an_agent_with_skills(
    copied_template: Agent, api: FakeAnthropic
) -> None:
    agent = copied_template
    agent.say("--session", "discord", "who is there?")
    skill = agent.home / ".claude/skills/sessions/SKILL.md"
    commands = [list_command(skill), "scripts/session-memory read discord --lines 20"]
    api.replies = [
        {"tools": [{"name": "Bash", "input": {"command": one}} for one in commands]},
        "I have looked.",
    ]
    assert agent.say("what goes on?") == "I have looked.\n"
    listed, read = [
        b for b in api.prompts()[-1].messages[-1]["content"] if b.get("type") == "tool_result"
    ]
    assert (
        "discord" in json.dumps(listed["content"]),
        "who is there?" in json.dumps(read["content"]),
    ) == (True, True)
    assert [one.get("is_error", False) for one in (listed, read)] == [False, False]
    assert [line.split(" (")[0] for line in activity(api.prompts()[-2])] == ["- discord"]
    assert "- recall: Search what was said" in json.dumps(api.prompts()[-1].body)
    assert (agent.home / ".session-memory/state/cursors/main.json").exists()


def test_an_agent_on_the_sdk_converses_line_by_line(sdk_agent: Agent, api: FakeAnthropic) -> None:
    done = sdk_agent.run(stdin="plan the garden\n\nand water it\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok (1)\nok (2)\n", "")
    assert "plan the garden" in api.prompts()[1].text


@pytest.mark.slow
def test_an_agent_on_the_sdk_clears_and_resumes_its_session(
    sdk_agent: Agent, api: FakeAnthropic
) -> None:
    tool = f"mcp__{SERVERS[0]}__"
    api.replies = [
        "Planned.",
        {"tools": [{"name": tool + "clear_session", "input": {"name": "Garden"}}]},
        "Kept.",
        "New.",
    ]
    done = sdk_agent.run(stdin="plan the garden\nstart over\nwho are you?\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Planned.\nKept.\nNew.\n", "")
    assert "plan the garden" not in json.dumps(api.prompts()[-1].messages)
    assert len(list((sdk_agent.home / "conversations").glob("*-garden.md"))) == 1
    second = sdk_agent.session_id("main")
    api.replies = [
        {"tools": [{"name": tool + "resume_session", "input": {"id": "Garden"}}]},
        "Back.",
        "Going on.",
    ]
    assert sdk_agent.say("back to the garden") == "Back.\n"
    assert sdk_agent.session_id("main") != second
    assert sdk_agent.say("water it") == "Going on.\n"
    assert "plan the garden" in json.dumps(api.prompts()[-1].messages)


@pytest.mark.slow
def test_an_agent_on_the_sdk_says_in_one_line_what_went_wrong(
    sdk_agent: Agent, api: FakeAnthropic
) -> None:
    api.replies = [{"error": 400, "text": "made-up failure"}] * 10
    done = sdk_agent.run("plan the garden")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agent: ")
    assert "made-up failure" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_agent_on_the_sdk_ends_quietly_with_ctrl_c(sdk_agent: Agent, api: FakeAnthropic) -> None:
    api.replies = [{"text": "too late", "seconds": 20}]
    with subprocess.Popen(
        [sdk_agent.command, "plan the garden"],
        env=sdk_agent.environment,
        cwd=sdk_agent.home,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        deadline = time.monotonic() + RUN_SECONDS
        while not api.prompts():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        assert child.communicate(timeout=60) == ("", "")
    assert child.returncode == 130


@pytest.mark.slow
def test_an_agent_on_the_sdk_ends_quietly_with_ctrl_c_at_its_prompt(sdk_agent: Agent) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execve(
            sdk_agent.command, [sdk_agent.command, "--session", "discord"], sdk_agent.environment
        )
    drawn = b""
    while b"discord> " not in drawn:
        drawn += os.read(terminal, 1024)
    os.write(terminal, b"who is there?\n")
    while drawn.count(b"discord> ") < 2:
        drawn += os.read(terminal, 1024)
    status = interrupted(child, terminal)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert drawn.decode().splitlines() == ["discord> who is there?", "ok (1)", "discord> "]


def interrupted(child: int, terminal: int) -> int:
    """Return the exit status of a program after Ctrl-C, repeated every few seconds as a person would."""
    for _ in range(20):
        os.write(terminal, b"\x03")
        for _ in range(30):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("Ctrl-C does not end it")


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_agent_refuses_a_name_that_is_none(
    machine: Machine, tmp_path: Path, template: str
) -> None:
    home = new_home(machine, template)
    command = [sys.executable] if template == "agent-sdk" else []
    # to import the SDK takes a second
    for name in ("../main", "new-1") if command else ("../main", "", "new-1", ".x"):
        done = machine.run(*command, str(home / AGENTS[template]), "--session", name, "hello")
        assert done.returncode in (1, 2), name
        assert (
            "a session's name is letters, digits, - and _, and does not begin with new-"
            in done.stderr
        ), name
        assert not list((home / ".session-memory").glob("*sessions/*")), name


def test_an_agent_on_the_sdk_says_what_it_misses(machine: Machine) -> None:
    home = new_home(machine, "agent-sdk")
    done = machine.run(PYTHON, "-I", str(home / "agent.py"), "hello")
    assert (done.returncode, done.stdout) == (1, "")
    how = "session-memory install --with sdk"
    assert done.stderr == f"agent: claude_agent_sdk is not installed; this installs it: {how}\n"
    assert "claude-agent-sdk" in EXTRAS["sdk"]


def test_an_agent_on_pi_says_what_it_misses(machine: Machine, tmp_path: Path) -> None:
    home = new_home(machine, "pi")
    done = machine.run(str(home / "agent"), "hello", PATH=os.defpath)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agent: pi is not on your PATH; try: npm install -g ")
    done = machine.run(str(home / "agent"), "hello", XDG_DATA_HOME=str(tmp_path / "elsewhere"))
    assert (
        done.stderr
        == f"agent: session-memory is not in {tmp_path}/elsewhere/session-memory; run its install.py\n"
    )


@pytest.fixture
def pi_agent(tmp_path: Path, bare_pi: Pi) -> Agent:
    """An agent on the real pi."""
    home = new_home(prepared_machine(bare_pi.home), "pi")
    environment = {
        key: value for key, value in bare_pi.environment.items() if key != "SESSION_MEMORY_PYTHON"
    }
    path = path_with(
        tmp_path / "bin", pi=shlex.join([*bare_pi.command, "--model", "fake/fake-1"]) + ' "$@"'
    )
    return Agent(home, {**environment, "PATH": path})


def test_an_agent_on_pi_lives_in_two_sessions_over_three_starts(
    pi_agent: Agent, fake_llm: FakeLLM
) -> None:
    assert pi_agent.say("plan the garden").startswith("ECHO[1]")
    assert pi_agent.say("--session", "discord", "who is there?").startswith("ECHO[2]")
    assert pi_agent.say("and water it").startswith("ECHO[3]")
    first, second, third = fake_llm.requests
    assert pi_activity(first) == []
    (told,) = pi_activity(second)
    assert told.startswith('- main (just now, 2 messages): "plan the garden"')
    assert "plan the garden" in third.text
    (told,) = pi_activity(third)
    assert told.startswith('- discord (just now, 2 messages): "who is there?"')
    sessions = pi_agent.home / ".session-memory/pi-sessions"
    assert sorted(path.parent.name for path in sessions.glob("*/*.jsonl")) == ["discord", "main"]
    (main,) = (sessions / "main").iterdir()
    assert [
        record["customType"] for record in records(main) if record["type"] == "custom_message"
    ] == ["session-update"]


def test_an_agent_on_pi_knows_who_it_is_and_has_its_skills(
    pi_agent: Agent, fake_llm: FakeLLM
) -> None:
    (pi_agent.home / "AGENTS.md").write_text("You are Anna, the gardener.\n")
    pi_agent.say("who are you?")
    system = json.dumps(fake_llm.requests[0].body["system"])
    assert "You are Anna, the gardener." in system
    assert "Look into the other sessions" in system


def test_an_agent_on_pi_passes_what_else_it_is_given_to_pi(
    pi_agent: Agent, fake_llm: FakeLLM
) -> None:
    pi_agent.say("--session=discord", "--append-system-prompt", "Speak like a gardener.", "hello")
    assert "Speak like a gardener." in json.dumps(fake_llm.requests[0].body["system"])
