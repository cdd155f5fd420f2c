"""A clone of a public repository, by git, and the transcripts in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from session_memory.sessions.runtimes.claude import encode_cwd

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
}
TIMES = re.compile(rb'"timestamp": ?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')
MOST_CHARACTERS = 2000  # of an error
_CWD = re.compile(rb'"cwd": ?"([^"]+)"')
_BLAMED = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)")


class Source:
    """The clone at `path`, bare or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git_dir = next(
            (directory for directory in (path / ".git", path) if (directory / "objects").is_dir()),
            path,
        )

    @property
    def name(self) -> str:
        """Return `owner/name`, from the origin or else a directory such as `owner+name/repo`."""
        origin = (
            self.ask("config", "--get", "remote.origin.url", fine=True).strip().removesuffix(".git")
        )
        folder = self.path.resolve()
        folder = folder.parent if "+" in folder.parent.name else folder
        return (
            "/".join(re.split(r"[/:]", origin)[-2:]) if origin else folder.name.replace("+", "/", 1)
        )

    def holds(self, commit: str) -> bool:
        """Check if a commit is here."""
        return self.ask("cat-file", "-t", commit, fine=True).strip() == "commit"

    def resolved(self, ref: str) -> str:
        """Return the commit of a ref, '' for none."""
        return self.ask("rev-parse", "-q", "--verify", ref, fine=True).strip()

    def ask(self, *arguments: str, fine: bool = False) -> str:
        return self.bytes(*arguments, fine=fine).decode(errors="replace")

    def bytes(self, *arguments: str, fine: bool = False) -> bytes:
        """Return git's output. Raises CalledProcessError, unless its failure is `fine`."""
        command = ["git", f"--git-dir={self.git_dir}", "--no-replace-objects", *arguments]
        return subprocess.run(command, capture_output=True, check=not fine, env=ENVIRONMENT).stdout

    def files(self, commit: str) -> dict[str, str]:
        """Return the path of each blob of a commit, the first one of several."""
        path_by_object: dict[str, str] = {}
        for line in self.ask("ls-tree", "-r", "-z", commit).split("\0"):
            facts, _, path = line.partition("\t")
            if facts.startswith("100"):
                path_by_object.setdefault(facts.split()[2], path)
        return path_by_object

    def blamed(self, commit: str, path: str) -> Iterator[tuple[str, int, str]]:
        """Yield for each line of a file the commit that wrote it, its number, and its text."""
        by, number = "", 0
        for line in self.ask("blame", "-p", commit, "--", path, fine=True).split("\n"):
            if head := _BLAMED.match(line):
                by, number = head[1], int(head[2])
            elif line.startswith("\t"):
                yield by, number, line[1:]


def write_home(
    home: Path, repository: Path, name: str, transcripts: dict[str, bytes]
) -> dict[str, str]:
    """Write transcripts where their runtimes keep them, as if their sessions had worked in
    `repository`; return the path of each session."""
    path_by_session = {}
    for session, content in transcripts.items():
        stamps = TIMES.findall(content)
        began = stamps[0].decode() if stamps else "2026-01-01T00:00:00"
        if b'"session_meta"' in content[:4096]:
            stamp = began.replace(":", "-")
            path = (
                home
                / ".codex/sessions"
                / began[:10].replace("-", "/")
                / f"rollout-{stamp}-{session}.jsonl"
            )
        else:
            path = home / ".claude/projects" / encode_cwd(str(repository)) / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_moved(content, name, str(repository).encode()))
        end = datetime.fromisoformat(
            (max(stamps).decode() if stamps else began) + "+00:00"
        ).timestamp()
        os.utime(path, (end, end))
        path_by_session[session] = str(path)
    return path_by_session


def began_at(content: bytes) -> int:
    """Return when a session began, in milliseconds."""
    first = TIMES.search(content)
    return (
        round(datetime.fromisoformat(first[1].decode() + "+00:00").timestamp() * 1000)
        if first
        else 0
    )


def _moved(content: bytes, name: str, to: bytes) -> bytes:
    """Return a transcript with the repository's directory replaced."""
    if not (cwd := _CWD.search(content)):
        return content
    parts = cwd[1].split(b"/")
    names = [part.lower() for part in parts]
    repository = name.rpartition("/")[2].lower().encode()
    root = b"/".join(parts[: names.index(repository) + 1]) if repository in names else cwd[1]
    return re.sub(re.escape(root) + rb'(?=[/"\\\s])', lambda _: to, content)


def error_text(content: bytes, offset: int) -> str:
    """Return the result of the tool call in the record at `offset` of a transcript.

    Of several calls, it is the failed one's."""
    end = content.find(b"\n", offset)
    ids = {call for call in _calls(json.loads(content[offset:end])) if call}
    for line in content[end + 1 :].split(b"\n"):
        if any(call.encode() in line for call in ids) and (
            text := _failed_result(json.loads(line), ids)
        ):
            return text[:MOST_CHARACTERS]
    return ""


def _calls(record: dict[str, object]) -> list[str]:
    payload, message = record.get("payload"), record.get("message")
    if isinstance(payload, dict):
        return [str(payload.get("call_id") or "")]
    blocks = message.get("content") if isinstance(message, dict) else None
    return [
        str(block.get("id", ""))
        for block in blocks or []
        if isinstance(block, dict) and block.get("type") == "tool_use"
    ]


def _failed_result(record: dict[str, object], ids: set[str]) -> str:
    payload, message = record.get("payload"), record.get("message")
    if isinstance(payload, dict):
        return _flat(payload.get("output")) if payload.get("call_id") in ids else ""
    blocks = message.get("content") if isinstance(message, dict) else None
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and block.get("tool_use_id") in ids and block.get("is_error"):
            return _flat(block.get("content"))
    return ""


def _flat(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    if isinstance(content, dict):
        return _flat(content.get("output") or content.get("content"))
    if isinstance(content, str) and content.startswith("{"):
        try:
            return _flat(json.loads(content))
        except ValueError:
            return content
    return content if isinstance(content, str) else ""
