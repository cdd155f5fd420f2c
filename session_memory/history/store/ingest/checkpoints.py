"""The sessions that a repository stores in git, as entire does, as a directory to ingest.

The branch `entire/checkpoints/v1` has a directory for each checkpoint, `<2 digits>/<10 digits>/`,
with a directory `<number>/` for each session. That has its `metadata.json` and its transcript so
far, `full.jsonl`. Newer versions store each checkpoint in a ref,
`refs/entire/checkpoints/<shard>/<id>`, whose tree is such a directory; a repository may have both.
The longest transcript of a session counts. A repository's content is not the person's, so it
becomes history of the project in the store, and goes nowhere else. git runs none of the
repository's programs and fetches nothing.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from ....common.system.git import find_worktree, refusal_at
from ....common.system.git_process import GitUnavailableError, ask_git, is_partial
from ....common.system.json import encode
from ....common.text.paths import is_name
from ....common.text.timestamps import epoch_seconds
from ....sessions.runtimes.table import all_runtimes
from ..values import FOREIGN_ROOT
from .sources import SUFFIX, SourceDirectory, SourceFile, Unreadable
from .values import FileState

BRANCHES = ("refs/heads/entire/checkpoints/v1", "refs/remotes/origin/entire/checkpoints/v1")
REFS = "refs/entire/checkpoints/"
FETCHED = "+refs/entire/checkpoints/*:refs/entire/checkpoints/*"  # a clone does not have them
SECONDS = 120.0  # for one question to git
MOST_BYTES = 256 * 1024 * 1024  # of a transcript
_METADATA = re.compile(r"([0-9a-zA-Z]{2})/([0-9a-zA-Z]+)/(\d+)/metadata\.json$")
_DAY = re.compile(r"^\d{4}-\d\d-\d\d-")  # before a session's id, in older checkpoints


class Transcript(NamedTuple):
    """A session's transcript at a checkpoint: its git object, its size, and its time."""

    session: str
    blob: str
    size: int
    created_at: str
    agent: str


