"""`python -m bench.research.replay REPOSITORY...`: what would be told at the moment of a call, judged by
public checkpoints.

The sessions of a repository with checkpoints are played again in order of time: at each call only
what was written before it is known. Every kind of report has its own function, which yields a
verdict for each that it would make:

- `wrong_paths`: a read or an edit fails since there is no file, and one known path is meant. Right
  if the session opens that path, or names it in a command, in its next 10 calls.
- `remedies`: a command fails with an error that the same step overcame in two other sessions. Right
  if the same step overcomes it now.

Conditions, written before the first run: a kind that is right less than half of the time in the
repositories on which nobody developed is not shipped, nor is one that reports on any call that
succeeds. Developed on entireio/git-sync, JanDeDobbeleer/oh-my-posh and Beep206/CyberVPN. The first
rule for wrong paths (one file of that name is known) failed on entireio/cli, 8 right of 17; it was
narrowed there, so that repository counts as developed on too. `remedies` fails."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from session_memory.awareness.events.failed_call import plausible
from session_memory.history.patterns.failures import Failure, failures, normalised, what_followed
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.tool_uses import ConversationSteps, conversation_steps
from session_memory.history.store.values import Filter, StoredEntry

from ..command import run
from ..scratch import scratch_directory
from .recall.checkpoints import Checkpoints

NEXT = 10  # calls after a report, in which it comes true
_NO_FILE = re.compile(r"does not exist|no such file|ENOENT|file not found", re.IGNORECASE)


class Call(NamedTuple):
    """A call of a session in the worktree at `root`, and those after it."""

    session: str
    root: str
    tool: StoredEntry
    after: Sequence[StoredEntry]

    @property
    def at(self) -> int:
        return self.tool.timestamp or 0


class Verdict(NamedTuple):
    """A report with a call, and if it came true, None if nothing tells."""

    call: Call
    text: str
    is_right: bool | None


class History:
    """The sessions of a repository, in a store at `root`."""

    def __init__(self, repository: Path, root: Path) -> None:
        Checkpoints(repository, is_asked=False).write_transcripts(root / "projects" / "-repository")
        self.store = SqliteStore(str(root / "store" / "memory.db"))
        Ingestion(self.store, workers=os.cpu_count() or 1).scan(
            SourceDirectory(str(root / "projects"))
        )
        self.conversations = sorted(
            conversation_steps(self.store, Filter(limit=10**6)),
            key=lambda conversation: conversation.conversation.last_message_at or 0,
        )
        self._git = ["git", "-C", str(repository)]
        self.tree_of = cache(self._tree_of)
        self._directories = {os.path.dirname(path) for path in self.tree_of("HEAD")}
        self._started = {conversation.conversation.cwd for conversation in self.conversations}
        calls = [
            call
            for conversation in self.conversations
            for call in _calls(conversation, self._root(conversation.conversation.cwd))
        ]
        self.calls = sorted(calls, key=lambda call: call.at)

    def _root(self, directory: str) -> str:
        """Return the root of a session's worktree, if another session was started there."""
        parts = directory.split("/")
        roots = ["/".join(parts[:at]) for at in range(2, len(parts))]
        inside = [
            root
            for root in roots
            if root in self._started and directory[len(root) :] in self._directories
        ]
        return inside[0] if inside else directory

    def files_at(self, milliseconds: int) -> frozenset[str]:
        """Return the files of the repository's main branch at a time, each with a slash before
        it."""
        commit = self._run("rev-list", "-1", f"--before={milliseconds // 1000}", "HEAD").strip()
        return self.tree_of(commit) if commit else frozenset()

    def _tree_of(self, commit: str) -> frozenset[str]:
        names = self._run("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        return frozenset([f"/{name}" for name in names if name])

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._git, *arguments], capture_output=True, text=True, check=True, errors="replace"
        )
        return done.stdout


