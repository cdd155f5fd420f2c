"""`session-memory why`: shows who asked for a line or a commit, in which words, and with what
result.
"""

from __future__ import annotations

import argparse
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ... import NAME, __version__
from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.git_process import GitUnavailableError
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import counted
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import iso_time, now_milliseconds
from ...history.git.commits import Repository
from ...history.patterns.why import Asked, Reason, Reasons
from ...history.patterns.why_text import AGREED, HINT, find_reasons, told
from ...history.store.sqlite.written_lines import known_key
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.settings.homes import user_dir
from .arguments import OnlyForPeopleError, add_common
from .opened_store import OpenStore, refresh, with_store
from .output import iso

SUMMARY = "explain a line or commit: who asked for it, and why"
NOTES_REF = "session-memory"
MOST_REASONS = 5  # of a file or a commit, shown without --all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="FILE[:LINE[-LINE]]|COMMIT", nargs="?", default="", help=HINT
    )
    parser.add_argument("--staged", action="store_true", help="explain the staged changes")
    parser.add_argument(
        "--all", action="store_true", help=f"show all reasons, not only {MOST_REASONS}"
    )
    parser.add_argument(
        "--format", choices=("text", "agent-trace"), default="text", help="agent-trace: version 0.1"
    )
    parser.add_argument(
        "--notes",
        action="store_true",
        help=f"write a note to refs/notes/{NOTES_REF}, after a preview",
    )
    parser.add_argument(
        "--with-prompts", action="store_true", help="with --notes: include the words of the request"
    )
    parser.add_argument("--yes", action="store_true", help="with --notes: do not ask")
    add_common(parser, private=True)


def run(arguments: argparse.Namespace) -> int:
    """Return 1 if nothing is known. Raises SessionMemoryError."""
    if bool(arguments.target) == arguments.staged:
        raise WrongCallError("name one thing to explain", HINT)
    if arguments.notes and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--notes")
    return with_store(arguments, lambda opened: _why(opened, arguments))


def _why(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened, with_sub_agents=True)
    try:
        repository, reasons, commit = find_reasons(
            lambda repository: Reasons(opened.store, repository, known_key(opened.store.path)),
            arguments.target,
            os.getcwd(),
            user_dir(os.environ),
        )
    except GitUnavailableError as error:
        raise SessionMemoryError(f"git cannot tell: {error}") from error
    if arguments.format == "agent-trace":
        with suppress(GitUnavailableError):
            commit = commit or repository.resolved("HEAD")
        opened.terminal.show(AgentTrace(reasons, commit))
        return 0
    opened.terminal.show(
        FoundReasons(
            reasons, MOST_REASONS if not arguments.all else None, repository.lacks, arguments.staged
        )
    )
    if arguments.notes:
        _note(opened, repository, reasons, commit, arguments)
    return 0 if any(reason.asked for reason in reasons) else 1


@dataclass(frozen=True)
class FoundReasons(Result):
    """The reasons for lines, and why git could not answer, if so (`lacks`).

    People see at most `limit` reasons. If `is_staged`, they are for the staged changes."""

    reasons: list[Reason]
    limit: int | None
    lacks: str
    is_staged: bool

    def show(self, terminal: Terminal) -> None:
        with terminal.paged():
            self._show_reasons(terminal)

    def _show_reasons(self, terminal: Terminal) -> None:
        shown = self.reasons[: self.limit]
        for place, reason in enumerate(shown):
            if place:
                terminal.line()
            where, *lines = told(reason)
            terminal.line(terminal.paint("bold", where))
            for line in lines:
                label = AGREED if line.startswith(AGREED) else ""  # before an agent's words
                if label:
                    terminal.markdown(line[len(label) :], label)
                else:
                    terminal.line(line)
        if len(shown) < len(self.reasons):
            more = counted(len(self.reasons) - len(shown), "more reason")
            terminal.line(f"\n{more}: --all shows them.")
        if self.lacks:
            terminal.line(f"\n{self.lacks}")
        if not self.reasons:
            terminal.line("Nothing is staged." if self.is_staged else "There are no lines.")

    def as_json(self) -> dict[str, Any]:
        return {
            "reasons": [_as_json(reason) for reason in self.reasons],
            "lacks": self.lacks or None,
        }


