"""A clone of a replayed history: its files, HEAD and index at each time, as far as known.

Commits come from the repository, including people's own. HEAD comes from the branch in the records,
files from the tools' writes and the commits. Not reconstructed are writes by shell commands other
than `git commit`, people's uncommitted changes, pushes, and stashes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a",
}
DAY = 86_400


class Clone:
    """A worktree at `root` with the `paths` that sessions read or edit.

    It is linked to `main` if given."""

    def __init__(
        self,
        root: Path,
        repository: Path,
        paths: set[str],
        commit: str,
        now: float,
        main: Clone | None,
    ):
        self.root = root
        self._paths = {path for path in paths if not os.path.isabs(path)}
        self.branch, self.commit = "", commit
        self._edited: set[str] = set()
        root.mkdir(parents=True, exist_ok=True)
        self.git_dir: Path = (
            root / ".git" if main is None else main.git_dir / "worktrees" / root.name
        )
        self._common = self.git_dir if main is None else main.git_dir
        if main is None:
            self._run("init", "-q")
            (self.git_dir / "objects/info/alternates").write_text(f"{repository}/objects\n")
        else:
            self.git_dir.mkdir(parents=True)
            (root / ".git").write_text(f"gitdir: {self.git_dir}\n")
            (self.git_dir / "commondir").write_text("../..\n")
            (self.git_dir / "gitdir").write_text(f"{root}/.git\n")
        (self.git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        (self.git_dir / "logs").mkdir(exist_ok=True)
        for path, content in self._blobs(commit, self._paths).items():
            self.write(path, content, now - DAY, is_edit=False)
        self._read_tree()

    def write(self, path: str, content: bytes, when: float, *, is_edit: bool = True) -> None:
        """Write a file, at a time."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (when, when))
        if is_edit:
            self._edited.add(path)

    def switch(self, branch: str, commit: str, when: float) -> None:
        """Check out a branch, which is at a commit."""
        before, self.branch = self.branch, branch
        self._carry(commit, when)
        (self.git_dir / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        self._move(commit, when, f"checkout: moving from {before} to {branch}" if before else "")

    def commit_known(self, commit: str, subject: str, when: float) -> None:
        """Make a commit of the repository's history here."""
        parent = self._run("rev-parse", "-q", "--verify", f"{commit}^").decode().strip()
        # the commits between were not seen: a pull, or commits of another clone
        if parent and parent != self.commit:
            self._carry(parent, when)
            self._move(parent, when, "")
        changed = set(
            self._run("diff-tree", "-r", "--root", "--name-only", "--no-commit-id", commit)
            .decode()
            .split("\n")
        )
        for path, content in self._blobs(commit, changed & self._paths).items():
            file = self.root / path
            if not file.exists() or file.read_bytes() != content:
                seen = file.stat().st_mtime if path in self._edited and file.exists() else when - 1
                self.write(path, content, seen)
        self._edited -= changed
        self._move(commit, when, f"commit: {subject}")

    def commit_unknown(self, subject: str, paths: list[str], when: float) -> None:
        """Make a commit that the history does not have, because it was rewritten later."""
        known = [path for path in paths or sorted(self._edited) if (self.root / path).exists()]
        if known:
            self._run("update-index", "--add", "--", *known)
            tree = self._run("write-tree").decode().strip()
            commit = (
                self._run("commit-tree", tree, "-p", self.commit, "-m", subject).decode().strip()
            )
            self._edited -= set(known)
            if commit:
                self._move(commit, when, f"commit: {subject}")

    def edited(self) -> set[str]:
        """The files that were edited and not committed since."""
        return set(self._edited)

    def _carry(self, commit: str, when: float) -> None:
        """Bring the files to another commit, except edited ones."""
        if commit == self.commit:
            return
        changed = set(
            self._run("diff", "--name-only", "--no-renames", self.commit, commit)
            .decode()
            .split("\n")
        )
        for path, content in self._blobs(commit, (changed & self._paths) - self._edited).items():
            self.write(path, content, when, is_edit=False)

    def _move(self, commit: str, when: float, message: str) -> None:
        before, self.commit = self.commit, commit
        ref = self._common / "refs/heads" / (self.branch or "main")
        deleted = [above for above in ref.parents if above.is_file()]
        for above in deleted:
            above.unlink()
        if ref.is_dir():
            shutil.rmtree(ref)
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit + "\n")
        if message:
            with (self.git_dir / "logs/HEAD").open("a") as log:
                log.write(f"{before} {commit} A <a> {int(when)} +0000\t{message}\n")
        self._read_tree()

    def _read_tree(self) -> None:
        self._run("read-tree", self.commit)
        self._run("update-index", "-q", "--refresh")

    def _blobs(self, commit: str, paths: set[str]) -> dict[str, bytes]:
        wanted = sorted(path for path in paths if path and "\n" not in path)
        names = "".join(f"{commit}:{path}\n" for path in wanted).encode()
        answer = self._run("cat-file", "--batch", given=names)
        contents, at = {}, 0
        for path in wanted:
            end = answer.find(b"\n", at)
            words = answer[at:end].split()
            at = end + 1
            if len(words) == 3 and words[2].isdigit():
                size = int(words[2])
                if words[1] == b"blob":
                    contents[path] = answer[at : at + size]
                at += size + 1
        return contents

    def _run(self, *arguments: str, given: bytes = b"") -> bytes:
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.root)}
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=self.root, env={**ENVIRONMENT, **place}, input=given, capture_output=True
        )
        return done.stdout
