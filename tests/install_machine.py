"""A machine to install on: a home directory of its own, a clean environment, and the means to look at all of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import records

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
NOBODY_LISTENS = "http://127.0.0.1:9/"
RUN_SECONDS = 120
HOUR = 3600
# Settings of a user with a hook of their own.
MINE = '{\n    "model": "opus",\n    "hooks": {\n        "Stop": [{"hooks": [{"type": "command", "command": "x"}]}]\n    }\n}\n'


@dataclass
class Machine:
    """`home` is HOME; `source` the copy of the repository that is installed from."""

    home: Path
    source: Path = REPOSITORY

    @property
    def program_dir(self) -> Path:
        return self.home / ".local" / "share" / "session-memory"

    @property
    def claude(self) -> Path:
        return self.home / ".claude"

    @property
    def settings(self) -> Path:
        return self.claude / "settings.json"

    @property
    def environ(self) -> dict[str, str]:
        """What a login has, and no package index that could be reached."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.home}/.local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PIP_INDEX_URL": NOBODY_LISTENS,
            "PIP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
        }

    def run(self, *words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on this machine."""
        return subprocess.run(
            words, env={**self.environ, **environ}, cwd=cwd or self.home, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
        )  # fmt: skip

    def install(self, *options: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs install.py."""
        return self.run(PYTHON, str(self.source / "install.py"), *options, cwd=cwd, **environ)

    def installed(self, *options: str, cwd: Path | None = None) -> dict[str, Any]:
        """The JSON result of an install that has to succeed."""
        done = self.install("--json", *options, cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def doctor(self, *options: str, **environ: str) -> tuple[int, dict[str, str]]:
        """The exit code of `session-memory doctor`, and what it found wrong: what to do about it, by the finding."""
        command = str(self.program_dir / "bin" / "session-memory")
        done = self.run(command, "doctor", "--json", *options, **environ)
        assert done.stdout, done.stderr
        findings = json.loads(done.stdout)["findings"]
        return done.returncode, {f["text"]: f["mend"] for f in findings if f["state"] == "wrong"}

    def has_environment(self) -> Machine:
        """Puts a private environment there, as an install with a package index leaves it, but for the packages."""
        env = self.program_dir / "env"
        subprocess.run([PYTHON, "-I", "-m", "venv", "--without-pip", str(env)], check=True)
        pins = hashlib.sha256((self.source / "requirements.lock").read_bytes()).hexdigest()
        record = {
            "pins": pins,
            "version": ".".join(map(str, sys.version_info[:3])),
            "groups": ["basic", "store", "sdk"],
        }
        (env / "session-memory.json").write_text(json.dumps(record))
        return self

    def has_claude_code(self, project: str = "/srv/shop") -> Path:
        """Two sessions of Claude Code in one project, an hour and five minutes old; returns where they lie."""
        directory = self.claude / "projects" / re.sub("[^A-Za-z0-9]", "-", project)
        for minutes, question, answer in ((60, "why is the cart empty?", "A cookie."), (5, "ship it", "Shipped.")):
            then = time.time() - minutes * 60
            path = directory / f"{records.new_id()}.jsonl"
            records.write(path, *records.exchange(question, answer, at=then, cwd=project))
            os.utime(path, (then, then))
        return directory

    def hook_command(self, settings: Path | None = None) -> str:
        """The command that stands in the settings for a prompt."""
        hooks = json.loads((settings or self.settings).read_bytes())["hooks"]["UserPromptSubmit"]
        commands = [entry["command"] for group in hooks for entry in group["hooks"]]
        assert len(commands) == 1, commands
        return str(commands[0])

    def prompt(self, project_dir: Path, session_id: str, cwd: str = "/srv/shop") -> str:
        """What the installed hook tells a prompt of a session; '' for nothing."""
        event = {
            "session_id": session_id, "transcript_path": f"{project_dir}/{session_id}.jsonl", "cwd": cwd,
            "hook_event_name": "UserPromptSubmit", "prompt": "hello",
        }  # fmt: skip
        done = subprocess.run(
            ["/bin/sh", "-c", self.hook_command()], input=json.dumps(event), env=self.environ, cwd=self.home,
            capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


def tree(directory: Path) -> dict[str, Any]:
    """All that lies below a directory: content and mode of files, targets of links, by path."""
    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    return found


def agent_home(root: Path, *, memory_dir: str = ".session-memory", workdir: str = "") -> Path:
    """An agent home with the sessions main and discord, whose transcripts lie where its runtime was started."""
    home = records.NamedHome(root, memory_dir)
    home.session("main", *records.exchange("plan the day", "Planned.", at=time.time() - HOUR))
    home.session("discord", *records.exchange("is it up?", "It is.", at=time.time() - 60))
    if workdir:
        (root / workdir).mkdir()
        (root / ".claude").rename(root / workdir / ".claude")
    return root


def used_machine(home: Path) -> Machine:
    """A machine whose environment stands already, and where Claude Code was used."""
    machine = Machine(home).has_environment()
    machine.has_claude_code()
    return machine


def told(result: dict[str, object]) -> list[str]:
    """What the next prompt of each home would be told, by the JSON result of an install."""
    homes = result["homes"]
    assert isinstance(homes, list)
    return [home["trial"]["text"] for home in homes]
