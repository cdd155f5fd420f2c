"""The histories of a repository with checkpoints, replayed in order of time, home by home.

Each person has a home. With each prompt that a person typed in a session of Claude Code, a
program's hook runs on everything that all sessions of that person had written by then, with the
clock of that time. Sessions of Codex are only others. A home has only the sessions that a
checkpoint keeps, and no transcripts of sub-agents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from session_memory.sessions.runtimes.claude import encode_cwd

from ..recall.checkpoints import AGENTS, Checkpoints
from .clone import ENVIRONMENT, Clone

_HOME = re.compile(rb"/(?:Users|home)/[A-Za-z0-9._-]+")
_COMMITTED = re.compile(r"^\[(\S+)(?: \(root-commit\))? ([0-9a-f]{7,12})\] (.*)$", re.MULTILINE)
SWITCHING = 6  # records in which a session's own git command and its result are looked for
PATCHED = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
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
    prompt: str  # its uuid
    time: float
    text: str


class Line:
    """A line of a transcript: its time, the record, and the bytes as the home has them."""

    def __init__(self, content: bytes, record: dict[str, Any], time: float) -> None:
        self.content, self.record, self.time = content, record, time


class Talk:
    """A session: its lines, and its transcript in the home."""

    def __init__(self, session: str, agent: str, content: bytes) -> None:
        self.session, self.agent = session, agent
        self.person = next(iter(_HOME.findall(content)), b"").decode()
        self.lines: list[Line] = []
        now = 0.0
        for part in content.split(b"\n"):
            try:
                record = json.loads(part)
            except ValueError:
                continue
            if isinstance(record, dict):
                now = max(now, _time(record.get("timestamp")))
                self.lines.append(Line(part, record, now))
        self.lines = [line for line in self.lines if line.time or self.lines[-1].time]
        first = next((line.time for line in self.lines if line.time), 0.0)
        for line in self.lines:
            line.time = line.time or first
        cwds = [line.record.get("cwd") or payload_of(line).get("cwd") for line in self.lines]
        self.cwd = next((cwd for cwd in cwds if isinstance(cwd, str)), "")
        self.path = Path()
        self.waiting = b""
        self.relinked: tuple[bytes, bytes] = (b"", b"")

    def write(self, content: bytes) -> None:
        self.waiting += content + b"\n"

    def flush(self, now: float) -> None:
        """Write what waits into the transcript."""
        if self.waiting:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(self.waiting)
            os.utime(self.path, (now, now))
            self.waiting = b""


def _switched_at(lines: list[Line]) -> float | None:
    """Return when the git command in a session's last records ended.

    Return None if there is none: then somebody else switched the branch."""
    results: dict[str, float] = {}
    for line in reversed(lines[-SWITCHING:]):
        for block in _blocks(line.record):
            if block.get("type") == "tool_result":
                results[str(block.get("tool_use_id"))] = line.time
            elif block.get("type") == "tool_use":
                command = str((block.get("input") or {}).get("command", ""))
                if "git" in command.split() and (when := results.get(str(block.get("id")))):
                    return when
    return None


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


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
        self._calls: dict[str, Line] = {}
        self._active: dict[str, float] = {}
        root.mkdir(parents=True)
        for talk in talks:
            if talk.agent in AGENTS:
                directory = root / ".claude/projects" / encode_cwd(self._here(talk.cwd))
                talk.path = directory / f"{talk.session}.jsonl"
            else:
                day = datetime.utcfromtimestamp(talk.lines[0].time)
                name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{talk.session}.jsonl"
                talk.path = root / ".codex/sessions" / f"{day:%Y/%m/%d}" / name
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
            if talk.agent in AGENTS:
                self._follow_branch(talk, at, line)
                if is_typed(line.record) and line.record.get("uuid") not in self._seen:
                    self._seen.add(line.record["uuid"])
                    prompts[n] += 1
                    for other_talk in self.talks:
                        other_talk.flush(
                            other_talk.lines[0].time
                            if other_talk is talk and not at
                            else self._written(other_talk, now)
                        )
                    text = self._ask(program, n, line)
                    self._write(talk, line)
                    if text:
                        self._show(talk, line, text)
                        yield Told(
                            self.name, talk.session, prompts[n], line.record["uuid"], now, text
                        )
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
        content = line.content.replace(self._person, str(self._root).encode())
        if talk.relinked[0]:
            content = content.replace(
                b'"parentUuid":"%b"' % talk.relinked[0], b'"parentUuid":"%b"' % talk.relinked[1], 1
            )
        talk.write(content)

    def _show(self, talk: Talk, line: Line, text: str) -> None:
        """The record that Claude Code keeps of what a hook told."""
        uuid = line.record["uuid"]
        shown = uuid[:-4] + f"{int(uuid[-4:], 16) ^ 0xFFFF:04x}"
        keys = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp")
        envelope = {key: line.record.get(key) for key in keys}
        envelope["cwd"] = self._here(envelope["cwd"] or talk.cwd)
        attachment = {
            "type": "hook_additional_context",
            "content": [text],
            "hookName": "UserPromptSubmit",
            "hookEvent": "UserPromptSubmit",
        }
        record = {
            "parentUuid": uuid,
            **envelope,
            "type": "attachment",
            "attachment": attachment,
            "uuid": shown,
        }
        talk.write(json.dumps(record, separators=(",", ":")).encode())
        talk.relinked = uuid.encode(), shown.encode()

    def _ask(self, program: Path, n: int, line: Line) -> str:
        talk = self.talks[n]
        event = {
            "session_id": talk.session,
            "transcript_path": str(talk.path),
            "hook_event_name": "UserPromptSubmit",
            "cwd": self._here(line.record.get("cwd") or talk.cwd),
            "prompt": prompt_text(line.record),
        }
        environment = {
            "HOME": str(self._root),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "CLAUDE_PID": str(5000 + n),
            "CLAUDE_PROJECT_DIR": self._here(talk.cwd),
        }
        script = str(program / "hooks/user_prompt_submit.py")
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
        answer = json.loads(done.stdout or b"{}")
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def _do(self, talk: Talk, line: Line) -> None:
        """Apply the effect that a result shows: a written file, a made commit."""
        payload = payload_of(line)
        if payload.get("type") in ("custom_tool_call", "function_call"):
            self._calls[str(payload.get("call_id"))] = line
        elif payload.get("type") in ("custom_tool_call_output", "function_call_output"):
            self._patch(talk, line, self._calls.get(str(payload.get("call_id"))))
        message = line.record.get("message")
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                self._calls[block.get("id", "")] = line
                line.record.setdefault("calls", {})[block.get("id", "")] = block
            elif block.get("type") == "tool_result" and block.get("tool_use_id") in self._calls:
                called = self._calls[block["tool_use_id"]]
                call = called.record["calls"][block["tool_use_id"]]
                self._finish(talk, line, call, block, called.time)

    def _finish(
        self, talk: Talk, line: Line, call: dict[str, Any], block: dict[str, Any], began: float
    ) -> None:
        given, result = call.get("input") or {}, line.record.get("toolUseResult")
        path = str(given.get("file_path") or given.get("notebook_path") or "")
        if call.get("name") == "Bash":
            output = (
                result.get("stdout", "")
                if isinstance(result, dict)
                else _flat(block.get("content"))
            )
            self._commit_by(talk, line, str(given.get("command", "")), str(output))
        elif (
            call.get("name") in ("Edit", "MultiEdit", "Write")
            and not block.get("is_error")
            and path
        ):
            content = given.get("content", "")
            root = self._root_of(path)
            clone = self._clone(root, line.time) if root else None
            if clone is None:
                return
            file = clone.root / path[len(root) + 1 :]
            if call["name"] != "Write":
                original = result.get("originalFile") if isinstance(result, dict) else None
                content = original or (file.read_text(errors="replace") if file.exists() else "")
                for edit in given.get("edits") or [given]:
                    old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
                    content = (
                        content.replace(old, new, -1 if edit.get("replace_all") else 1)
                        if old
                        else new
                    )
            when = max(began, line.time - 0.003)
            clone.write(path[len(root) + 1 :], str(content).encode(errors="replace"), when)

    def _patch(self, talk: Talk, line: Line, called: Line | None) -> None:
        text = (
            str(payload_of(called).get("input") or payload_of(called).get("arguments") or "")
            if called
            else ""
        )
        if called is None or "*** Begin Patch" not in text:
            return
        when = (called.time + line.time) / 2 if line.time - called.time > 0.02 else line.time - 0.1
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
        branch = line.record.get("gitBranch")
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
            if talk.agent not in AGENTS
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
    for transcript, content in Checkpoints(repository, (*AGENTS, "codex")).contents():
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


def payload_of(line: Line) -> dict[str, Any]:
    payload = line.record.get("payload")
    return payload if isinstance(payload, dict) else {}


def _time(stamp: object) -> float:
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def prompt_text(record: dict[str, Any]) -> str:
    """Return what a user typed in a record."""
    return _flat((record.get("message") or {}).get("content"))


def _flat(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""


def is_typed(record: dict[str, Any]) -> bool:
    """Check if a record is a prompt that a person typed."""
    if record.get("type") != "user" or any(
        record.get(key) for key in ("isMeta", "isSidechain", "isCompactSummary")
    ):
        return False
    content = (record.get("message") or {}).get("content")
    if isinstance(content, list) and any(
        block.get("type") == "tool_result" for block in content if isinstance(block, dict)
    ):
        return False
    text = prompt_text(record).strip()
    return bool(text and record.get("uuid")) and not text.startswith(
        ("<", "[Request interrupted", "Caveat:", "This session is")
    )
