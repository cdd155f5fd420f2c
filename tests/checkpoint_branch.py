"""A repository that keeps its sessions in git, on the branch of checkpoints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

BRANCH = "entire/checkpoints/v1"


def git(repository: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=repository, check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout


def checkpoint(repository: Path, id: str, **sessions: bytes) -> None:
    """Commits a checkpoint with the transcripts of these sessions to the branch that keeps them."""
    git(repository, "checkout", "-q", BRANCH)
    for number, (session, transcript) in enumerate(sessions.items()):
        folder = repository / id[:2] / id[2:] / str(number)
        folder.mkdir(parents=True)
        created = f"2026-01-{10 + len(transcript) % 10}T10:00:00Z"
        metadata = {"session_id": session, "agent": "Claude Code", "created_at": created}
        (folder / "metadata.json").write_text(json.dumps(metadata))
        (folder / "full.jsonl").write_bytes(transcript)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", f"Checkpoint {id}")
    git(repository, "checkout", "-q", "work")
