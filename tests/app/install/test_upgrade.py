"""Upgrades at any moment: a running process continues with the version it began with."""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from install_machine import (
    MINE,
    REPOSITORY,
    Machine,
    compiled_copy_of_repository,
    compiled_program,
    copy_repository,
    installed_machine,
    tree,
    used_machine,
)
from records import append, exchange
from upgrade_scene import WAIT_SECONDS, answer, former, link_all_packages, pin_as, start_hook

from session_memory import __version__
from session_memory.app.install._program_directory import remove_replaced, replace_directory

__all__ = ["former"]  # a fixture

_BEGINNING = "from __future__ import annotations\n"
# of a version that was made before
_CHECK = re.compile(r'import session_memory\nassert session_memory.__version__ == "\d+"\n')


@pytest.fixture
def machine() -> Machine:
    """An installed machine whose environment has all packages."""
    machine = installed_machine().has_program(is_own=True)
    link_all_packages(machine.program_dir / "env")
    return machine


def make_other_version(package: Path, version: str) -> None:
    """Changes a copy of the package to a version whose modules fail beside those of any other."""
    check = f'import session_memory\nassert session_memory.__version__ == "{version}"\n'
    for path in package.rglob("*.py"):
        source = _CHECK.sub("", path.read_text(), count=1)
        path.write_text(source.replace(_BEGINNING, _BEGINNING + check, 1))
    start = package / "__init__.py"
    start.write_text(re.sub('__version__ = ".*"', f'__version__ = "{version}"', start.read_text()))


def upgrade(machine: Machine, number: int) -> None:
    """Puts another version in the place of the program, as an install does."""
    app = machine.program_dir / "app"
    built = machine.program_dir / f"app-{number:012}"
    remove_replaced(app)
    shutil.copytree(other_version(number), built, copy_function=os.link)
    replace_directory(built, app)


