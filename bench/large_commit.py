"""`python -m bench.large_commit`: the cost of explaining and searching a commit of very many lines.

A commit adds 700 files of 1,000 lines, and another replaces all of them by other files. `why` and
`search` run as processes, in a home with one session. Processor time is measured, git's included, so
other work on the machine counts little. Limit: 2 s each."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from .command import run
from .scratch import scratch_directory

FILES, LINES = 700, 1000
LIMIT = 2.0
_MAIN = "import sys; from session_memory.cli import main; sys.exit(main())"
_GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0")


def main(check: bool = False) -> int:
    """Return the exit code: 1 if `check` and a command exceeds the limit."""
    most = 0.0
    with scratch_directory() as root:
        repository = root / "repository"
        repository.mkdir()
        environ = {"HOME": str(root), "PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}
        _git(repository, environ, "init", "-q")
        for title, name in (("adds", "vendored"), ("replaces", "generated")):
            commit = _written(repository, environ, name)
            for command in ("why", "search"):
                seconds = _seconds(repository, environ, command, commit)
                most = max(most, seconds)
                print(
                    f"{command} of a commit that {title} {FILES * LINES:,} lines: {seconds:.2f} s"
                )
    return 1 if check and most > LIMIT else 0


def _written(repository: Path, environ: dict[str, str], name: str) -> str:
    """Replace all files of the repository by new ones, and return the commit's id."""
    for directory in repository.iterdir():
        if directory.name != ".git":
            shutil.rmtree(directory)
    for number in range(FILES):
        path = repository / name / str(number % 70) / f"{name}{number}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"const {name}_{number}_{line} = call({line});\n" for line in range(LINES)]
        path.write_text("".join(lines))
    _git(repository, environ, "add", "-A")
    _git(repository, environ, "commit", "-qm", f"Take in what is {name}")
    return _git(repository, environ, "rev-parse", "HEAD").strip()


def _git(repository: Path, environ: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [*_GIT, *words], cwd=repository, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def _seconds(repository: Path, environ: dict[str, str], *words: str) -> float:
    """Return the processor time of a command and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", _MAIN, *words]
    subprocess.run(command, cwd=repository, env=environ, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    run(main)
