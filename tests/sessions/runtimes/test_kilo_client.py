"""The real Kilo after an install: it hears of the others' edits, they hear of its own, and nothing
remains of the install."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from git_scene import git
from install_machine import Machine, copy_repository, mentions
from runtimes_scene import EDIT, READ, SHELL

OTHERS = {"claude-code": "Claude Code", "pi": "Pi"}
COMMENT = "// the person's own\n"


class KiloMachine:
    """A machine with Kilo and two other runtimes, after an install."""

    def __init__(self, root: Path, place: NpmPlace, stack: ExitStack) -> None:
        self.users = {}
        for name in ("kilo", *OTHERS):
            model = stack.enter_context(CLIENTS[name].model())
            program = CLIENTS[name].program(root, place(CLIENTS[name].package), model)
            self.users[name] = User(name, program, model)
        self.kilo = self.users["kilo"]
        self.project = self.kilo.program.project
        self.settings = root / "home/.config/kilo/kilo.json"
        self.settings.write_text(COMMENT + self.settings.read_text())
        self.before = self.settings.read_bytes()
        self.source = copy_repository(root / "copy")
        self.machine = Machine(root / "home", self.source)
        self.machine.has_environment().has_program()
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
def kilos(tmp_path: Path, npm_place: NpmPlace) -> Iterator[KiloMachine]:
    with ExitStack() as stack:
        yield KiloMachine(tmp_path, npm_place, stack)


@pytest.mark.slow
def test_kilo_hears_of_the_others_edits_and_the_others_of_its_own(kilos: KiloMachine) -> None:
    kilos.machine.installed()
    assert kilos.settings.read_bytes() != kilos.before
    kilo = kilos.kilo
    files = {name: (kilos.file(f"of-{name}.txt"), kilos.file(f"for-{name}.txt")) for name in OTHERS}
    kilos.reads(kilo, *[path for pair in files.values() for path in pair])
    for name, (theirs, ours) in files.items():
        user = kilos.users[name]
        kilos.reads(user, ours)
        user.orders("mend it", user.call(EDIT, str(theirs), "1", "2"))
        user.ask("mend it")
        assert theirs.read_text() == "2\n"
    request = kilo.ask("go on")
    for name, title in OTHERS.items():
        assert re.search(rf"! of-{name}.txt: edited [^\"]* by [^(]*\({title}\)", request), name
    ways = dict(zip(OTHERS, (EDIT, SHELL)))
    calls = [
        kilo.call(EDIT, str(files[name][1]), "1", "3")
        if way == EDIT
        else kilo.call(SHELL, f"sed -i s/1/3/ {files[name][1]}")
        for name, way in ways.items()
    ]
    kilo.orders("mend ours", *calls)
    kilo.ask("mend ours")
    for name in OTHERS:
        assert files[name][1].read_text() == "3\n"
        request = kilos.users[name].ask("go on")
        assert re.search(rf"! for-{name}.txt: edited [^\"]* by [^(]*\(Kilo\)", request), name
    assert kilos.machine.install("--uninstall").returncode == 0
    assert kilos.settings.read_bytes() == kilos.before
    assert mentions(kilos.machine.home / ".config") == []


@pytest.mark.slow
def test_a_plugin_of_opencode_that_a_project_names_says_that_it_runs_in_kilo(
    kilos: KiloMachine,
) -> None:
    plugin = kilos.source / "hooks" / "opencode" / "index.js"
    settings = {"plugin": [plugin.as_uri()]}
    (kilos.project / "opencode.json").write_text(json.dumps(settings))
    kilo = kilos.kilo
    kilo.orders("say who", kilo.call(SHELL, "echo $KILO_SESSION_ID,$OPENCODE_SESSION_ID > id.txt"))
    kilo.ask("say who")
    assert re.fullmatch(r"ses_\w+,\n", (kilos.project / "id.txt").read_text())
