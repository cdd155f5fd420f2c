"""A machine with three real runtimes after an install: the one that is tested, Claude Code and Pi."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from clients.everyone import CLIENTS, User, results_in
from clients.npm import NpmPlace
from git_scene import git
from install_machine import Machine, copy_repository, mentions
from runtimes_scene import EDIT, READ, SHELL
from skills_scene import link_packages

from session_memory.sessions.runtimes.table import all_runtimes

OTHERS = ("claude-code", "pi")
TITLES = {each.name: each.TITLE for each in all_runtimes()}


class InstalledClients:
    """The machine, on which the tested runtime `name` had these `settings` before the install.

    If the program needs a `file` of settings, they are put in front of its text."""

    def __init__(
        self,
        root: Path,
        place: NpmPlace,
        stack: ExitStack,
        name: str,
        settings: str,
        *,
        file: str = "",
    ) -> None:
        self.users = {}
        for each in (name, *OTHERS):
            model = stack.enter_context(CLIENTS[each].model())
            program = CLIENTS[each].program(root, place(CLIENTS[each].package), model)
            self.users[each] = User(each, program, model)
        self.settings = root / "home" / (file or CLIENTS[name].settings)
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        there = self.settings.read_text() if file else ""
        self.before = (settings + there).encode()
        self.settings.write_bytes(self.before)
        self.machine = Machine(root / "home", copy_repository(root / "copy"))
        self.machine.has_environment().has_program().installed()
        self.tested = self.users[name]
        self.project = self.tested.program.project
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

    def check_its_model_has_the_tools(self, tool: str, *calls: tuple[str, Any]) -> None:
        """After these calls, `tool` gives the tested runtime's model the list of sessions."""
        tested = self.tested
        link_packages(self.machine.program_dir / "env")
        tested.orders("list them", *calls, (tool, {}))
        tested.ask("list them")
        with tested.model.lock:
            results = [results_in(request.body) for request in tested.model.requests]
        assert "list them" in max(results, key=len)[-1]

    def check_an_uninstall_gives_the_settings_back(self, *theirs: str) -> str:
        """An uninstall leaves the bytes of before, and nothing of ours in the tested runtime's
        directory except below `theirs` there. Return what it printed."""
        assert self.settings.read_bytes() != self.before
        done = self.machine.install("--uninstall")
        assert done.returncode == 0
        assert self.settings.read_bytes() == self.before
        home = self.machine.home
        directory = home / self.settings.relative_to(home).parts[0]
        assert mentions(directory, *theirs) == []
        return done.stdout

    def check_edits_are_heard_both_ways(self) -> None:
        """The tested runtime hears of the others' edits, and the others of its own."""
        tested = self.tested
        files = {
            name: (self.file(f"of-{name}.txt"), self.file(f"for-{name}.txt")) for name in OTHERS
        }
        self.reads(tested, *[path for pair in files.values() for path in pair])
        for name, (theirs, ours) in files.items():
            user = self.users[name]
            self.reads(user, ours)
            user.orders("mend it", user.call(EDIT, str(theirs), "1", "2"))
            user.ask("mend it")
            assert theirs.read_text() == "2\n"
        request = tested.ask("go on")
        for name in OTHERS:
            line = rf"! of-{name}.txt: edited [^\"]* by [^(]*\({TITLES[name]}\)"
            assert re.search(line, request), name
        ways = dict(zip(OTHERS, (EDIT, SHELL)))
        calls = [
            tested.call(EDIT, str(files[name][1]), "1", "3")
            if way == EDIT
            else tested.call(SHELL, f"sed -i s/1/3/ {files[name][1]}")
            for name, way in ways.items()
        ]
        tested.orders("mend ours", *calls)
        tested.ask("mend ours")
        for name in OTHERS:
            assert files[name][1].read_text() == "3\n"
            request = self.users[name].ask("go on")
            line = rf"! for-{name}.txt: edited [^\"]* by [^(]*\({TITLES[tested.name]}\)"
            assert re.search(line, request), name

    def check_an_edit_is_refused_once(self) -> None:
        """An edit of a file is refused once, if Claude Code edited it since this turn began."""
        edit = self.tested.call(EDIT, str(self.project / "shared.txt"), "2", "3")
        self.change_what_claude_changed(edit, edit)
        assert (self.project / "shared.txt").read_text() == "3\n"
        assert "The call was not run." in self.tested.requests()
        assert "! shared.txt: edited" in self.tested.requests()

    def change_what_claude_changed(self, *calls: tuple[str, Any]) -> None:
        """Make these calls in a turn in which Claude Code puts 2 for 1 in the file shared.txt."""
        tested, claude = self.tested, self.users["claude-code"]
        path = self.file("shared.txt")
        self.reads(tested, path)
        hold = tested.model.hold("change it")
        turn = threading.Thread(target=tested.program.say, args=("change it", *tested.program.LAST))
        turn.start()
        try:
            assert hold.reached.wait(120)
            self.reads(claude, path)
            claude.orders("mend it", claude.call(EDIT, str(path), "1", "2"))
            claude.ask("mend it")
            tested.orders("change it", *calls)
        finally:
            hold.released.set()
            turn.join(120)