def wrong_paths(history: History) -> Iterator[Verdict]:
    """Yield the paths that would be named after calls for missing files."""
    opened: set[str] = set()
    for call in history.calls:
        if call.tool.kind not in ("read", "edit"):
            continue
        if call.tool.outcome == "ok":
            opened.add(_inside(call, call.tool.text))
        elif call.tool.outcome == "error" and _NO_FILE.search(call.tool.error):
            opened.discard(_inside(call, call.tool.text))
            known = [
                f"{call.root}{inside}" for inside in opened | history.files_at(call.at) if inside
            ]
            path = plausible(call.tool.text, known)
            if path:
                yield Verdict(
                    call, path, any(_names(call, following, path) for following in call.after)
                )


def remedies(history: History) -> Iterator[Verdict]:
    """Yield the steps that would be named after commands that fail with a known error."""
    overcame: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for conversation in history.conversations:
        session = conversation.conversation.session_id
        failing = [
            failure for failure in failures(conversation.steps) if failure.tool.kind == "command"
        ]
        for failure in failing:
            known = [
                step
                for step, ones in overcame[normalised(failure.tool.error)].items()
                if len(ones - {session}) > 1
            ]
            if len(known) == 1:
                call = Call(session, conversation.conversation.cwd, failure.tool, ())
                yield Verdict(call, known[0], _step(failure) == known[0])
        for failure in failing:
            if step := _step(failure):
                overcame[normalised(failure.tool.error)][step].add(session)


KINDS: dict[str, Callable[[History], Iterator[Verdict]]] = {
    "wrong paths": wrong_paths,
    "remedies": remedies,
}


def main(*repositories: Path, show: bool = False) -> None:
    """Print the figures of each repository; `show` also each report."""
    for path in repositories:
        with scratch_directory() as root:
            history = History(path, root)
            print(
                f"{path.parent.name}: {len(history.conversations)} conversations, "
                f"{len(history.calls)} calls"
            )
            for name, kind in KINDS.items():
                report(name, list(kind(history)), history, show=show)
            history.store.close()


def report(name: str, verdicts: list[Verdict], history: History, *, show: bool) -> None:
    """Print the figures of a kind."""
    judged = Counter(verdict.is_right for verdict in verdicts if verdict.is_right is not None)
    right = (
        f"{judged[True]} of {judged.total()} right" if judged else "nothing tells if they are right"
    )
    succeeded = sum(verdict.call.tool.outcome == "ok" for verdict in verdicts) if judged else 0
    rate = 1000 * len(verdicts) / max(1, len(history.calls))
    print(
        f"  {name}: {len(verdicts)}, {rate:.2f} in 1,000 calls, {right}, {succeeded} with calls "
        f"that succeed"
    )
    for verdict in verdicts if show else ():
        print(f"    {verdict.is_right} {verdict.call.tool.text[:80]!r}: {verdict.text[:100]!r}")


def _calls(conversation: ConversationSteps, root: str) -> list[Call]:
    tools = [_absolute(step, root) for step in conversation.steps if step.role == "tool"]
    session = conversation.conversation.session_id
    return [
        Call(session, root, tool, tools[at + 1 : at + 1 + NEXT]) for at, tool in enumerate(tools)
    ]


def _absolute(tool: StoredEntry, root: str) -> StoredEntry:
    """Return a call with the whole path of the file that it opens."""
    return (
        tool._replace(text=os.path.join(tool.cwd or root, tool.text))
        if tool.kind in ("read", "edit")
        else tool
    )


def _inside(call: Call, path: str) -> str:
    """Return a path below the root of the worktree, with a leading slash, or ''."""
    return path.removeprefix(call.root) if path.startswith(f"{call.root}/") else ""


def _names(call: Call, later: StoredEntry, path: str) -> bool:
    """Check if a later call opens a file, or has its path in a command."""
    if later.kind in ("read", "edit"):
        return later.outcome != "error" and later.text == path
    return later.kind == "command" and path.removeprefix(f"{call.root}/") in later.text


def _step(failure: Failure) -> str:
    """Return the step that overcame a failure; '' if it names neither command nor file."""
    followed = what_followed(failure)
    return followed if "`" in followed else ""


if __name__ == "__main__":
    run(main)
