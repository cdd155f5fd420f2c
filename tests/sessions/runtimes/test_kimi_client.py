"""The real Kimi Code after an install: told with its prompts, refused an edit, and heard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.everyone import results_in
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from clients.others import Kimi
from install_machine import mentions
from runtimes_scene import EDIT, SHELL
from skills_scene import link_packages

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


@pytest.mark.client
def test_its_model_has_the_tools_and_an_uninstall_gives_the_settings_back(
    kimis: InstalledClients,
) -> None:
    kimi, machine = kimis.tested, kimis.machine
    link_packages(machine.program_dir / "env")
    kimi.orders("list them", ("mcp__session-memory__list_sessions", {}))
    kimi.ask("list them")
    with kimi.model.lock:
        results = [results_in(request.body) for request in kimi.model.requests]
    assert "list them" in max(results, key=len)[-1]
    doctor = json.loads(
        machine.run(str(machine.program_dir / "bin/session-memory"), "doctor", "--json").stdout
    )
    assert "UserPromptSubmit" in json.dumps(doctor)
    assert kimis.settings.read_bytes() != SETTINGS.encode()
    assert machine.install("--uninstall").returncode == 0
    assert kimis.settings.read_bytes() == SETTINGS.encode()
    theirs = (".session-memory/", ".kimi-code/sessions/", ".kimi-code/logs/", ".kimi-code/cache/")
    left = mentions(machine.home, *theirs)
    assert [path for path in left if ".kimi-code" in str(path)] == []
    kimi.orders("say who", kimi.call(SHELL, "env > env.txt"))
    kimi.ask("say who")
    [session] = program_of(kimis).sessions()
    assert session.removeprefix("session_") not in (kimis.project / "env.txt").read_text()
