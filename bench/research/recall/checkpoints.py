"""Questions from a repository that keeps its sessions in git.

They are the subjects of commits, each with the sessions that made the commit, which names them in
the trailer `Entire-Checkpoint`. Only Claude Code's sessions are read, unless others are requested.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from session_memory.common.system.git_process import GitUnavailableError
from session_memory.history.store.ingest.checkpoints import Checkpoints as KeptCheckpoints
from session_memory.history.store.ingest.checkpoints import Transcript

from .sets import Question, SetError

AGENTS = ("claude code", "claude-code", "")
_LOG = "%s%x00%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2C)%x1e"


class Checkpoints:
    """A collection: the sessions of a repository, and the questions about them.

    Raises SetError if it has none, unless there are no questions."""

    def __init__(
        self, repository: Path, agents: tuple[str, ...] = AGENTS, *, is_asked: bool = True
    ) -> None:
        try:
            self._kept = KeptCheckpoints(str(repository))
        except GitUnavailableError as error:
            raise SetError(str(error)) from error
        sessions = {
            name: [transcript for transcript in ones if transcript.agent in agents]
            for name, ones in self._kept.of_checkpoint.items()
        }
        self._kept.of_checkpoint = sessions
        self.transcripts = self._kept.longest()
        self.sessions_of = {
            name: {transcript.session for transcript in ones} for name, ones in sessions.items()
        }
        self.questions = self._questions(sessions)
        if is_asked and not self.questions:
            raise SetError(
                f"{repository}: no commit names a checkpoint with a session whose "
                f"transcript is there"
            )

    def write_transcripts(self, directory: Path) -> dict[str, str]:
        """Their last states that are there."""
        directory.mkdir(parents=True)
        for transcript, content in self.contents():
            path = directory / f"{transcript.session}.jsonl"
            path.write_bytes(content)
            at = datetime.fromisoformat(transcript.created_at[:19] + "+00:00").timestamp()
            os.utime(path, (at, at))
        return {transcript.session: transcript.session for transcript in self.transcripts}

    def contents(self) -> Iterator[tuple[Transcript, bytes]]:
        """The longest transcript of each session, with what it holds."""
        return (
            (transcript, self._kept.content(transcript.blob)) for transcript in self.transcripts
        )

    def _questions(self, sessions: dict[str, list[Transcript]]) -> list[Question]:
        evidence: dict[str, set[str]] = {}
        for record in self._kept.ask(
            "log", "--all", "--no-show-signature", f"--format={_LOG}"
        ).split("\x1e"):
            subject, _, checkpoints = record.strip().partition("\x00")
            for checkpoint in filter(None, checkpoints.split(",")):
                made = {transcript.session for transcript in sessions.get(checkpoint.strip(), ())}
                if made:
                    evidence.setdefault(subject, set()).update(made)
        return [Question(subject, frozenset(made)) for subject, made in evidence.items()]
