"""Finds the reasons for a line or commit, and prints them, quotations first."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.system.git import find_worktree, refusal_at
from ...common.system.git_process import GitUnavailableError
from ...common.system.terminal import called_as
from ...common.text.format import counted, one_line, shorten, shortened_id
from ...common.text.sanitize import for_prompt, name_for_people
from ...common.text.timestamps import local_time
from ..git.commits import Repository
from .why import Reason, Reasons, Reformatting

if TYPE_CHECKING:
    from .why import Asked

HINT = "FILE, FILE:LINE, FILE:LINE-LINE or a commit: session-memory why src/cart.py:12"
MOST_LINES = 2000
AGENT_CHARACTERS = 1200
AGREED = "  agreed to: "
_AGENT_QUOTE = 300
COMMAND_CHARACTERS = 120
_TARGET = re.compile(r"(.+?)(?::(\d+)(?:-(\d+))?)?\Z", re.DOTALL)


def find_reasons(
    reasons_in: Callable[[Repository], Reasons],
    target: str,
    directory: str,
    user_dir: str,
    *,
    is_confined: bool = False,
) -> tuple[Repository, list[Reason], str]:
    """Return the repository, the reasons for `target`, and its commit ('' for a file).

    Without `target`, the reasons are for the staged lines. If `is_confined`, a file outside the
    repository of `directory` is refused. Raises SessionMemoryError, GitUnavailableError."""
    if "\0" in target:
        raise SessionMemoryError(
            "the name of a file or commit cannot contain a NUL character", HINT
        )
    matched = _TARGET.match(target)
    path = os.path.abspath(os.path.join(directory, matched[1])) if matched else ""
    is_file = bool(path) and os.path.isfile(path)
    worktree = find_worktree(os.path.dirname(path) if is_file else directory, user_dir)
    here = find_worktree(directory, user_dir) if is_confined else worktree
    if refused := refusal_at(os.path.dirname(path) if is_file else directory, user_dir):
        raise GitUnavailableError(refused)
    if (
        worktree is None
        or not worktree.root
        or here is None
        or here.common_dir != worktree.common_dir
    ):
        raise SessionMemoryError(f"{target or directory}: it is not in a git worktree", HINT)
    repository = Repository(worktree.git_dir, worktree.root)
    reasons = reasons_in(repository)
    if not target:
        return repository, reasons.of_staged(), ""
    if is_file and matched:
        inside = os.path.relpath(os.path.realpath(path), worktree.root)
        return repository, _of_lines(reasons, inside, matched), ""
    commit = repository.resolved(target)
    if not commit:
        raise SessionMemoryError(f"{target}: neither a file nor a commit here", HINT)
    return repository, reasons.of_commit(commit), commit


def _of_lines(reasons: Reasons, path: str, matched: re.Match[str]) -> list[Reason]:
    first = int(matched[2] or 1)
    last = int(matched[3] or matched[2] or MOST_LINES)
    its_reasons = reasons.of_lines(path, first, max(first, last)) if first else []
    if matched[2] and not its_reasons:
        raise SessionMemoryError(f"{path} has no line {first}", HINT)
    return its_reasons


def told(reason: Reason) -> list[str]:
    """Return the lines that state a reason, quotations first."""
    lines = []
    where = f"{name_for_people(reason.path)}:{_line_numbers(reason)}"
    commit = reason.commit
    written = (
        f"commit {commit.id[:8]}, {name_for_people(commit.subject)}" if commit else "not committed"
    )
    if reason.ranges:  # of a commit
        where = f"{counted(reason.lines, 'line')}, the first of them {where}"
    lines.append(f"{where if reason.path else 'the commit'} ({written})")
    if reason.not_compared:
        lines.append(
            f"  {reason.not_compared:,} of its added lines were not compared with the sessions' "
            f"edits, because there are too many."
        )
    if reason.asked:
        lines += _told_of(reason.asked)
        if command := reason.asked.command:
            said = "it made the commit" if reason.is_by_commit else "its command wrote the file"
            lines.insert(-1, f"  {said}: {_quoted_command(command)}")
        if reason.mover:
            mover = (
                f"{reason.mover.runtime} session {_short_id(reason.mover.session_id)}, "
                f"{_moment(reason.mover.at)}"
            )
            lines.append(f"  moved or rewritten by {mover}")
    elif reason.refused:
        lines.append(f"  No session: {reason.refused}.")
    else:
        lines.append("  Unknown: no session in the store wrote this.")
        if commit:
            lines.append(
                f"  git blame: {name_for_people(commit.author)}, {_moment(commit.authored_at)}"
            )
        if guess := reason.guess:
            session = (
                f"{guess.runtime} session {_short_id(guess.session_id)} "
                f"“{one_line(for_prompt(guess.title))}”"
            )
            lines.append(f"  A guess, by {reason.guessed_by}: {session}")
            lines.append(f"  {called_as()} read {guess.id}")
    if reason.reformatted:
        lines.append(f"  {_reformatted(reason.reformatted)}")
    return lines


def _reformatted(change: Reformatting) -> str:
    """Return who changed only the layout of lines, and when."""
    commit = f"commit {change.commit.id[:8]}, {name_for_people(change.commit.subject)}"
    who = change.origin or change.guess
    by = f" by {who.runtime} session {_short_id(who.session_id)}" if who else ""
    note = ", a guess by time alone" if who and not change.origin else ""
    return f"written before {_moment(change.commit.authored_at)}, reformatted{by}{note} ({commit})"


def _line_numbers(reason: Reason) -> str:
    return f"{reason.first}-{reason.last}" if reason.last != reason.first else f"{reason.first}"


def _told_of(origin: Asked) -> list[str]:
    lines = (
        [f"  asked: “{for_prompt(origin.words)}”"]
        if origin.words
        else ["  asked: no request is recorded"]
    )
    if origin.proposal:
        lines.append(f"{AGREED}“{for_prompt(origin.proposal)}”")
    lines += [f"  decided on the way: “{for_prompt(decision)}”" for decision in origin.decided]
    title = f" “{one_line(for_prompt(origin.title))}”" if origin.title else ""
    lines.append(
        f"  {origin.runtime} session {_short_id(origin.session_id)}{title}, {_moment(origin.at)}"
    )
    lines.append(f"  {called_as()} read {origin.conversation} --around {origin.number}")
    return lines


def told_to_agent(reasons: Sequence[Reason]) -> str:
    """Return the reasons for an agent, at most AGENT_CHARACTERS, requests first."""
    blocks: list[str] = [] if reasons else ["There are no lines."]
    for reason in reasons:
        block = _block(reason)
        if blocks and sum(map(len, blocks)) + 2 * len(blocks) + len(block) > AGENT_CHARACTERS - 60:
            blocks.append("There are more. Ask about fewer lines.")
            break
        blocks.append(block)
    text = "\n\n".join(dict.fromkeys(blocks))
    return text if len(text) <= AGENT_CHARACTERS else text[: AGENT_CHARACTERS - 1] + "…"


def _block(reason: Reason) -> str:
    lines = []
    commit = reason.commit
    if origin := reason.asked:
        lines += [f"“{_quoted(origin.words)}”"] if origin.words else []
        lines += [f"agreed to: “{_quoted(origin.proposal)}”"] if origin.proposal else []
        lines += [f"decided on the way: “{_quoted(decision)}”" for decision in origin.decided]
        session = f"{origin.runtime} session {name_for_people(origin.session_id)}"
        if origin.command:
            said = "made the commit" if reason.is_by_commit else "wrote the file"
            lines.append(f"{said}: {_quoted_command(origin.command)}")
        lines.append(f"{session}, {_moment(origin.at)}: read_session reads it")
    elif reason.refused:
        lines.append(f"No session: {reason.refused}.")
    else:
        lines.append("Unknown: no session in the store wrote this.")
        if guess := reason.guess:
            session = f"{guess.runtime} session {name_for_people(guess.session_id)}"
            lines.append(f"A guess, by {reason.guessed_by}: {session}")
    if reason.not_compared:
        lines.append(f"{reason.not_compared:,} of its added lines were not compared.")
    if reason.reformatted:
        lines.append(_reformatted(reason.reformatted))
    place = f"{_quoted(reason.path)}:{_line_numbers(reason)}" if reason.path else "all of it"
    lines.append(
        place
        + (f", commit {commit.id[:8]} “{_quoted(commit.subject)}”" if commit else ", not committed")
    )
    return "\n".join(lines)


def _quoted_command(command: str) -> str:
    shown = shorten(one_line(for_prompt(command)), COMMAND_CHARACTERS).replace("`", "'")
    return f"`{shown}`"


def _short_id(session_id: str) -> str:
    return shortened_id(name_for_people(session_id))


def _quoted(text: str) -> str:
    return for_prompt(shorten(text, _AGENT_QUOTE))


def _moment(milliseconds: int | None) -> str:
    return local_time(milliseconds / 1000) if milliseconds is not None else "at an unknown time"
