"""The real OpenClaw, with a fake model: what it writes today is read, and after an install it is told."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from clients.everyone import results_in
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from clients.openclaw import PACKAGE, OpenClaw
from fakes.fake_llm import FakeLLM
from runtimes_scene import EDIT, SHELL, ClaudeReader
from store_scene import StoreUser

pytestmark = pytest.mark.slow
TASK = "[Subagent Task]"
SETTINGS = "// the person's own\n"
WRITTEN_BY_IT = {"AGENTS.md", "IDENTITY.md", "SOUL.md", "USER.md"}


@pytest.fixture
def openclaw(tmp_path: Path, npm_place: NpmPlace) -> Iterator[OpenClaw]:
    with FakeLLM() as model:
        yield OpenClaw(tmp_path, npm_place(PACKAGE), model)


def test_what_it_did_is_read_found_and_told_to_claude_code(openclaw: OpenClaw) -> None:
    user = StoreUser(openclaw.home)
    claude, other = ClaudeReader.two_of_notes(openclaw.home, openclaw.project)
    notes = claude.file
    edit = {"path": "notes.txt", "edits": [{"oldText": "alpha", "newText": "gamma"}]}
    orders: list[tuple[str, dict[str, object]]] = [
        ("read", {"path": "notes.txt"}),
        ("edit", edit),
        ("exec", {"command": "echo 'Error: the gate is shut'; false"}),
    ]
    openclaw.run("one", "plan the garden")
    openclaw.model.scripts["mend the gate"] = [(name, json.dumps(given)) for name, given in orders]
    openclaw.run("one", "mend the gate")
    assert notes.read_text() == "gamma\nbeta\n"
    told = claude.prompt()
    assert (
        '! notes.txt: edited just now by \\"plan the garden\\" (OpenClaw), after you read' in told
    )
    assert "! notes.txt: edited" in other.about_to_edit()
    assert user.run("ingest").returncode == 0
    [session] = [
        one for one in user.result("sessions", "--all")["sessions"] if one["runtime"] == "openclaw"
    ]
    assert (session["id"], session["name"]) == ("one", "plan the garden")
    assert user.result("search", "garden")["hits"]
    printed = user.run("read", "one").stdout
    assert "[read notes.txt]" in printed
    assert "[edit notes.txt]" in printed
    [failed] = user.result("errors", "Error: the gate is shut")["seen"]
    assert "the gate is shut" in json.dumps(failed)
    assert {path.name for path in openclaw.project.iterdir()} > WRITTEN_BY_IT


def test_a_turn_that_was_stopped_hides_nothing(openclaw: OpenClaw) -> None:
    user = StoreUser(openclaw.home)
    hold = openclaw.model.hold("to be stopped")
    command = [*openclaw.command, "agent", "--local", "--session-id", "one", "--message"]
    process = subprocess.Popen(
        [*command, "a question to be stopped"],
        env=openclaw.environment,
        cwd=openclaw.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert hold.reached.wait(120)
        process.terminate()
        process.wait(120)
    finally:
        hold.released.set()
        process.kill()
    time.sleep(1)
    openclaw.run("one", "and another question")
    assert user.run("ingest").returncode == 0
    printed = user.run("read", "one").stdout
    assert "a question to be stopped" in printed
    assert "and another question" in printed
    assert "aborted" not in printed


@pytest.fixture
def claws(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        file = ".openclaw/openclaw.json"
        yield InstalledClients(tmp_path, npm_place, stack, "openclaw", SETTINGS, file=file)


def test_it_hears_of_the_others_edits_and_the_others_of_its_own_until_an_uninstall(
    claws: InstalledClients,
) -> None:
    assert claws.settings.read_bytes() != claws.before
    claws.check_edits_are_heard_both_ways()
    claude, uninstall = claws.users["claude-code"], ("--uninstall", "--runtime", "openclaw")
    assert claws.machine.install(*uninstall).returncode == 0
    assert claws.settings.read_bytes() == claws.before
    assert not (claws.settings.parent / "extensions").exists()
    claude.ask("paint the door")
    assert "paint the door" not in claws.tested.ask("and now")


def test_a_warning_comes_once_with_the_result_of_its_edit_and_its_commands_know_the_session(
    claws: InstalledClients,
) -> None:
    tested, path = claws.tested, str(claws.project / "shared.txt")
    claws.change_what_claude_changed(
        tested.call(EDIT, path, "2", "3"),
        tested.call(EDIT, path, "3", "4"),
        tested.call(SHELL, "echo $OPENCLAW_SESSION_ID"),
    )
    *_, first, second, third = results_in(tested.model.requests[-1].body)
    assert "! shared.txt: edited" in first
    assert "! shared.txt" not in second
    assert "one" in third
    assert (claws.project / "shared.txt").read_text() == "4\n"


def test_a_call_is_made_if_the_hook_hangs(claws: InstalledClients) -> None:
    """OpenClaw itself would refuse the call after 15 seconds."""
    hook = claws.machine.program_dir / "app/hooks/pre_tool_use.py"
    hook.write_text("import time\ntime.sleep(60)\n")
    path = claws.file("slow.txt")
    claws.tested.orders("mend it", claws.tested.call(EDIT, str(path), "1", "2"))
    claws.tested.ask("mend it")
    assert path.read_text() == "2\n"


def test_two_agents_with_one_session_id_hear_of_each_other(claws: InstalledClients) -> None:
    openclaw = claws.tested.program
    assert isinstance(openclaw, OpenClaw)
    settings = json.loads(claws.settings.read_text().partition("\n")[2])
    agents = [{"id": agent, "workspace": str(claws.project)} for agent in ("main", "work")]
    settings["agents"] |= {"ownership": "explicit", "list": agents}
    claws.settings.write_text(json.dumps(settings))

    def say(agent: str, prompt: str) -> str:
        """The last message of the last request for a prompt."""
        openclaw.run("one", prompt, "--agent", agent)
        return str(json.loads(openclaw.requests()[-1])["messages"][-1]["content"])

    say("main", "plan the garden")
    assert '- "plan the garden" (just now, 2 messages)' in say("work", "begin")
    claws.tested.orders("paint the door", claws.tested.call(SHELL, "echo $OPENCLAW_SESSION_AGENT."))
    assert say("main", "paint the door") == "main."
    assert '3 messages): "paint the door"' in say("work", "and now")


def test_a_sub_agent_is_told_with_its_task_and_warned_with_its_edit(
    claws: InstalledClients,
) -> None:
    openclaw, claude = claws.tested.program, claws.users["claude-code"]
    assert isinstance(openclaw, OpenClaw)
    named, shared = claws.file("named.txt"), claws.file("shared.txt")
    edit = {"path": "shared.txt", "edits": [{"oldText": "2", "newText": "3"}]}
    task = {"task": f"Look at ./named.txt.\nTOOL edit {json.dumps(edit)}"}

    def edits(path: Path) -> None:
        claws.reads(claude, path)
        claude.orders(f"mend {path.name}", claude.call(EDIT, str(path), "1", "2"))
        claude.ask(f"mend {path.name}")

    edits(named)
    with openclaw.gateway():
        claws.tested.orders("start a helper", ("sessions_spawn", task))
        hold = claws.tested.model.hold(TASK, lambda request: is_of_helper(request.body))
        openclaw.run("one", "start a helper")
        assert hold.reached.wait(120)
        edits(shared)
        hold.released.set()
        deadline = time.monotonic() + 120
        while not any("! shared.txt: edited" in each for each in of_the_helper(openclaw)):
            assert time.monotonic() < deadline, "it was not warned"
            time.sleep(0.5)
    assert shared.read_text() == "3\n"
    first, *_ = of_the_helper(openclaw)
    assert "! named.txt: edited" in first
    assert "(Claude Code" in first
    others = {*openclaw.requests()} - {*of_the_helper(openclaw)}
    assert not any("! named.txt: edited" in each for each in others)


def is_of_helper(body: dict[str, Any]) -> bool:
    """Return whether a request is the sub-agent's: the prompt of the system has these words too."""
    return any(TASK in str(each["content"]) for each in body["messages"] if each["role"] == "user")


def of_the_helper(openclaw: OpenClaw) -> list[str]:
    """The requests of the sub-agent."""
    return [each for each in openclaw.requests() if is_of_helper(json.loads(each))]