def _as_json(reason: Reason) -> dict[str, Any]:
    commit, guess = reason.commit, reason.guess
    return {
        "path": reason.path,
        "first": reason.first,
        "last": reason.last,
        "lines": reason.lines,
        "commit": {
            "id": commit.id,
            "author": commit.author,
            "subject": commit.subject,
            "at": iso(commit.at),
        }
        if commit
        else None,
        "asked": _asked_as_json(reason.asked),
        "mover": _asked_as_json(reason.mover),
        "not_attributed": reason.refused,
        "is_by_commit": reason.is_by_commit,
        "lines_not_compared": reason.not_compared,
        "reformatted": _reformatting_as_json(reason),
        "guess_by_time": {
            "session": guess.session_id,
            "runtime": guess.runtime,
            "conversation": guess.id,
            "by": reason.guessed_by,
        }
        if guess
        else None,
    }


def _reformatting_as_json(reason: Reason) -> dict[str, Any] | None:
    change = reason.reformatted
    if change is None:
        return None
    who = change.origin or change.guess
    return {
        "commit": change.commit.id,
        "at": iso(change.commit.at),
        "session": who.session_id if who else None,
        "is_guess": bool(change.guess),
    }


def _asked_as_json(origin: Asked | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    return {
        "session": origin.session_id,
        "runtime": origin.runtime,
        "title": origin.title,
        "at": iso(origin.at),
        "words": origin.words,
        "proposal": origin.proposal,
        "decided": list(origin.decided),
        "command": origin.command or None,
        "read": f"{called_as()} read {origin.conversation} --around {origin.number}",
    }


@dataclass(frozen=True)
class AgentTrace(Result):
    """A record of Agent Trace 0.1 (agent-trace.dev): the lines of each file by conversation.

    It has no revision if a line is not committed. People get the JSON too."""

    reasons: Sequence[Reason]
    revision: str

    def show(self, terminal: Terminal) -> None:
        terminal.show_json(self)

    def as_json(self) -> dict[str, Any]:
        is_committed = self.revision and all(reason.commit for reason in self.reasons)
        return {
            "version": "0.1",
            "id": str(uuid.uuid4()),
            "timestamp": iso_time(now_milliseconds() / 1000),
            **({"vcs": {"type": "git", "revision": self.revision}} if is_committed else {}),
            "tool": {"name": NAME, "version": __version__},
            "files": [
                {
                    "path": path,
                    "conversations": [
                        {"url": address, "contributor": {"type": "ai"}, "ranges": ranges}
                        for address, ranges in conversations.items()
                    ],
                }
                for path, conversations in self._ranges().items()
            ],
        }

    def _ranges(self) -> dict[str, dict[str, list[dict[str, int]]]]:
        """Return the lines of each file by the address of the conversation that asked for them."""
        files: dict[str, dict[str, list[dict[str, int]]]] = {}
        for reason in self.reasons:
            for path, first, last in reason.ranges or ((reason.path, reason.first, reason.last),):
                if reason.asked and path and not reason.is_by_commit:
                    address = f"urn:session-memory:{reason.asked.runtime}:{reason.asked.session_id}"
                    ranges = files.setdefault(path, {}).setdefault(address, [])
                    ranges.append({"start_line": first, "end_line": last})
        return files


def note_text(reasons: Sequence[Reason], with_prompts: bool) -> str:
    """Return the note for a commit: its sessions, redacted; `with_prompts` also their requests."""
    lines = []
    for reason in reasons:
        if origin := reason.asked:
            lines.append(
                f"{origin.runtime} session {origin.session_id}, {iso(origin.at)}: "
                f"{counted(reason.lines, 'line')}"
            )
            lines += [f"asked: {for_prompt(origin.words)}"] if with_prompts and origin.words else []
    return "\n".join(lines)


def _note(
    opened: OpenStore,
    repository: Repository,
    reasons: Sequence[Reason],
    commit: str,
    arguments: argparse.Namespace,
) -> None:
    if not commit:
        raise WrongCallError("--notes is for a commit", f"{NAME} why HEAD --notes")
    text, terminal = note_text(reasons, arguments.with_prompts), opened.terminal
    if not text:
        terminal.line("Nothing to note.")
        return
    terminal.line(f"\nThe note for {commit[:8]} in refs/notes/{NOTES_REF}:\n")
    terminal.line(text)
    if not (arguments.yes or (terminal.can_ask() and terminal.ask("Write it?"))):
        terminal.line(f"\nNot written. To write it: {called_as()} why {commit[:8]} --notes --yes")
        return
    try:
        repository.note(commit, NOTES_REF, text)
    except GitUnavailableError as error:
        raise SessionMemoryError(f"the note was not written: {error}") from error
    terminal.line("Written.")