class Checkpoints:
    """The sessions of a repository: the transcripts at each checkpoint.

    Raises GitUnavailableError without any checkpoint."""

    def __init__(self, repository: str) -> None:
        if refused := refusal_at(os.path.realpath(repository)):
            raise GitUnavailableError(refused)
        worktree = find_worktree(os.path.realpath(repository))
        self.root = worktree.root if worktree and worktree.root else os.path.realpath(repository)
        self.git_dir = worktree.common_dir if worktree else self.root
        self.of_checkpoint: dict[str, list[Transcript]] = {}
        refs = self.ask("for-each-ref", "--format=%(refname)", *BRANCHES, REFS).split()
        branches = [ref for ref in refs if ref in BRANCHES]
        if not refs:
            name = BRANCHES[0].partition("heads/")[2]
            raise GitUnavailableError(
                f"{repository}: no branch {name} and no refs in {REFS.rstrip('/')} "
                f"(git fetch origin {name}:{name} or git fetch origin '{FETCHED}' brings them)"
            )
        if branches:
            self._read_branch(branches[0])
        self._read_refs([ref for ref in refs if ref.startswith(REFS)])
        if not self.of_checkpoint and is_partial(self.git_dir):
            raise GitUnavailableError(
                f"{repository}: this clone is partial and lacks the sessions "
                "(git fetch --refetch --no-filter brings them)"
            )

    def _read_branch(self, branch: str) -> None:
        lines = self.ask("ls-tree", "-r", "-l", "-z", branch).split("\0")
        tree = {
            path: line.split() for line, _, path in (line.partition("\t") for line in lines) if path
        }
        checkpoints = [
            (path, match[1] + match[2]) for path in tree if (match := _METADATA.search(path))
        ]
        contents = self._contents([tree[path][2] for path, _ in checkpoints])
        for (path, checkpoint), content in zip(checkpoints, contents):
            if facts := tree.get(f"{path.removesuffix('metadata.json')}full.jsonl"):
                self._add(checkpoint, content, facts[1:])

    def _read_refs(self, refs: list[str]) -> None:
        """Read the checkpoints in refs, with one git call for all sessions of the same number."""
        number = 0
        while refs:
            names = [
                f"{ref}:{number}/{file}" for ref in refs for file in ("metadata.json", "full.jsonl")
            ]
            request = "".join(f"{name}\n" for name in names)
            lines = self.ask(
                "cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)", given=request
            )
            facts = [line.split(" ") for line in lines.splitlines()]
            sessions = [
                (ref, metadata[1], transcript)
                for ref, metadata, transcript in zip(refs, facts[::2], facts[1::2])
                if len(metadata) == 3 and metadata[0] == "blob"
            ]
            contents = self._contents([blob for _, blob, _ in sessions])
            for (ref, _, transcript), content in zip(sessions, contents):
                if len(transcript) == 3:
                    self._add(ref.rpartition("/")[2], content, transcript)
            refs, number = [ref for ref, _, _ in sessions], number + 1

    def _add(self, checkpoint: str, metadata: bytes, facts: list[str]) -> None:
        """Add a transcript, given by the type, name and size of its object."""
        transcript = _transcript(metadata, facts)
        if transcript is not None:
            self.of_checkpoint.setdefault(checkpoint, []).append(transcript)

    def longest(self) -> list[Transcript]:
        """Return the longest transcript of each session, the oldest first."""
        transcripts: dict[str, Transcript] = {}
        for transcript in (each for ones in self.of_checkpoint.values() for each in ones):
            if (
                transcript.session not in transcripts
                or transcript.size > transcripts[transcript.session].size
            ):
                transcripts[transcript.session] = transcript
        return sorted(
            transcripts.values(), key=lambda transcript: (transcript.created_at, transcript.session)
        )

    def content(self, blob: str) -> bytes:
        return self.ask("cat-file", "blob", blob).encode("utf-8", "surrogateescape")

    def ask(self, *arguments: str, given: str = "") -> str:
        return ask_git(self.git_dir, *arguments, given=given, seconds=SECONDS)

    def _contents(self, blobs: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of small objects; b'' for a missing one."""
        output = self.ask("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs))
        left = output.encode("utf-8", "surrogateescape")
        while left:
            head, _, left = left.partition(b"\n")
            size = int(head.split()[2]) if len(head.split()) == 3 else -1
            yield left[: max(0, size)]
            left = left[size + 1 :]


def _transcript(metadata: bytes, facts: list[str]) -> Transcript | None:
    """Return the transcript with this type, name and size of its object.

    Return None if it is missing, or if the metadata does not name its session."""
    try:
        fields: dict[str, Any] = json.loads(metadata)
        session, created_at, agent = (
            str(fields.get(key) or "") for key in ("session_id", "created_at", "agent")
        )
    except (ValueError, AttributeError, RecursionError):
        return None
    kind, name, digits = facts
    size = int(digits) if digits.isdecimal() else 0
    is_known = kind == "blob" and is_name(session) and 0 < size <= MOST_BYTES
    return Transcript(session, name, size, created_at, agent.lower()) if is_known else None


class CheckpointDirectory(SourceDirectory):
    """The sessions kept in a repository, as transcripts to ingest.

    The repository counts as the directory of each. Sessions that `states` have from another place
    are left out, because the runtime's own transcript has at least as much."""

    def __init__(self, repository: str, states: Mapping[str, FileState], home: str = "") -> None:
        """Raises GitUnavailableError."""
        self._checkpoints = Checkpoints(repository)
        root = self._checkpoints.git_dir + FOREIGN_ROOT
        super().__init__(root, home, is_named=True, confined_to=root)
        self.project = self._checkpoints.root
        self._states = states
        self._own = {
            state.session_id for state in states.values() if not state.root.endswith(FOREIGN_ROOT)
        }

    def holds(self, key: str) -> bool:
        return key.startswith(f"{self.root}/")

    def files(self, unreadable: Unreadable | None = None) -> list[SourceFile]:
        files: dict[str, SourceFile] = {}
        for transcript in self._checkpoints.longest():
            session = _DAY.sub("", transcript.session)
            key = f"{self.root}/{session}{SUFFIX}"
            if session not in self._own and (key not in files or transcript.size > files[key].size):
                files[key] = _CheckpointFile(
                    self, self._checkpoints, key, transcript, self._states.get(key)
                )
        return list(files.values())


class _CheckpointFile(SourceFile):
    """A transcript in git. An unnamed file has it while it is read."""

    def __init__(
        self,
        directory: SourceDirectory,
        checkpoints: Checkpoints,
        key: str,
        transcript: Transcript,
        state: FileState | None,
    ) -> None:
        modified = round((epoch_seconds(transcript.created_at) or 0) * 1000)
        # The stored size counts the lines that were read, which may differ from the lines in git.
        known = state if state is not None and state.last_modified == modified else None
        stamp = (
            (known.inode, known.file_size, modified) if known else (0, transcript.size, modified)
        )
        super().__init__(directory, key, key, stamp)
        self._checkpoints = checkpoints
        self._blob = transcript.blob

    def open(self) -> int:
        with TemporaryFile() as file:
            content = self._checkpoints.content(self._blob)
            exported = next(
                (
                    runtime
                    for lines_exported in all_runtimes()
                    if (runtime := lines_exported.exported_lines(content))
                ),
                (),
            )
            lines = [
                line if isinstance(line, bytes) else encode(line).encode() for line in exported
            ]
            file.write(b"".join([line + b"\n" for line in lines]) or content)
            file.flush()
            os.utime(file.fileno(), ns=(self.modified * 1_000_000, self.modified * 1_000_000))
            return os.dup(file.fileno())
