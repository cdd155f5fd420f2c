"""Exit codes: 2 for an invalid call, 1 for a missing thing or an impossible action."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
import share
from own_process import ROOT
from store_scene import COMMAND, StoreUser, trip

from session_memory.app.install.program import launcher_text
from session_memory.cli import COMMANDS, main
from session_memory.sessions.settings.program import ProgramPaths

WRONG = """
--nothing
agents --limit 0
agents --nothing
since banana
since --limit 0
archive
completion tcsh
config scpoe
config scope nothing
conflicts --home
costs --by weather
doctor --home
doctor everything
errors ''
export
export --all x
export --format pdf
forget
forget --before soon
graph find x
graph search
host add ../x --at HOST
host add work --chat ' ' --at HOST
host init HOST ../x
host schedule main hello --at HOST
host schedule main hello --cron soon --at HOST
host set main --at HOST
host set main --chat ' ' --at HOST
host tail main --last=-1 --at HOST
ingest --file a --dir b
ingest --what
install --runtime emacs
install --with batteries
mcp --group family
mcp --host HOST --group ../x
memories forget
memories forget x --team
memories list x
memories search ''
memories show x --undo
new HOST --template emacs
page --out x.html
page --port 99999
patterns --limit none
process --limit 0
process --strategy dreams
proof --svg
proof --svg - --json
read
read x --lines 0
search
search ''
sessions --limit=-1
sessions --limit 0
sessions --since soon
read 7 --around x
team join nowhere
team join postgresql://ann@127.0.0.1/team --as 'a b'
deliveries --last x
handoff
remember
rescue --session
rescue x --list
restore --to
statusline --format html
uninstall --runtime emacs
watch --twice
why
"""
NOT_THERE = """
archive zebra
handoff zebra
sessions --project zebra
errors zebra
export zebra
forget zebra --yes
host drop task-1 --at HOST
host pause task-1 --at HOST
host schedule nobody hello --every 60 --at HOST
host set main --chat taken --at HOST
host status --at HOST/none
ingest --file HOST/none.jsonl
mcp --host HOST --group nobody
mcp --ipc HOST/none
memories forget zebra
memories forget --undo
read zebra
rescue zebra
rescue --session zebra
search zebra
read 77
read trip --around 99
team push
agents --team
deliveries zebra
uninstall --home HOST/none
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host with two groups, in the home of somebody with a session."""
    user = StoreUser(tmp_path_factory.mktemp("user"))
    user.session("8f3a-trip", *trip())
    user.run("host", "init", user.home / "host", "main", "work")
    user.run("host", "set", "work", "--chat", "taken", "--at", user.home / "host")
    return user.home / "host"


@pytest.fixture
def run(host: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """What runs a command line, and returns its exit code."""
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in {"HOME": str(host.parent), "PATH": os.defpath}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(host.parent)

    def run(line: str) -> int:
        try:
            return main(shlex.split(line.replace("HOST", str(host))))
        except SystemExit as ended:
            return int(str(ended.code))

    return run


def test_of_every_command_there_is_a_wrong_call() -> None:
    called = {line.split()[0] for line in WRONG.strip().splitlines()}
    assert {*COMMANDS, "--nothing"} - called == set()


def test_a_wrong_call_is_2_and_says_what_is_wrong(
    run: Callable[[str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    others = []
    for line in WRONG.strip().splitlines():
        code, (out, err) = run(line), capsys.readouterr()
        if (code, out) != (2, "") or not ("error: " in err or err.startswith("session-memory: ")):
            others.append((line, code, out, err))
    assert not others


def test_what_is_not_there_is_1_and_said(
    run: Callable[[str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    others = []
    for line in NOT_THERE.strip().splitlines():
        code, (out, err) = run(line), capsys.readouterr()
        if code != 1 or not out + err:
            others.append((line, code))
    assert not others


# A call of every command that ends by itself, and its exit code.
CALLS = {
    "agents --all": 0,
    "archive --all": 0,
    "completion bash": 0,
    "config": 0,
    "conflicts --all": 0,
    "costs --json": 0,
    "deliveries": 0,
    "doctor status": 0,
    "errors ECONN": 1,
    "export --all": 0,
    "forget zebra": 1,
    "graph search trip": 1,
    "handoff trip": 0,
    "host init NEW": 0,
    "ingest": 0,
    "install --dry-run": 0,
    "mcp": 0,
    "memories": 0,
    "new AGENT --template pi --dry-run": 0,
    "page --export trip": 0,
    "patterns": 0,
    "process": 0,
    "proof": 0,
    "read trip": 0,
    "remember hello": 0,
    "rescue --list": 1,
    "restore": 0,
    "search trip": 0,
    "sessions --conversations": 0,
    "sessions --home .": 0,
    "read 1": 0,
    "since yesterday": 1,
    "statusline": 0,
    "team status": 1,
    "uninstall --dry-run": 0,
    "watch --once": 0,
    "why --staged": 1,
}
SILENT = ("mcp", "statusline", "watch --once")  # on stdout


def test_every_command_is_called() -> None:
    assert set(COMMANDS) - {line.split()[0] for line in CALLS} == set()


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    user = StoreUser(tmp_path_factory.mktemp("person"))
    user.session("trip", *trip())
    assert user.run("ingest").returncode == 0
    return user


def some_calls() -> list[str]:
    """Return all calls of commands that this copy has with `--all`, else a few."""
    calls = [line for line in CALLS if line.split()[0] in COMMANDS]
    return calls[:: len(calls) // share.some(len(calls), 5)]


def words_of(line: str, user: StoreUser) -> str:
    return line.replace("NEW", f"{user.home}/new").replace("AGENT", f"{user.home}/agent")


def test_a_stream_that_is_closed_or_full_ends_no_command_in_a_traceback(user: StoreUser) -> None:
    """Each command with one of these in turn, and one command with all of them."""
    redirections = [">&-", "> /dev/full", "2>&- <&-"]
    calls = [
        *zip(some_calls(), cycle(redirections)),
        *[("sessions --conversations", one) for one in redirections],
    ]
    for line, redirection in calls:
        is_full = redirection == "> /dev/full" and line not in SILENT and not CALLS[line]
        command = f'"{sys.executable}" -c "{COMMAND}" {words_of(line, user)} {redirection}'
        done = user.run_command("/bin/sh", "-c", command)
        assert done.returncode == (1 if is_full else CALLS[line]), command
        assert not is_full or "no space left" in done.stderr, command
        assert not re.search("Traceback|Exception ignored", done.stderr), command


def test_an_interrupt_at_any_moment_ends_a_command_without_a_traceback(user: StoreUser) -> None:
    """Before, one in nine ended in a traceback: those that came while the command was imported. Of
    40 such interrupts with `--all` one would be seen with 99 %, of 14 with 80 %."""
    paths = ProgramPaths(user.home / "program", user.home / "bin")
    paths.launcher.parent.mkdir(parents=True, exist_ok=True)
    paths.launcher.write_text(launcher_text(sys.executable, ROOT))
    paths.launcher.chmod(0o755)
    times = 1 if share.is_all else 2
    for line in [*some_calls() * times, *["search trip"] * 4]:
        program = subprocess.Popen(
            [paths.launcher, *words_of(line, user).split()],
            cwd=user.home,
            env=user.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        time.sleep(0.05 + random.random() / 2)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
        assert program.returncode in (CALLS[line], 130, -signal.SIGINT, 1), (line, said)
        # An interpreter that starts has run nothing of ours yet, not even the first line.
        has_begun = not re.match(
            r'Fatal Python error: init_|Traceback .*\n  File "<string>", line 0', said
        )
        assert not (has_begun and re.search("Traceback|Exception ignored", said)), (line, said)


DROPPED = """
import signal, sys, time
from session_memory.common.system.terminal import exit_code
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in what it starts with &

