"""The real omp after an install: told with a prompt and before an edit, and heard by the others."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User, results_in
from clients.npm import NpmPlace
from clients.omp import PACKAGE, Omp
from fakes.fake_llm import FakeLLM
from git_scene import git
from install_machine import Machine, copy_repository, mentions
from runtimes_scene import EDIT, READ
from skills_scene import link_packages

OTHERS = ("claude-code", "pi")
TITLES = {"claude-code": "Claude Code", "pi": "Pi"}


class OmpMachine:
    """A machine with omp and two other runtimes, after an install."""

    def __init__(self, root: Path, place: NpmPlace, stack: ExitStack) -> None:
        self.model = stack.enter_context(FakeLLM())
        self.omp = Omp(root, place(PACKAGE), self.model)
        self.users = {}
        for name in OTHERS:
            model = stack.enter_context(CLIENTS[name].model())
            program = CLIENTS[name].program(root, place(CLIENTS[name].package), model)
            self.users[name] = User(name, program, model)
        self.machine = Machine(root / "home", copy_repository(root / "copy"))
        self.machine.has_environment().has_program().installed()
        self.project = self.omp.project
        git(self.project, "init", "-q", "-b", "main")

    def file(self, name: str) -> Path:
        """Write a file and commit it."""
        path = self.project / name
        path.write_text("1\n")
        git(self.project, "add", "-A")
        git(self.project, "commit", "-q", "-m", name)
        return path

    def ask(self, prompt: str, *calls: tuple[str, dict[str, object]]) -> str:
        """The last request of a prompt that the model answers with calls, as JSON."""
        self.model.scripts[prompt] = [(name, json.dumps(given)) for name, given in calls]
        self.omp.run(*(["--continue"] if self.omp.sessions() else []), prompt)
        return self.omp.requests()[-1]

    def reads(self, *names: str) -> None:
        self.ask("read them", *[("read", {"i": "look", "path": name}) for name in names])


@pytest.fixture
def omps(tmp_path: Path, npm_place: NpmPlace) -> Iterator[OmpMachine]:
    with ExitStack() as stack:
        yield OmpMachine(tmp_path, npm_place, stack)


@pytest.mark.slow
def test_omp_hears_of_the_others_edits_and_the_others_of_its_own(omps: OmpMachine) -> None:
    for name in OTHERS:
        omps.file(f"of-{name}.txt")
        omps.file(f"for-{name}.txt")
    omps.reads(*[f"{way}-{name}.txt" for name in OTHERS for way in ("of", "for")])
    for name, user in omps.users.items():
        theirs, ours = (omps.project / f"{way}-{name}.txt" for way in ("of", "for"))
        user.orders("mend it", user.call(READ, str(ours)), user.call(EDIT, str(theirs), "1", "2"))
        user.ask("mend it")
        assert theirs.read_text() == "2\n"
    request = omps.ask("go on")
    for name in OTHERS:
        told = rf"! of-{name}.txt: edited [^\"]* by [^(]*\({TITLES[name]}\)"
        assert re.search(told, request), name
    patches = [("edit", omps.omp.patch(f"for-{name}.txt", 1, "3")) for name in OTHERS]
    omps.ask("mend ours", *patches)
    for name, user in omps.users.items():
        assert (omps.project / f"for-{name}.txt").read_text() == "3\n"
        assert re.search(rf"! for-{name}.txt: edited [^\"]* by [^(]*\(omp\)", user.ask("go on"))


@pytest.mark.slow
def test_omp_hears_before_it_edits_what_another_session_did_in_the_same_turn(
    omps: OmpMachine,
) -> None:
    omps.file("shared.txt")
    omps.reads("shared.txt")
    patch = omps.omp.patch("shared.txt", 1, "3")
    hold = omps.model.hold("change it")
    turn = threading.Thread(target=omps.ask, args=("change it", ("edit", patch)))
    turn.start()
    claude = omps.users["claude-code"]
    try:
        assert hold.reached.wait(120)
        path = str(omps.project / "shared.txt")
        claude.orders("mend it", claude.call(READ, path), claude.call(EDIT, path, "1", "1\n2"))
        claude.ask("mend it")
    finally:
        hold.released.set()
        turn.join(120)
    result = results_in(json.loads(omps.omp.requests()[-1]))[-1]
    assert "! shared.txt: edited" in result
    assert "(Claude Code)" in result


@pytest.mark.slow
def test_its_commands_know_their_session_and_an_uninstall_leaves_nothing(omps: OmpMachine) -> None:
    installed = [path.name for path in (omps.omp.directory / "extensions").iterdir()]
    assert installed == ["session-memory.ts"]
    who = {"i": "who", "command": "echo $OMP_SESSION_ID > id.txt"}
    omps.ask("say who", ("bash", who))
    [session] = omps.omp.sessions()
    id = session.stem.partition("_")[2]
    assert (omps.project / "id.txt").read_text().strip() == id
    program = str(omps.machine.program_dir / "bin/session-memory")
    sessions = json.loads(omps.machine.run(program, "sessions", "--all", "--json").stdout)
    assert [one["runtime"] for one in sessions["sessions"] if one["id"] == id] == ["omp"]
    assert omps.machine.install("--uninstall").returncode == 0
    # its own databases name the files that it loaded
    theirs = (".session-memory/", ".omp/agent/sessions/", ".omp/agent/agent.db", ".omp/logs/")
    left = [path for path in mentions(omps.machine.home, *theirs) if path.startswith(".omp")]
    assert [path for path in left if not path.endswith("-cache.db")] == []


@pytest.mark.slow
def test_its_model_gets_the_tools_and_skills_after_an_install(omps: OmpMachine) -> None:
    link_packages(omps.machine.program_dir / "env")
    omps.ask("plan the garden")
    request = omps.ask("list them", ("mcp__session_memory_list_sessions", {}))
    assert "plan the garden" in results_in(json.loads(request))[-1]
    assert "session-memory" in request
