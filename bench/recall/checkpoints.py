"""Questions from a repository that keeps its sessions in git: the subjects of commits, each with the sessions that made
the commit.

Such a repository has a branch `entire/checkpoints/v1` with a directory for each checkpoint, `<2 digits>/<10 digits>/`,
and in it one for each session, `<number>/`, with its `metadata.json` and its transcript until then, `full.jsonl`. A
commit names its checkpoint in the trailer `Entire-Checkpoint`. Of a session the longest transcript counts that is
there; those of Claude Code are read unless others are asked for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from .sets import Question, SetError

BRANCHES = ("refs/heads/entire/checkpoints/v1", "refs/remotes/origin/entire/checkpoints/v1")
AGENTS = ("claude code", "claude-code", "")
_LOG = "%s%x00%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2C)%x1e"
_METADATA = re.compile(r"([0-9a-f]{2})/([0-9a-f]{10})/(\d+)/metadata\.json$")


class Transcript(NamedTuple):
    """A session's transcript as it was at a checkpoint: the git object that it is, its size, and when that was."""

    session: str
    blob: str
    size: int
    created_at: str
    agent: str


class Checkpoints:
    """A collection: the sessions of a repository, and what is asked of them. Raises SetError where it has none, unless
    nothing is asked."""

    def __init__(self, repository: Path, agents: tuple[str, ...] = AGENTS, *, is_asked: bool = True) -> None:
        self._git = ["git", "-C", str(repository)]
        self._agents = agents
        sessions = self._sessions()
        self.transcripts = self._longest(sessions)
        self.sessions_of = {name: {one.session for one in ones} for name, ones in sessions.items()}
        self.questions = self._questions(sessions)
        if is_asked and not self.questions:
            raise SetError(f"{repository}: no commit names a checkpoint with a session whose transcript is there")

    def write_transcripts(self, directory: Path) -> dict[str, str]:
        """Their last states that are there."""
        directory.mkdir(parents=True)
        for one, content in self.contents():
            path = directory / f"{one.session}.jsonl"
            path.write_bytes(content)
            at = datetime.fromisoformat(one.created_at[:19] + "+00:00").timestamp()
            os.utime(path, (at, at))
        return {one.session: one.session for one in self.transcripts}

    def contents(self) -> Iterator[tuple[Transcript, bytes]]:
        """The longest transcript of each session, with what it holds."""
        return zip(self.transcripts, self._contents([one.blob for one in self.transcripts]))

    def _sessions(self) -> dict[str, list[Transcript]]:
        """The transcripts of each checkpoint that are there."""
        tree = self._tree()
        paths = {path: _METADATA.match(path) for path in tree}
        found = [(match[1] + match[2], tree[path], path) for path, match in paths.items() if match]
        transcripts = [path.replace("metadata.json", "full.jsonl") for _, _, path in found]
        sizes = self._sizes([tree.get(path, "") for path in transcripts])
        sessions: dict[str, list[Transcript]] = {}
        for (checkpoint, _, _), path, content in zip(
            found, transcripts, self._contents([blob for _, blob, _ in found])
        ):
            metadata = json.loads(content)
            size = sizes.get(tree.get(path, ""))
            agent = str(metadata.get("agent", "")).lower()
            if size and agent in self._agents:
                one = Transcript(metadata["session_id"], tree[path], size, metadata["created_at"], agent)
                sessions.setdefault(checkpoint, []).append(one)
        return sessions

    def _longest(self, sessions: dict[str, list[Transcript]]) -> list[Transcript]:
        found: dict[str, Transcript] = {}
        for one in (one for ones in sessions.values() for one in ones):
            if one.session not in found or one.size > found[one.session].size:
                found[one.session] = one
        return sorted(found.values(), key=lambda one: (one.created_at, one.session))

    def _questions(self, sessions: dict[str, list[Transcript]]) -> list[Question]:
        evidence: dict[str, set[str]] = {}
        for record in self._run("log", "--all", f"--format={_LOG}").split("\x1e"):
            subject, _, checkpoints = record.strip().partition("\x00")
            for checkpoint in filter(None, checkpoints.split(",")):
                made = {one.session for one in sessions.get(checkpoint.strip(), ())}
                if made:
                    evidence.setdefault(subject, set()).update(made)
        return [Question(subject, frozenset(made)) for subject, made in evidence.items()]

    def _tree(self) -> dict[str, str]:
        """The git object of each path of the branch."""
        known = self._run("for-each-ref", "--format=%(refname)", *BRANCHES).split()
        if not known:
            name = BRANCHES[0].partition("heads/")[2]
            raise SetError(f"{self._git[2]}: no branch {name} (git fetch origin {name}:{name} brings it)")
        lines = self._run("ls-tree", "-r", "-z", known[0]).split("\0")
        return {path: line.split()[2] for line, _, path in (line.partition("\t") for line in lines) if path}

    def _sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        asked = "".join(f"{blob}\n" for blob in blobs if blob)
        answers = [line.split() for line in self._run("cat-file", "--batch-check", asked=asked).splitlines()]
        return {answer[0]: int(answer[2]) for answer in answers if answer[1] == "blob"}

    def _contents(self, blobs: list[str]) -> Iterator[bytes]:
        for blob in blobs:
            yield self._bytes("cat-file", "blob", blob)

    def _run(self, *arguments: str, asked: str = "") -> str:
        return self._bytes(*arguments, asked=asked).decode(errors="replace")

    def _bytes(self, *arguments: str, asked: str = "") -> bytes:
        environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}
        done = subprocess.run(
            [*self._git, *arguments], input=asked.encode(), capture_output=True, check=False, env=environment
        )
        if done.returncode:
            raise SetError(f"{self._git[2]}: git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout
