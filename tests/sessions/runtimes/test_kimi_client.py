"""The real Kimi Code after an install: told with its prompts, refused an edit, and heard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from clients.others import Kimi
from clients.terminal import Terminal
from runtimes_scene import EDIT, SHELL
from skills_scene import link_packages

from session_memory.sessions.states import ASKS, WAITS

SETTINGS = '# the person\'s own\r\ntelemetry = false\r\n\r\n[[hooks]]\r\nevent = "Stop"\r\ncommand = "true"'


@pytest.fixture
def kimis(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        yield InstalledClients(tmp_path, npm_place, stack, "kimi", SETTINGS)


def program_of(kimis: InstalledClients) -> Kimi:
    program = kimis.tested.program
    assert isinstance(program, Kimi)
    return program


@pytest.mark.client
def test_kimi_code_hears_of_the_others_edits_and_the_others_of_its_own(
    kimis: InstalledClients,
) -> None:
    kimis.check_edits_are_heard_both_ways()


@pytest.mark.client
def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(
    kimis: InstalledClients,
) -> None:
    kimis.check_an_edit_is_refused_once()


@pytest.mark.client
def test_an_edit_of_its_sub_agent_is_refused_once_and_then_heard(kimis: InstalledClients) -> None:
    kimi, claude, path = kimis.tested, kimis.users["claude-code"], kimis.file("shared.txt")
    kimis.reads(kimi, path)
    kimis.reads(claude, path)
    claude.orders("mend it", claude.call(EDIT, str(path), "1", "2"))
    claude.ask("mend it")
    edit, task = kimi.call(EDIT, str(path), "2", "3"), "change what is shared"
    kimi.orders("delegate it", ("Agent", {"description": "change", "prompt": task}))
    kimi.orders(task, edit, edit)
    told = kimi.ask("delegate it")
    assert "! shared.txt: edited" in told
    assert path.read_text() == "3\n"
    assert "! shared.txt: edited" in claude.ask("go on")


@pytest.mark.client
def test_an_update_is_not_repeated_after_a_stopped_answer_or_in_a_fork(
    kimis: InstalledClients,
) -> None:
    kimi, claude, program = kimis.tested, kimis.users["claude-code"], program_of(kimis)
    kimi.ask("begin")
    [original] = program.sessions()
    claude.ask("paint the door")
    hold = kimi.model.hold("wait here")
    words = [*program.command, "-r", original, "-p", "wait here"]
    run = subprocess.Popen(
        words,
        env=program.environment,
        cwd=program.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert hold.reached.wait(120)
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(120) == 130
    finally:
        hold.released.set()
        run.kill()
    title = '\\"paint the door\\" (Claude Code'
    assert kimi.ask("go on").count(title) == 1
    program.execute("fork", original, "-y")
    [fork] = {*program.sessions()} - {original}
    claude.has_begun = False  # another session
    claude.ask("oil the hinge")
    program.run("-r", fork, "go on in the fork")
    [request] = [text for text in program.requests() if "go on in the fork" in text]
    assert request.count(title) == 1
    assert "oil the hinge" in request
    assert "(Kimi Code" not in request


class KimiTerminal:
    """Kimi Code in a terminal, in a directory that its user trusts."""

    def __init__(self, kimis: InstalledClients) -> None:
        program = program_of(kimis)
        self.machine = kimis.machine
        environment = {**program.environment, "TERM": "xterm-256color"}
        self.screen = Terminal(program.command, program.project, environment)
        self.screen.wait(lambda: self.screen.shows("Trust this folder"), "its question")
        self.screen.press("\r")
        self.screen.wait(lambda: self.screen.shows("No session yet"), "its prompt")

    def enter(self, line: str) -> None:
        """Type a line, and Return a while later, else it would belong to the line."""
        drawn = self.screen.drawn
        self.screen.press(line)
        self.screen.wait(lambda: self.screen.shows(line, drawn), "what was typed")
        time.sleep(2)
        self.screen.press("\r")

    def state(self) -> str:
        """Return the state of its session."""
        printed = self.machine.run(str(self.command), "agents", "--json").stdout
        return "".join([each["state"] for each in json.loads(printed)["agents"]])

    @property
    def command(self) -> Path:
        return self.machine.program_dir / "bin/session-memory"

    def archives(self) -> list[Path]:
        return [*(self.machine.home / ".session-memory/conversations").glob("*.md")]


@pytest.fixture
def terminal(kimis: InstalledClients, tmp_path: Path) -> Iterator[KimiTerminal]:
    """A terminal whose user wants notices from a program, which notes them in a file."""
    program = tmp_path / "notice.sh"
    program.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/notices"\n')
    program.chmod(0o755)
    link_packages(kimis.machine.program_dir / "env")
    command = str(kimis.machine.program_dir / "bin/session-memory")
    for words in (("notice_command", f"[{program}]"), ("notices", "command")):
        assert kimis.machine.run(command, "config", *words).returncode == 0
    opened = KimiTerminal(kimis)
    with closing(opened.screen):
        yield opened


@pytest.mark.client
def test_its_states_in_the_terminal_are_seen_and_a_notice_says_that_it_waits(
    kimis: InstalledClients, terminal: KimiTerminal, tmp_path: Path
) -> None:
    screen, made = terminal.screen, kimis.project / "made.txt"
    kimis.tested.orders("make it now", kimis.tested.call(SHELL, "echo 1 > made.txt"))
    terminal.enter("make it now")
    screen.wait(lambda: screen.shows("Run this command?"), "its question")
    screen.wait(lambda: terminal.state() == ASKS, "the question in the list")
    screen.press("1")
    screen.wait(made.exists, "the file")
    screen.wait(lambda: terminal.state() == WAITS, "the end of the turn in the list")
    notices = tmp_path / "notices"
    screen.wait(lambda: notices.exists() and "waits for you" in notices.read_text(), "a notice")


@pytest.mark.client
def test_a_compaction_and_the_end_in_the_terminal_are_archived(
    kimis: InstalledClients, terminal: KimiTerminal
) -> None:
    screen = terminal.screen
    terminal.enter("paint the door")
    screen.wait(lambda: terminal.state() == WAITS, "an answer")
    assert terminal.archives() == []
    terminal.enter("/compact")
    screen.wait(lambda: terminal.archives() != [], "the archive of the compaction")
    screen.wait(lambda: screen.shows("Compaction complete"), "the compaction")
    [archive] = terminal.archives()
    assert "paint the door" in archive.read_text()
    archive.unlink()
    terminal.enter("oil the hinge")
    screen.wait(lambda: terminal.state() == WAITS, "another answer")
    terminal.enter("/exit")
    deadline = time.monotonic() + 60
    while not terminal.archives():
        assert time.monotonic() < deadline, "the end was not archived"
        time.sleep(0.1)
    assert "oil the hinge" in terminal.archives()[0].read_text()


@pytest.mark.client
def test_its_model_has_the_tools_and_an_uninstall_gives_the_settings_back(
    kimis: InstalledClients,
) -> None:
    kimi, machine = kimis.tested, kimis.machine
    kimis.check_its_model_has_the_tools("mcp__session-memory__list_sessions")
    doctor = machine.run(str(machine.program_dir / "bin/session-memory"), "doctor", "--json")
    assert "UserPromptSubmit" in doctor.stdout
    kimis.check_an_uninstall_gives_the_settings_back("sessions/", "logs/", "cache/")
    kimi.orders("say who", kimi.call(SHELL, "env > env.txt"))
    kimi.ask("say who")
    [session] = program_of(kimis).sessions()
    assert session.removeprefix("session_") not in (kimis.project / "env.txt").read_text()
