"""Real repositories, made by real git that nothing of the machine's settings reaches."""

from __future__ import annotations

import subprocess
from pathlib import Path

GIT_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_TERMINAL_PROMPT": "0",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))},
}  # fmt: skip


def git(directory: Path, *arguments: str) -> str:
    """What git prints."""
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=directory, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(root: Path, **files: str) -> Path:
    """A repository on main with one commit of `files` (`src__app` is the file src/app)."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    for name, text in (files or {"readme": "hello\n"}).items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    return root