@functools.cache
def other_version(number: int) -> Path:
    """The program in another version, made once for all tests of a process."""
    directory = Path(tempfile.mkdtemp(prefix="session-memory-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    left_out = shutil.ignore_patterns("__pycache__", "prompt.bundle")
    app = shutil.copytree(
        (compiled_program() / "app").resolve(), directory / "app", ignore=left_out
    )
    make_other_version(app / "session_memory", str(number))
    return app


def session_with_news(machine: Machine) -> tuple[Path, str]:
    """A session whose prompts have had news, and the transcript of another that says more."""
    other, own = sorted(machine.claude.rglob("*.jsonl"), key=os.path.getmtime)
    machine.prompt(own.parent, own.stem)
    return other, own.stem


def test_a_hook_that_waits_for_its_event_meanwhile_answers(machine: Machine) -> None:
    other, own = session_with_news(machine)
    for number in range(1, 4):  # the first has a bundle
        hook = start_hook(machine)
        time.sleep(0.5)
        upgrade(machine, number)
        append(other, *exchange("and now?", f"Answer {number}.", at=time.time()))
        assert f"Answer {number}." in answer(machine, hook, other, own)
    assert not list(machine.home.rglob("hook.log"))


def test_no_prompt_is_lost_while_upgrades_go_on(machine: Machine) -> None:
    other, own = session_with_news(machine)
    done = threading.Event()

    def upgrades() -> None:
        for number in range(1, 6):
            upgrade(machine, number)
            time.sleep(random.random())
        done.set()

    upgrading = threading.Thread(target=upgrades)
    upgrading.start()
    asked = 0
    while not done.is_set() or asked < 10:
        append(other, *exchange("and now?", f"Answer {asked}.", at=time.time()))
        hook = start_hook(machine)
        time.sleep(random.random() * 0.2)
        assert f"Answer {asked}." in answer(machine, hook, other, own)
        asked += 1
    upgrading.join()
    assert not list(machine.home.rglob("hook.log"))


def test_a_hook_answers_however_often_the_program_is_replaced_while_it_starts(
    machine: Machine,
) -> None:
    other, own = session_with_news(machine)
    app = machine.program_dir / "app"
    versions = []
    for number in (1, 2):
        upgrade(machine, number)
        versions.append(app.resolve())
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            for version in versions:
                replace_directory(version, app)
                time.sleep(0.0005)

    turning = threading.Thread(target=turn)
    turning.start()
    try:
        for number in range(10):
            append(other, *exchange("and now?", f"Answer {number}.", at=time.time()))
            assert f"Answer {number}." in answer(machine, start_hook(machine), other, own)
        assert (
            machine.run(str(machine.program_dir / "bin/session-memory"), "--version").returncode
            == 0
        )
    finally:
        done.set()
        turning.join()
    assert not list(machine.home.rglob("hook.log"))


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_program_behind_a_link_answers(
    tmp_path: Path, machine: Machine, is_absolute: bool
) -> None:
    other, own = session_with_news(machine)
    source = compiled_copy_of_repository(tmp_path / "source")
    (tmp_path / "link").symlink_to(source if is_absolute else "source")
    append(other, *exchange("and now?", "It is open.", at=time.time()))
    hook = subprocess.Popen(
        [sys.executable, "-I", "-S", tmp_path / "link/hooks/user_prompt_submit.py"],
        env=machine.environ,
        cwd=machine.home,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert "It is open." in answer(machine, hook, other, own)


@contextmanager
def running(machine: Machine, *command: str) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        command,
        env=machine.environ,
        cwd=machine.home,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def stop(program: subprocess.Popen[str]) -> str:
    program.send_signal(signal.SIGINT)
    return program.communicate(timeout=WAIT_SECONDS)[0]


def views_of(link: str) -> Iterator[tuple[str, str]]:
    """Yield the address and the text of every view that needs no session."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    browser.open(link).read()
    root = link.partition("/enter")[0]
    for view in (
        "/",
        "/timeline",
        "/search?q=cart",
        "/memories",
        "/patterns",
        "/patterns/counted",
        "/costs",
        "/costs/counted?since=all",
        "/list",
        "/palette?q=cart",
    ):
        yield view, browser.open(root + view, timeout=WAIT_SECONDS).read().decode()


def test_the_page_goes_on_with_its_version(machine: Machine) -> None:
    command = str(machine.program_dir / "bin/session-memory")
    machine.run(command, "ingest")
    first = (machine.program_dir / "app").resolve()
    with running(machine, command, "page", "--no-browser") as page:
        assert page.stdout
        link = page.stdout.readline().split("the page: ")[1].strip()
        for number in (1, 2, 3):
            upgrade(machine, number)
        for view, text in views_of(link):
            assert "This view failed" not in text, view
            assert "why is the cart empty?" in text or view not in (
                "/",
                "/list",
                "/palette?q=cart",
            ), view
        assert "Error" not in stop(page)
    assert first.exists(), "a directory that is in use stays"
    upgrade(machine, 4)
    assert first.exists(), "nor is one removed that a hook may have begun with"
    then = time.time() - 3600
    os.utime(machine.program_dir / "app", (then, then), follow_symlinks=False)
    upgrade(machine, 5)
    assert not first.exists()
    assert len(list(machine.program_dir.glob("app-*"))) == 2


@pytest.mark.parametrize("words", [("watch",), ("host", "run", "--at", "host")])
def test_what_runs_for_days_goes_on_with_its_version(
    machine: Machine, words: tuple[str, ...]
) -> None:
    command = str(machine.program_dir / "bin/session-memory")
    if words[0] == "host":
        assert machine.run(command, "host", "init", "host").returncode == 0
    with running(machine, command, *words) as program:
        assert program.stdout
        program.stdout.readline()
        for number in (1, 2):
            upgrade(machine, number)
        if words[0] == "host":
            assert (
                machine.run(
                    command, "host", "say", "main", "hello", "--no-wait", "--at", "host"
                ).returncode
                == 0
            )
        else:
            [other, _] = sorted(machine.claude.rglob("*.jsonl"), key=os.path.getmtime)
            append(other, *exchange("what is new?", "Much.", at=time.time()))
        time.sleep(3)
        assert program.poll() is None
        said = stop(program)
    assert not re.search(r"ImportError|ModuleNotFound|AssertionError|Traceback", said), said


@pytest.mark.slow
def test_what_pip_overwrites_goes_on_as_well(tmp_path: Path) -> None:
    machine = used_machine(tmp_path / "home")
    package = copy_repository(tmp_path / "installed") / "session_memory"
    start = f"import sys; sys.path[:0] = {[str(package.parent), sysconfig.get_path('purelib')]}; "
    start += "from session_memory.cli import main; sys.exit(main())"
    python = str(machine.program_dir / "env/bin/python")
    with running(machine, python, "-I", "-S", "-c", start, "page", "--no-browser") as page:
        assert page.stdout
        link = page.stdout.readline().split("the page: ")[1].strip()
        make_other_version(package, "9")
        for template in (package / "extras/page/templates").glob("*.html"):
            template.write_text("{{ of_another_version }}")
        for view, text in views_of(link):
            assert "This view failed" not in text, view
            assert text, view
        assert "Error" not in stop(page)


RUNTIMES = (".codex", ".copilot", ".gemini", ".qwen", ".pi/agent", ".config/opencode")


def ask_server(
    server: subprocess.Popen[str], id: int, method: str, **params: object
) -> dict[str, Any]:
    assert server.stdin
    assert server.stdout
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    return dict(json.loads(server.stdout.readline()))


def test_an_upgrade_from_0_4_loses_and_repeats_nothing(tmp_path: Path, former: Path) -> None:
    machine = Machine(tmp_path / "home", former)
    for folder in RUNTIMES:
        (machine.home / folder).mkdir(parents=True)
    machine.has_claude_code()
    machine.settings.write_text(MINE)
    other, own_path = sorted(machine.claude.rglob("*.jsonl"), key=os.path.getmtime)
    before = tree(machine.home)
    link_all_packages(machine.has_environment().program_dir / "env")
    done = machine.install()
    assert done.returncode == 0, done.stdout + done.stderr
    own = own_path.stem
    assert "A cookie." in machine.prompt(own_path.parent, own)
    command = str(machine.program_dir / "bin/session-memory")
    assert machine.run(command, "--version").stdout.split()[-1].startswith("0.4.2")
    assert machine.run(command, "ingest").returncode == 0
    assert machine.run(command, "host", "init", "host").returncode == 0

    with ExitStack() as stack:
        page = stack.enter_context(running(machine, command, "page", "--no-browser"))
        host = stack.enter_context(running(machine, command, "host", "run", "--at", "host"))
        server = stack.enter_context(
            subprocess.Popen(
                [command, "mcp"],
                env=machine.environ,
                cwd=machine.home,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        stack.callback(server.kill)
        assert page.stdout
        assert host.stdout
        link = page.stdout.readline().split("the page: ")[1].strip()
        host.stdout.readline()
        hook = start_hook(machine)
        stack.callback(hook.kill)
        ask_server(
            server,
            1,
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )
        pin_as(machine, REPOSITORY)
        machine = Machine(machine.home, compiled_copy_of_repository(tmp_path / "today"))
        done = machine.install()
        assert done.returncode == 0, done.stdout + done.stderr
        assert machine.run(command, "--version").stdout.split()[-1] == __version__

        append(other, *exchange("and now?", "Answer one.", at=time.time()))
        said = answer(machine, hook, other, own)  # by 0.4.2, which began before
        assert "Answer one." in said
        assert "A cookie." not in said
        append(other, *exchange("and now?", "Answer two.", at=time.time()))
        said = machine.prompt(own_path.parent, own)
        assert "Answer two." in said
        assert "Answer one." not in said
        assert "A cookie." not in said

        found = ask_server(
            server, 2, "tools/call", name="search_sessions", arguments={"query": "cookie"}
        )
        assert "cookie" in json.dumps(found["result"]), found
        for view, text in views_of(link):
            assert "This view failed" not in text, view
        assert (
            machine.run(
                command, "host", "say", "main", "hello", "--no-wait", "--at", "host"
            ).returncode
            == 0
        )
        time.sleep(2)
        assert (page.poll(), host.poll(), server.poll()) == (None, None, None)
        for program in (page, host):
            assert not re.search(r"ImportError|ModuleNotFound|Traceback", stop(program))
    assert "cookie" in machine.run(command, "search", "cookie").stdout
    assert not list(machine.home.rglob("hook.log"))

    done = machine.run(command, "uninstall", "--purge", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    left = tree(machine.home)
    changed = {name for name, content in before.items() if left.get(name) != content}
    assert changed == {str(other.relative_to(machine.home))}