class Dropping:
    def __del__(self):
        raise KeyboardInterrupt

def command():
    Dropping()
    time.sleep(50)

sys.exit(exit_code(command))
"""


def test_an_interrupt_that_python_drops_ends_a_command_all_the_same(user: StoreUser) -> None:
    """Python drops one that comes while it removes an object, and goes on: importlib removes one
    for each module."""
    done = user.run_command(sys.executable, "-c", DROPPED)
    assert (done.returncode, done.stderr) == (
        130,
        "\nsession-memory: stopped; run it again to continue from here\n",
    )


def test_a_number_beyond_all_is_as_many_as_there_are(tmp_path: Path) -> None:
    user = StoreUser(tmp_path)
    user.session("trip", *trip())
    large = "9" * 5000
    for words in (
        ["search", "trip", "--limit"],
        ["sessions", "--conversations", "--limit"],
        ["memories", "--limit"],
        ["read", "trip", "--lines"],
    ):
        done = user.run(*words, large)
        assert (done.returncode in (0, 1), "Traceback" in done.stderr) == (True, False), words
    assert "no conversation" in user.run("read", large, "--conversation").stderr


def test_a_missing_file_of_the_program_is_one_line_and_what_to_do(tmp_path: Path) -> None:
    user = StoreUser(tmp_path / "user")
    for name in ("session_memory", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "install.py", tmp_path)
    missing = tmp_path / "session_memory/common/text/secrets/rules.tsv"
    missing.unlink()
    for script in (
        "scripts/memory.py",
        "scripts/session_reader.py x",
        "scripts/mcp_server.py",
        "install.py --dry-run",
    ):
        done = user.run_command(sys.executable, *f"{tmp_path}/{script}".split())
        assert (done.returncode, done.stdout) == (1, ""), script
        assert done.stderr == (
            f"session-memory: {missing}: No such file or directory\n"
            "  the program is incomplete: run install.py again, from a complete copy of the "
            "repository\n"
        ), script
