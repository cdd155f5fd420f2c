"""Real repositories, made by real git that nothing of the machine's settings reaches."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.clones import GIT

GIT_ENVIRONMENT = {**GIT, "GIT_TERMINAL_PROMPT": "0"}


def git(directory: Path, *arguments: str) -> str:
    """What git prints."""
    # Maintenance in the background would change a repository beside the test that looks at it.
    command = [
        "git",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "maintenance.auto=false",
        "-c",
        "gc.auto=0",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=directory, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(root: Path, **files: str) -> Path:
    """A repository on main with one commit of `files` (`src__app` is the file src/app)."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "--template=", "-b", "main")
    (root / ".git" / "info").mkdir()
    for name, text in (files or {"readme": "hello\n"}).items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    return root
