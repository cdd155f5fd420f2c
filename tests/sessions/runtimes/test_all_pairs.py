"""What is done in any runtime is told in every other: the real programs, each with a fake model, in
one home directory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from git_scene import git
from install_machine import NOBODY_LISTENS, PYTHON, Machine, copy_repository, mentions
from runtimes_scene import EDIT, READ, SHELL, WAYS

from session_memory.sessions.runtimes.table import all_runtimes

RUNTIMES = {one.name: one for one in all_runtimes() if one.PROMPT_EVENT}
PROMPT, TURN = "prompt", "turn"
WAIT_SECONDS = 120
TOLD = "A record of your other sessions, not instructions:"
AT_ONCE = 2  # sessions that work between two prompts: all of them fit into an update
MOST_PROMPTS = 4  # in which all collisions are told, and after which nothing is
# What the programs write themselves, and what is kept of the sessions. What remains is ours, and
# must be gone.
THEIRS = (
    ".session-memory/",
    ".claude/projects/",
    ".claude/backups/",
    ".claude/history",
    ".claude.json",
    ".cache/",
    ".codex/sessions/",
    ".codex/log",
    ".cline/data/sessions/",
    ".cline/data/db/",
    ".cline/data/logs/",
    ".codex/history",
    ".codex/state",
    ".codex/logs",
    ".copilot/session-state/",
    ".copilot/logs/",
    ".copilot/session-store",
    ".copilot/settings.json",
    ".factory/cache/",
    ".factory/logs/",
    ".factory/sessions/",
    ".pi/agent/sessions/",
    ".qwen/projects/",
    ".qwen/extension-store/",
    ".qwen/debug/",
    ".local/share/session-memory/env/",
    ".npm/",
    ".bun/install/cache/",
    ".omp/agent/agent.db",
    ".omp/cache/",
    ".openclaw/agents/",
    ".openclaw/state/",
    ".gemini/tmp/",
    ".kimi-code/sessions/",
    ".kimi-code/logs/",
    ".gemini/history/",
    ".hermes/logs/",
    ".hermes/shell-hooks-allowlist.json",
    ".hermes/state.db",
    ".local/share/opencode/",
    ".local/state/opencode/",
    ".local/share/kilo/",
    ".local/state/kilo/",
)


@pytest.fixture
def users(tmp_path: Path, npm_place: NpmPlace) -> Iterator[dict[str, User]]:
    """Each runtime with its user's settings, and a `python3` on the PATH for those that take
    plugins."""
    assert CLIENTS.keys() == RUNTIMES.keys()
    shim = tmp_path / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
    shim.chmod(0o755)
    with ExitStack() as stack:
        found = {}
        for name, client in CLIENTS.items():
            model = stack.enter_context(client.model())
            place = npm_place(client.package)
            program = client.program(tmp_path, place, model)
            program.environment.update(
                PIP_INDEX_URL=NOBODY_LISTENS, PIP_RETRIES="0", PIP_CONFIG_FILE=os.devnull
            )
            program.environment["PATH"] = f"{shim.parent}{os.pathsep}{program.environment['PATH']}"
            found[name] = User(name, program, model)
            if client.settings:
                path = tmp_path / "home" / client.settings
                path.parent.mkdir(exist_ok=True)
                path.write_text(client.text)
        yield found


@pytest.mark.slow
def test_every_runtime_is_told_what_was_done_in_every_other_after_one_install(
    tmp_path: Path, users: dict[str, User]
) -> None:
    machine = (
        Machine(tmp_path / "home", copy_repository(tmp_path / "copy"))
        .has_environment()
        .has_program()
    )
    machine.installed()
    check_all_pairs(users)
    assert machine.install("--uninstall").returncode == 0
    check_gone(machine.home)


@pytest.mark.slow
def test_every_runtime_is_told_what_was_done_in_every_other_with_the_plugin_of_each(
    tmp_path: Path, users: dict[str, User]
) -> None:
    source = copy_repository(tmp_path / "copy")
    for user in users.values():
        user.program.add_plugin(source)
    check_all_pairs(users)
    for user in users.values():
        user.program.remove_plugin(source)
    check_gone(tmp_path / "home", has_settings=False)


@pytest.mark.slow
def test_every_runtime_is_told_which_of_its_files_every_other_edited(
    tmp_path: Path, users: dict[str, User]
) -> None:
    """With a prompt and, if it has the event, in the middle of a turn, which began before the
    others wrote."""
    machine = (
        Machine(tmp_path / "home", copy_repository(tmp_path / "copy"))
        .has_environment()
        .has_program()
    )
    machine.installed()
    project = users["pi"].program.project
    readers = [
        (name, when)
        for name in users
        for when in (PROMPT, TURN)
        if when == PROMPT or RUNTIMES[name].TOOLS
    ]
    scenes = [
        (*reader, writer, way)
        for reader in readers
        for writer in users
        for way in WAYS
        if writer != reader[0]
    ]
    paths = {scene: project / f"{number}.txt" for number, scene in enumerate(scenes)}
    for path in paths.values():
        path.write_text("1\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "begin")
    for name, user in users.items():
        user.orders(
            "read them",
            *[user.call(READ, str(path)) for scene, path in paths.items() if scene[0] == name],
        )
        user.program.say("read them")
    sessions = session_ids(machine, project)
    session = {
        name: [word.format(sessions[name]) for word in user.program.BY_ID]
        for name, user in users.items()
    }
    with ThreadPoolExecutor(len(users)) as pool, ExitStack() as stack:
        turns = {}
        for name in [name for name, when in readers if when == TURN]:
            hold = users[name].model.hold("change them")
            stack.callback(hold.released.set)
            turns[name] = hold, pool.submit(users[name].program.say, "change them", *session[name])
            assert hold.reached.wait(WAIT_SECONDS), name
        for name, user in users.items():
            mine = {
                way: [path for scene, path in paths.items() if scene[2:] == (name, way)]
                for way in WAYS
            }
            edits = [
                user.call(kind, str(path), "1", "2") for path in mine[EDIT] for kind in (READ, EDIT)
            ]
            user.orders(
                f"mend {name}",
                *edits,
                user.call(SHELL, f"sed -i s/1/2/ {' '.join(map(str, mine[SHELL]))}"),
            )
            user.program.say(f"mend {name}")
            assert [path for path in mine[EDIT] + mine[SHELL] if path.read_text() != "2\n"] == [], (
                name
            )
        for name, (hold, turn) in turns.items():
            mine = [path for scene, path in paths.items() if scene[:2] == (name, TURN)]
            users[name].orders(
                "change them", *[users[name].call(EDIT, str(path), "2", "3") for path in mine]
            )
            hold.released.set()
            turn.result(WAIT_SECONDS)
    missed = [
        scene
        for scene, path in paths.items()
        if scene[1] == TURN and not is_told(users, scene, path)
    ]
    for name, user in users.items():
        mine = {scene: path for scene, path in paths.items() if scene[:2] == (name, PROMPT)}
        for _ in range(MOST_PROMPTS):
            user.program.say("go on", *session[name])
            if all(is_told(users, *one) for one in mine.items()):
                break
        missed += [scene for scene, path in mine.items() if not is_told(users, scene, path)]
    assert missed == []


def session_ids(machine: Machine, project: Path) -> dict[str, str]:
    """The ids of the sessions, one of each runtime."""
    command = str(machine.program_dir / "bin" / "session-memory")
    done = machine.run(command, "sessions", "--all", "--json", cwd=project)
    return {one["runtime"]: one["id"] for one in json.loads(done.stdout)["sessions"]}


def is_told(users: dict[str, User], scene: tuple[str, str, str, str], path: Path) -> bool:
    """Tell whether the reader has read what a writer did to a file."""
    reader, _, writer, _ = scene
    line = rf'! [^:!]*\b{path.name}\b[^:!]*: edited [^"!]* by \\"[^"]*\\" \({RUNTIMES[writer].TITLE}\), after you read'
    return re.search(line, users[reader].requests()) is not None


def check_all_pairs(users: dict[str, User]) -> None:
    """Every runtime hears of each of the others that has worked before any other works, and then of
    nothing more."""
    for name, user in users.items():
        user.ask(f"plant {name}")
    missed = []
    for name, user in users.items():
        others = [other for other in users if other != name]
        request = user.ask("go on")  # all others have worked since its last prompt
        for first in range(0, len(others), AT_ONCE):
            working = others[first : first + AT_ONCE]
            for other in working:
                users[other].ask("water it")
            before = request
            for _ in range(MOST_PROMPTS):
                request = user.ask("go on")
                if all(
                    lines_about(other, request) > lines_about(other, before) for other in working
                ):
                    break
            missed += [
                (name, other, request.rpartition(TOLD)[2][:600])
                for other in working
                if lines_about(other, request) <= lines_about(other, before)
            ]
        for _ in range(MOST_PROMPTS):  # an update that a busy machine kept back comes again
            told, request = request.count(TOLD), user.ask("go on")
            if request.count(TOLD) == told:
                break
        else:
            pytest.fail(f"{name} is told something with each prompt: {request.rpartition(TOLD)[2]}")
    assert missed == []


def lines_about(other: str, request: str) -> int:
    """Count the lines about a session in the updates of a conversation.

    It goes by its first prompt or, in OpenCode, by the title that the model makes of it: the fake
    one echoes it."""
    return len(re.findall(rf'- \\"[^"]*plant {other}[^"]*\\" \(', request))


def check_gone(home: Path, *, has_settings: bool = True) -> None:
    """Nothing is left that is ours, and the settings are as they were."""
    assert mentions(home, *THEIRS) == []
    for client in CLIENTS.values():
        if client.settings and has_settings:
            assert (home / client.settings).read_text() == client.text
