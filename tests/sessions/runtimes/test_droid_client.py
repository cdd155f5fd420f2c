"""The real Droid after an install: told at its start, refused an edit, and heard by the others."""

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
from git_scene import git
from install_machine import Machine, copy_repository, mentions
from runtimes_scene import EDIT, READ, SHELL
from skills_scene import link_packages

COMMENTED = """// the person's own
{
  "hooks": { /* none yet */ },
  "enableHooks": true
}
"""
OTHERS = ("claude-code", "pi")
TITLES = {"claude-code": "Claude Code", "pi": "Pi", "droid": "Droid"}


class DroidMachine:
    """A machine with Droid and two other runtimes, after an install."""

    def __init__(self, root: Path, place: NpmPlace, stack: ExitStack) -> None:
        self.users = {}
        for name in ("droid", *OTHERS):
            model = stack.enter_context(CLIENTS[name].model())
            program = CLIENTS[name].program(root, place(CLIENTS[name].package), model)
            self.users[name] = User(name, program, model)
        self.settings = root / "home/.factory/settings.json"
        self.settings.parent.mkdir()
        self.settings.write_text(COMMENTED)
        self.machine = Machine(root / "home", copy_repository(root / "copy"))
        self.machine.has_environment().has_program().installed()
        self.droid = self.users["droid"]
        self.project = self.droid.program.project
        git(self.project, "init", "-q", "-b", "main")

    def file(self, name: str) -> Path:
        """Write a file and commit it."""
        path = self.project / name
        path.write_text("1\n")
        git(self.project, "add", "-A")
        git(self.project, "commit", "-q", "-m", name)
        return path

    def reads(self, user: User, *paths: Path) -> None:
        user.orders("read them", *[user.call(READ, str(path)) for path in paths])
        user.ask("read them")


@pytest.fixture
def droids(tmp_path: Path, npm_place: NpmPlace) -> Iterator[DroidMachine]:
    with ExitStack() as stack:
        yield DroidMachine(tmp_path, npm_place, stack)


@pytest.mark.slow
def test_droid_hears_of_the_others_edits_and_the_others_of_its_own(droids: DroidMachine) -> None:
    droid = droids.droid
    files = {
        name: (droids.file(f"of-{name}.txt"), droids.file(f"for-{name}.txt")) for name in OTHERS
    }
    droids.reads(droid, *[path for path, _ in files.values()])
    for name, (theirs, ours) in files.items():
        user = droids.users[name]
        droids.reads(user, ours)
        user.orders("mend it", user.call(EDIT, str(theirs), "1", "2"))
        user.ask("mend it")
        assert theirs.read_text() == "2\n"
    request = droid.ask("go on")
    for name in OTHERS:
        assert re.search(rf"! of-{name}.txt: edited [^\"]* by [^(]*\({TITLES[name]}\)", request), (
            name
        )
    ways = dict(zip(OTHERS, (EDIT, SHELL)))
    calls = [
        droid.call(EDIT, str(files[name][1]), "1", "3")
        if way == EDIT
        else droid.call(SHELL, f"sed -i s/1/3/ {files[name][1]}")
        for name, way in ways.items()
    ]
    droid.orders("mend ours", *calls)
    droid.ask("mend ours")
    for name in OTHERS:
        assert files[name][1].read_text() == "3\n"
        request = droids.users[name].ask("go on")
        assert re.search(rf"! for-{name}.txt: edited [^\"]* by [^(]*\(Droid\)", request), name


@pytest.mark.slow
def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(
    droids: DroidMachine,
) -> None:
    droid, claude = droids.droid, droids.users["claude-code"]
    path = droids.file("shared.txt")
    droids.reads(droid, path)
    hold = droid.model.hold("change it")
    turn = threading.Thread(target=droid.program.say, args=("change it", *droid.program.LAST))
    turn.start()
    try:
        assert hold.reached.wait(120)
        droids.reads(claude, path)
        claude.orders("mend it", claude.call(EDIT, str(path), "1", "2"))
        claude.ask("mend it")
        again = droid.call(EDIT, str(path), "2", "3")
        droid.orders("change it", again, again)
    finally:
        hold.released.set()
        turn.join(120)
    assert path.read_text() == "3\n"
    assert "The call was not run." in droid.requests()
    assert "! shared.txt: edited" in droid.requests()


@pytest.mark.slow
def test_its_model_finds_the_tools_after_an_install(droids: DroidMachine) -> None:
    link_packages(droids.machine.program_dir / "env")
    tool = "session-memory___list_sessions"
    search = ("ToolSearch", {"query": f"select:{tool}"})
    droids.droid.orders("list them", search, (tool, {}))
    droids.droid.ask("list them")
    with droids.droid.model.lock:
        results = [results_in(request.body) for request in droids.droid.model.requests]
    assert "list them" in max(results, key=len)[-1]


@pytest.mark.slow
def test_its_commands_know_their_session_and_an_uninstall_gives_the_settings_back(
    droids: DroidMachine,
) -> None:
    droid = droids.droid
    assert droids.settings.read_text() != COMMENTED
    droid.orders("say who", droid.call(SHELL, "echo $DROID_SESSION_ID > id.txt"))
    droid.ask("say who")
    id = (droids.project / "id.txt").read_text().strip()
    assert id == droid.program.last_session()
    done = droids.machine.run(
        str(droids.machine.program_dir / "bin/session-memory"), "sessions", "--all", "--json"
    )
    sessions = json.loads(done.stdout)["sessions"]
    assert [one["runtime"] for one in sessions if one["id"] == id] == ["droid"]
    assert droids.machine.install("--uninstall").returncode == 0
    assert droids.settings.read_text() == COMMENTED
    theirs = (".session-memory/", ".factory/sessions/", ".factory/logs/", ".local/share/")
    assert [
        path for path in mentions(droids.machine.home, *theirs) if ".factory" in str(path)
    ] == []
