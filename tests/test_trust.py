"""The page on trust is true: the hooks that an install adds, and no network connections."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import records
from install_machine import REPOSITORY, Machine, used_machine

from session_memory.sessions.runtimes.table import all_runtimes

PAGE = REPOSITORY / "docs/use/trust.md"
EXTENSIONS = {
    "Pi": ("hooks/pi/index.ts", r'\bpi\.on\((?:\(runtime === "pi" \? )?"(\w+)"'),
    "omp": ("hooks/pi/index.ts", r'\bpi\.on\((?:\(runtime === "pi" \? "\w+" : )?"(\w+)"'),
    "OpenClaw": ("hooks/openclaw/index.mjs", r'^\t\ton\("(\w+)"'),
    "OpenCode": ("hooks/opencode/index.js", r'^\t\t"?([\w.]+)"?: async \('),
    "Kilo": ("hooks/opencode/index.js", r'^\t\t"?([\w.]+)"?: async \('),
    "Cline": ("hooks/cline/index.js", r"^\t\t(\w+): async \("),
}
SESSION = "0f6d2c1e-5a3b-4c7d-9e21-7b8a4f0c6d55"
COMMANDS = f"""
archive --all; conflicts; sessions --conversations; costs; doctor; errors failed; handoff {SESSION}; ingest; memories; patterns; process;
proof; read {SESSION}; rescue; search cookie; sessions; read 1; told; why install.py:1
"""


def installed_events(declared_in: str = "hooks.json") -> set[tuple[str, str]]:
    """Return each runtime's title with each event that an install adds a hook for."""
    declared = (REPOSITORY / "hooks" / declared_in).read_text()
    events = set()
    for runtime in all_runtimes():
        events |= {
            (runtime.TITLE, hook.event)
            for hook in runtime.install.wanted_hooks(declared, "python3", "/app")
        }
        for path, text in runtime.install.wanted_files(declared, "python3", "/app").items():
            if path.endswith(".json"):
                events |= {(runtime.TITLE, event) for event in json.loads(text).get("hooks", ())}
    for title, (path, pattern) in EXTENSIONS.items():
        events |= {
            (title, event)
            for event in re.findall(pattern, (REPOSITORY / path).read_text(), re.MULTILINE)
        }
    return events


def test_the_page_lists_every_hook_that_an_install_adds_and_no_other() -> None:
    rows = re.findall(r"^\| ([\w ]+) \| `([\w.]+)` \| .+ \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len({*rows})
    assert {*rows} == installed_events()


def test_the_page_lists_every_hook_that_only_notices_need() -> None:
    text = PAGE.read_text().partition("### Only with notices")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w ]+) \| `([\w.]+)` \| [^|]+ \|$", text, re.MULTILINE)
    assert len(rows) == len({*rows})
    of_extensions = {(title, event) for title, event in installed_events() if title in EXTENSIONS}
    assert {*rows} == installed_events("notices.json") - of_extensions


def traced(trace: Path) -> list[str]:
    """Return the beginning of a command whose connections are listed in a file."""
    # stops a process only at these calls: half of the time
    options = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=connect,sendto,sendmsg"]
    return ["strace", *options, "-o", str(trace)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_no_command_and_no_hook_connects_to_a_network(machine: Machine, tmp_path: Path) -> None:
    [project_dir] = (machine.claude / "projects").iterdir()
    transcript = project_dir / f"{SESSION}.jsonl"
    records.write(transcript, *records.exchange("name the cookie", "crumb", cwd="/srv/shop"))
    event = {
        "session_id": SESSION,
        "cwd": "/srv/shop",
        "prompt": "Go on",
        "hook_event_name": "UserPromptSubmit",
    }
    event["transcript_path"] = str(transcript)
    python = [
        sys.executable,
        "-c",
        "import sys; from session_memory.cli import main; sys.exit(main())",
    ]
    hook = [sys.executable, "-I", "-S", str(REPOSITORY / "hooks/user_prompt_submit.py")]
    upkeep = [
        sys.executable,
        str(REPOSITORY / "hooks/upkeep.py"),
        str(machine.home / ".session-memory"),
    ]
    environ = {"HOME": str(machine.home), "PATH": os.defpath, "LANG": "C.UTF-8"}
    trace = tmp_path / "trace"
    for command in (
        [*python],
        *([*python, *words.split()] for words in COMMANDS.split(";")),
        hook,
        upkeep,
    ):
        done = subprocess.run(
            [*traced(trace), "-A", *command],
            env=environ,
            input=json.dumps(event),
            text=True,
            capture_output=True,
            check=False,
            cwd=REPOSITORY,
        )
        assert "usage:" not in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
    assert [line for line in trace.read_text().splitlines() if "AF_INET" in line] == []


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_strace_shows_a_connection_if_there_is_one(tmp_path: Path) -> None:
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    trace = tmp_path / "trace"
    subprocess.run([*traced(trace), sys.executable, "-c", code], check=True)
    assert "AF_INET" in trace.read_text()
