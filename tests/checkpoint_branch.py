"""A repository that keeps its sessions in git, on the branch of checkpoints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

BRANCH = "entire/checkpoints/v1"


def git(repository: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.stdout


def checkpoint(repository: Path, id: str, agent: str = "Claude Code", **sessions: bytes) -> None:
    """Commits a checkpoint with the transcripts of these sessions to the branch that keeps them."""
    git(repository, "checkout", "-q", BRANCH)
    for number, (session, transcript) in enumerate(sessions.items()):
        folder = repository / id[:2] / id[2:] / str(number)
        folder.mkdir(parents=True)
        created = f"2026-01-{10 + len(transcript) % 10}T10:00:00Z"
        metadata = {"session_id": session, "agent": agent, "created_at": created}
        (folder / "metadata.json").write_text(json.dumps(metadata))
        (folder / "full.jsonl").write_bytes(transcript)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", f"Checkpoint {id}")
    git(repository, "checkout", "-q", "work")


def checkpoint_ref(repository: Path, id: str, **sessions: bytes) -> None:
    """Makes a checkpoint with the transcripts of these sessions in a ref of its own, as newer
    versions of entire do."""
    lines = ""
    for number, (session, transcript) in enumerate(sessions.items()):
        created = f"2026-02-{10 + len(transcript) % 10}T10:00:00Z"
        metadata = {"session_id": session, "agent": "Claude Code", "created_at": created}
        files = {"full.jsonl": transcript, "metadata.json": json.dumps(metadata).encode()}
        blobs = {
            name: written(repository, content, "hash-object", "-w", "--stdin")
            for name, content in files.items()
        }
        tree = "".join(f"100644 blob {blob}\t{name}\n" for name, blob in blobs.items())
        lines += f"040000 tree {written(repository, tree.encode(), 'mktree')}\t{number}\n"
    lines += (
        f"100644 blob {written(repository, b'{}', 'hash-object', '-w', '--stdin')}\tmetadata.json\n"
    )
    commit = git(
        repository,
        "commit-tree",
        "-m",
        f"Checkpoint {id}",
        written(repository, lines.encode(), "mktree"),
    )
    git(repository, "update-ref", f"refs/entire/checkpoints/{id[-2:]}/{id}", commit.strip())


def written(repository: Path, content: bytes, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=repository,
        check=True,
        capture_output=True,
        input=content,
        timeout=30,
    )
    return done.stdout.decode().strip()
