"""The histories of a repository with checkpoints, replayed in order of time, home by home.

Each person has a home. With each prompt that a person typed, to Claude Code, Codex or Pi, a program's
hook runs on everything that all sessions of that person had written by then, with the clock of that
time. A home has only the sessions that a checkpoint keeps. Sub-agents of Codex are among them, and
get no prompts; those of Claude Code are not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..recall.checkpoints import Checkpoints
from .clone import ENVIRONMENT, Clone
from .talks import ALL_AGENTS, PATCHED, Call, Line, Prompt, Talk, as_record, blocks_of

_COMMITTED = re.compile(r"^\[(\S+)(?: \(root-commit\))? ([0-9a-f]{7,12})\] (.*)$", re.MULTILINE)
SWITCHING = 6  # records in which a session's own git command and its result are looked for
_START = """import sys, time
now = float(sys.argv[2])
time.time = lambda: now
path = sys.argv[1]
sys.argv = [path]
exec(compile(open(path).read(), path, "exec"), {"__file__": path, "__name__": "__main__"})"""


class Commit(NamedTuple):
    """A commit of the history."""

    name: str
    committer: str
    time: float
    subject: str


class Told(NamedTuple):
    """What the hook told with one prompt of a session, and where that is."""

    repository: str
    session: str
    number: int  # of the prompt, from 1
    prompt: str  # its id
    time: float
    text: str


def _switched_at(lines: list[Line]) -> float | None:
    """Return when the git command in a session's last records ended.

    Return None if there is none: then somebody else switched the branch."""
    results: dict[str, float] = {}
    for line in reversed(lines[-SWITCHING:]):
        for block in blocks_of(line):
            if block.get("type") == "tool_result":
                results[str(block.get("tool_use_id"))] = line.time
            elif block.get("type") == "tool_use":
                command = str((block.get("input") or {}).get("command", ""))
                if "git" in command.split() and (when := results.get(str(block.get("id")))):
                    return when
    return None


class History:
    """One person's sessions in a repository, in a home at `root`."""

    def __init__(
        self, name: str, repository: Path, talks: list[Talk], commits: list[Commit], root: Path
    ) -> None:
        self.name, self.talks, self._root = name, talks, root
        self._repository = repository
        self._person = talks[0].person.encode()
        self._commits = commits
        self._names = {commit.name[:7]: commit for commit in commits}
        self._clones: dict[str, Clone] = {}
        self._branches: dict[str, str] = {}  # by session
        self._seen: set[str] = set()
        self._calls: dict[str, tuple[float, Call]] = {}
        self._active: dict[str, float] = {}
        root.mkdir(parents=True)
        for talk in talks:
            talk.path = root / talk.kind.path(talk, self._here(talk.cwd))
        self._roots = self._worktrees()
        self._paths = {root: self._touched(root) for root in self._roots}

    def of(self, talks: list[Talk], root: Path) -> History:
        """Return the history of some of these sessions only, in another home."""
        return History(self.name, self._repository, talks, self._commits, root)

    def relative(self, path: str) -> str:
        """Return a path of a record relative to its worktree, or as it is outside of all."""
        path = os.path.normpath(path)
        root = self._root_of(path)
        return path[len(root) + 1 :] if root else path

    def play(self, program: Path) -> Iterator[Told]:
        """Play it with a program, and yield what its hook tells."""
        order = [
            (line.time, n, at)
            for n, talk in enumerate(self.talks)
            for at, line in enumerate(talk.lines)
        ]
        order.sort()
        own_commits = self._own_commits()
        prompts = [0] * len(self.talks)
        for now, n, at in order:
            talk = self.talks[n]
            line = talk.lines[at]
            while own_commits and own_commits[0].time <= now:
                self._commit(own_commits.pop(0))
            self._follow_branch(talk, at, line)
            prompt = talk.prompt(line)
            if prompt and prompt.id not in self._seen:
                self._seen.add(prompt.id)
                prompts[n] += 1
                for other_talk in self.talks:
                    other_talk.flush(
                        other_talk.lines[0].time
                        if other_talk is talk and not at
                        else self._written(other_talk, now)
                    )
                text = self._ask(program, n, line, prompt)
                self._write(talk, line)
                if text:
                    talk.show(prompt, line, text)
                    yield Told(self.name, talk.session, prompts[n], prompt.id, now, text)
                continue
            self._write(talk, line)
            self._do(talk, line)
            talk_root = self._root_of(line.record.get("cwd") or talk.cwd)
            self._active[talk_root] = now

    def _written(self, talk: Talk, now: float) -> float:
        times = [line.time for line in talk.lines]
        at = bisect_left(times, now)
        return times[at - 1] if at else times[0]

    def _here(self, path: str) -> str:
        return path.replace(self._person.decode(), str(self._root))

    def _write(self, talk: Talk, line: Line) -> None:
        talk.write_line(line.content.replace(self._person, str(self._root).encode()))

    def _ask(self, program: Path, n: int, line: Line, prompt: Prompt) -> str:
        talk = self.talks[n]
        event = {
            "session_id": talk.session,
            "transcript_path": str(talk.path),
            "hook_event_name": talk.kind.EVENT,
            "cwd": self._here(line.record.get("cwd") or talk.cwd),
            "prompt": prompt.text,
            **talk.kind.event(talk),
        }
        environment = {"HOME": str(self._root), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        environment |= talk.kind.environment(n, self._here(talk.cwd))
        script = str(program / "hooks" / talk.kind.SCRIPT)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _START, script, str(line.time)],
            input=json.dumps(event).encode(),
            env=environment,
            capture_output=True,
            check=True,
        )
        place = self._root / ".session-memory"
        for file in place.rglob("*") if place.exists() else ():
            if file.stat().st_mtime > line.time + 1:
                os.utime(file, (line.time, line.time))
        return talk.kind.answer(json.loads(done.stdout or b"{}"))

    def _do(self, talk: Talk, line: Line) -> None:
        """Apply the effect that a result shows: a written file, a made commit."""
        for call in talk.kind.calls(line):
            self._calls[call.id] = line.time, call
        for call_id, has_failed, output in talk.kind.results(line):
            if call_id not in self._calls:
                continue
            began, call = self._calls[call_id]
            if call.kind == "command":
                self._commit_by(talk, line, call.text, output)
            elif call.kind == "patch":
                self._patch(talk, line, began, call.text)
            elif not has_failed:
                self._edit(talk, line, began, call)

    def _edit(self, talk: Talk, line: Line, began: float, call: Call) -> None:
        given = call.given
        path = os.path.normpath(os.path.join(talk.cwd, str(given.get("file_path") or "")))
        root = self._root_of(path)
        clone = self._clone(root, line.time) if root and given.get("file_path") else None
        if clone is None:
            return
        file = clone.root / path[len(root) + 1 :]
        content = given.get("content")
        if content is None:
            original = as_record(line.record.get("toolUseResult")).get("originalFile")
            content = original or (file.read_text(errors="replace") if file.exists() else "")
            for edit in given.get("edits") or [given]:
                old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
                content = (
                    content.replace(old, new, -1 if edit.get("replace_all") else 1) if old else new
                )
        when = max(began, line.time - 0.003)
        clone.write(path[len(root) + 1 :], str(content).encode(errors="replace"), when)

    def _patch(self, talk: Talk, line: Line, began: float, text: str) -> None:
        when = (began + line.time) / 2 if line.time - began > 0.02 else line.time - 0.1
        for name in PATCHED.findall(text.replace("\\n", "\n")):
            path = os.path.normpath(os.path.join(talk.cwd, name))
            root = self._root_of(path)
            clone = self._clone(root, line.time) if root else None
            if clone is not None:
                file = clone.root / path[len(root) + 1 :]
                before = file.read_bytes() if file.exists() else b""
                clone.write(path[len(root) + 1 :], before + b"// patched\n", when)

    def _commit_by(self, talk: Talk, line: Line, command: str, output: str) -> None:
        root = self._root_of(line.record.get("cwd") or talk.cwd)
        clone = self._clone(root, line.time) if root and "commit" in command else None
        if clone is None:
            return
        for branch, name, subject in _COMMITTED.findall(output):
            known = self._names.get(name[:7])
            clone.branch = clone.branch or branch
            if known:
                clone.commit_known(known.name, subject, line.time - 0.01)
                continue
            is_all = " -a" in command or "add ." in command or "-A" in command
            named = [
                path
                for path in clone.edited()
                if path in command or os.path.dirname(path) + "/ " in command
            ]
            clone.commit_unknown(subject, [] if is_all or not named else named, line.time - 0.01)

    def _own_commits(self) -> list[Commit]:
        """The commits of the person that no transcript shows."""
        shown = {
            name[:7]
            for talk in self.talks
            for line in talk.lines
            if b"] " in line.content
            for _, name, _ in _COMMITTED.findall(
                line.content.decode(errors="replace").replace("\\n", "\n").replace('"[', "\n[")
            )
        }
        persons = {commit.committer for commit in self._commits if commit.name[:7] in shown} - {
            "noreply@github.com"
        }
        first = min(talk.lines[0].time for talk in self.talks)
        own_commits = [
            commit
            for commit in self._commits
            if commit.committer in persons and commit.name[:7] not in shown
        ]
        return [
            commit
            for commit in sorted(own_commits, key=lambda commit: commit.time)
            if commit.time >= first
        ]

    def _commit(self, commit: Commit) -> None:
        """A commit of the person's own, in the clone that was active last."""
        if self._active:
            root = max(self._active, key=lambda root: self._active[root])
            clone = self._clones.get(root)
            if clone is not None and clone.branch:
                clone.commit_known(commit.name, commit.subject, commit.time)

    def _follow_branch(self, talk: Talk, at: int, line: Line) -> None:
        git = as_record(line.payload.get("git"))
        branch = line.record.get("gitBranch") or git.get("branch")
        root = self._root_of(line.record.get("cwd") or talk.cwd)
        if not branch or not root or branch == "HEAD" or self._branches.get(talk.session) == branch:
            return
        self._branches[talk.session] = branch
        clone = self._clone(root, line.time)
        if clone is not None and clone.branch != branch:
            is_at_start = not clone.branch
            before = talk.lines[at - 1].time if at else line.time
            switched_at = _switched_at(talk.lines[:at])
            when = (before + line.time) / 2 if switched_at is None else switched_at
            commit = (
                self._tip(branch, when)
                if is_at_start or branch in ("main", "master")
                else self._tip(branch, when) or clone.commit
            )
            clone.switch(branch, commit or clone.commit, when)

    def _tip(self, branch: str, when: float) -> str:
        """Return the commit of a branch.

        For a person's branch it is the one before its next commit, if that is known."""
        command = ["git", "-C", str(self._repository), "rev-list", "-1", f"--before={int(when)}"]
        for ref in (branch, "main", "master"):
            done = subprocess.run(
                [*command, ref, "--"], env=ENVIRONMENT, capture_output=True, text=True
            )
            if done.stdout.strip():
                return done.stdout.strip()
        return ""

    def _clone(self, root: str, now: float) -> Clone | None:
        if root not in self._clones:
            commit = self._tip("main", now) or self._commits[-1].name
            mains = [root_above for root_above in self._clones if root.startswith(root_above + "/")]
            main = self._clones[mains[0]] if mains else None
            at = Path(self._here(root))
            self._clones[root] = Clone(at, self._repository, self._paths[root], commit, now, main)
        return self._clones[root]

    def _root_of(self, path: str) -> str:
        fitting = [root for root in self._roots if path == root or path.startswith(root + "/")]
        return max(fitting, key=len, default="")

    def _worktrees(self) -> list[str]:
        """Return the directories of the sessions, except those within another's worktree."""
        roots: list[str] = []
        for cwd in sorted({talk.cwd for talk in self.talks if talk.cwd}, key=len):
            above = [root for root in roots if cwd.startswith(root + "/")]
            inside = cwd[len(above[-1]) + 1 :] if above else ""
            command = ["git", "-C", str(self._repository), "cat-file", "-e", f"HEAD:{inside}"]
            if not above or (
                subprocess.run(command, env=ENVIRONMENT, capture_output=True).returncode
                and "." in inside
            ):
                roots.append(cwd)
        return roots

    def _touched(self, root: str) -> set[str]:
        pattern = re.compile(re.escape(root.encode()) + rb"/([^\"\\\s:]+)\"")
        others = [
            other[len(root) + 1 :].encode() + b"/"
            for other in self._roots
            if other.startswith(root + "/")
        ]
        touched = {
            path
            for talk in self.talks
            for line in talk.lines
            for path in pattern.findall(line.content)
        }
        patched = {
            path.encode()
            for talk in self.talks
            if "codex" in talk.kind.AGENTS
            for line in talk.lines
            for path in PATCHED.findall(line.content.decode(errors="replace").replace("\\n", "\n"))
        }
        kept = {path for path in touched | patched if not path.startswith((*others, b".git/"))}
        return {path.decode(errors="replace") for path in kept}


def histories(repository: Path, root: Path) -> Iterator[History]:
    """The histories of persons with several sessions, in homes below `root`."""
    log = subprocess.run(
        ["git", "-C", str(repository), "log", "--all", "--format=%H%x09%ce%x09%ct%x09%s"],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    ).stdout.decode(errors="replace")
    fields = [line.split("\t", 3) for line in log.splitlines()]
    commits = [Commit(name, who, float(time), subject) for name, who, time, subject in fields]
    persons: dict[str, list[Talk]] = {}
    kept = Checkpoints(repository, ALL_AGENTS, is_asked=False)
    for transcript, content in kept.contents():
        talk = Talk(transcript.session, transcript.agent, content)
        if talk.lines and talk.cwd.startswith("/") and talk.person:  # no Windows
            persons.setdefault(talk.person, []).append(talk)
    for person, talks in sorted(persons.items()):
        if len(talks) > 1:
            talks.sort(key=lambda talk: (talk.lines[0].time, talk.session))
            name = (
                repository.name
                if repository.name != "repo"
                else repository.parent.name.replace("+", "/")
            )
            yield History(name, repository, talks, commits, root / person.rpartition("/")[2])
