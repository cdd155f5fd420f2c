"""`python -m bench.worktrees`: finding the folders of a project of many worktrees among many
folders of transcripts, at first and after a folder was added, and asking what a commit has in a
repository of many packs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from session_memory.common.system.git_objects import GitObjects
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.project_folders import keep_project

from .clones import GIT
from .command import run
from .scratch import scratch_directory
from .stopwatch import seconds

WORKTREES, FOLDERS, PACKS = 400, 3_000, 2_000
RUNS = 5
LIMIT_SECONDS = 0.3


def main(check: bool = False) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded."""
    with scratch_directory() as name:
        home, claude = name.resolve(), runtime("agent-sdk")
        root = repository(home)
        folders(home, root, claude)
        places = [(claude, f"{home}/.claude")]
        commit = subprocess.run(
            ["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        candidates = {
            "folders": lambda run: keep_project(
                places, str(root), str(home), f"{home}/index-{run}"
            ),
            "folders again": lambda run: keep_project(
                places, str(root), str(home), f"{home}/index-{run}"
            ),
            "packs": lambda run: GitObjects(f"{root}/.git").at(commit.stdout.strip(), "readme"),
        }
        times = {
            what: min(seconds(partial(answer, ask, run)) for run in range(RUNS))
            for what, ask in candidates.items()
        }
    for what, took in times.items():
        print(f"{what:15} {took:.3f} s of {LIMIT_SECONDS}")
    return 1 if check and max(times.values()) > LIMIT_SECONDS else 0


def answer(ask: Callable[[int], object], run: int) -> None:
    assert ask(run)


def repository(home: Path) -> Path:
    """A repository with its worktrees and packs, as git lays them out."""
    root = home / "app"
    root.mkdir()
    (root / "readme").write_text("1\n")
    for words in ("init -q", "add -A", "commit -q -m begin", "repack -q -a -d"):
        subprocess.run(["git", *words.split()], cwd=root, env=GIT, check=True)
    (index,) = (root / ".git/objects/pack").glob("*.idx")
    for number in range(PACKS):
        for ending in (".idx", ".pack"):
            shutil.copyfile(index.with_suffix(ending), index.parent / f"pack-{number:040x}{ending}")
    for number in range(WORKTREES):
        worktree, git_dir = home / "worktrees" / f"{number}", root / ".git/worktrees" / f"{number}"
        for directory in (worktree, git_dir):
            directory.mkdir(parents=True)
        (worktree / ".git").write_text(f"gitdir: {git_dir}\n")
        for name, text in (
            ("gitdir", f"{worktree}/.git"),
            ("HEAD", "ref: refs/heads/x"),
            ("commondir", "../.."),
        ):
            (git_dir / name).write_text(text + "\n")
    return root


def folders(home: Path, root: Path, claude: Runtime) -> None:
    """Folders with a transcript each: half are of the project, in all its worktrees."""
    for number in range(FOLDERS):
        worktree = home / "worktrees" / f"{number // 2 % WORKTREES}"
        directory = worktree / f"src-{number}" if number % 2 else home / "other" / f"{number}"
        directory.mkdir(parents=True)
        folder = Path(claude.project_dir(f"{home}/.claude", str(directory)))
        folder.mkdir(parents=True)
        message = {"role": "user", "content": "hello " * 500}
        record = {
            "parentUuid": None,
            "type": "user",
            "uuid": f"{number}",
            "cwd": str(directory),
            "message": message,
        }
        (folder / f"{number}.jsonl").write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    run(main)
