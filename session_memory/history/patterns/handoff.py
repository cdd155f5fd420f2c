"""The page that hands a session over to another session, agent or machine.

It has the requests and decisions, the state of the files, failures, and the next step. It uses no
model: messages are quoted verbatim.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...common.system.git import Worktree, find_worktree, head_of, is_commit
from ...common.system.git_process import GitUnavailableError
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_prompt, plain
from ...common.text.shell_commands import family, is_looking
from ...common.text.timestamps import local_time
from ...sessions.transcripts.reader import is_request
from ..git.commits import Repository
from ._quotations import decisions, is_go_ahead, proposal_in, question_in
from .failures import failures

if TYPE_CHECKING:
    from ..store.values import Conversation, StoredEntry

PAGE_CHARACTERS = 6000
FIRST_CHARACTERS = 1200
LAST_CHARACTERS = 700
PART_CHARACTERS = 400
FILES_CHARACTERS = 1300
MOST_FILES = 24
MOST_READ = 8
MOST_COMMANDS = 4
LATER = 10 * 60_000  # a session's own commit may still come within this time after its last message
COMMAND_CHARACTERS = 120
MOST_BETWEEN = 5
BETWEEN_CHARACTERS = 160
CONFLICTING, CHANGED, COMMITTED, GONE, UNKNOWN = (
    "conflicting",
    "not committed",
    "committed",
    "gone",
    "edited",
)
_NEXT = re.compile(
    r"\b(?:next steps?|what(?:'s| is) (?:left|next)|remaining "
    r"(?:work|tasks?|steps?|items?|issues?)|"
    r"still (?:to do|missing|open|need)|to-?do|left to do|follow-?ups?|not (?:yet "
    r")?(?:done|implemented|started))\b|"
    r"^\W*(?:next|remaining)\b",
    re.I | re.M,
)
_IS_GIT = re.compile(
    r"(?:^|&&\s*|;\s*)git\s+(?:-\S+\s+)*(commit|push|rebase|merge|cherry-pick|pull)\b"
)


class HandedFile(NamedTuple):
    """A file that the session edited, and its state in git.

    `path` is relative to the session's directory if it is inside. `state` is one of the words
    above. `told` names the file's last commit, if it was made during or after the session, or the
    other side of a conflict."""

    path: str
    state: str
    told: str = ""


class Handoff(NamedTuple):
    """A session's facts for its successor.

    The texts are verbatim, '' if missing. `between` has the requests after the first and before the
    last. If the last request is a bare go-ahead, `agreed` is the proposal that it accepts. `failed`
    is the last failing command and its error, `calls_since` the number of calls since then.
    `ended_with` is the end of the last answer."""

    session_id: str
    runtime: str
    title: str
    directory: str
    branch: str
    first_at: int | None
    last_at: int | None
    first_request: str
    between: tuple[str, ...]
    last_request: str
    agreed: str
    decided: tuple[str, ...]
    files: tuple[HandedFile, ...]
    read: tuple[str, ...]
    commands: tuple[str, ...]
    failed: tuple[str, str]
    calls_since: int
    question: str
    next_step: str
    ended_with: str
    conversation: int


def handed_over(
    conversation: Conversation,
    items: Sequence[StoredEntry],
    conflicts: Mapping[str, str],
    user_dir: str,
    edited_files: Sequence[str],
) -> Handoff:
    """Return the handoff of a session from its `items`; `conversation` is its last one.

    `conflicts` maps files that would not merge to the other side. `edited_files` are the files that
    the session and its sub-agents edited, in order."""
    dialogue = _Dialogue(items)
    tools = [item for item in items if item.role == "tool" and item.text]
    worktree = find_worktree(conversation.cwd, user_dir) if conversation.cwd else None
    edited = _paths(edited_files, conversation)
    paths_read = _paths(_files_read(tools, conversation), conversation)
    failed = _last_failure(items, tools)
    since = min((item.timestamp for item in items if item.timestamp is not None), default=0)
    return Handoff(
        session_id=conversation.session_id,
        runtime=conversation.runtime,
        title=conversation.title,
        directory=conversation.cwd,
        branch=_branch_of(worktree),
        first_at=since or None,
        last_at=conversation.last_message_at,
        first_request=dialogue.first.text if dialogue.first else "",
        between=dialogue.between(),
        last_request=dialogue.last.text if dialogue.last else "",
        agreed=dialogue.agreed(),
        decided=dialogue.decided(),
        files=tuple(_states(edited, worktree, conflicts, conversation, since)),
        read=tuple(path for path in paths_read if path not in edited)[:MOST_READ],
        commands=tuple(_commands(tools)),
        failed=(failed.text, failed.error) if failed else ("", ""),
        calls_since=sum(tool.id > failed.id for tool in tools) if failed else 0,
        question=dialogue.question,
        next_step="" if dialogue.question else _next_step(dialogue.last_answers),
        ended_with=dialogue.ended_with,
        conversation=conversation.id,
    )


class _Dialogue:
    """The messages between the person and the agent in a session."""

    def __init__(self, items: Sequence[StoredEntry]) -> None:
        self.requests = [item for item in items if item.role == "user" and is_request(item.text)]
        self.answers = [item for item in items if item.role == "assistant" and item.text]
        self.first = self.requests[0] if self.requests else None
        by_user = [item for item in items if item.role == "user" and item.text]
        self.last = by_user[-1] if by_user and by_user[-1] is not self.first else None
        self.last_answers = [
            answer.text for answer in self.answers if not by_user or answer.id > by_user[-1].id
        ]
        self.ended_with = proposal_in(self.last_answers[-1]) if self.last_answers else ""
        self.question = question_in(self.last_answers[-1]) if self.last_answers else ""

    def between(self) -> tuple[str, ...]:
        """Return the last requests between the first and the last."""
        texts = [
            request.text
            for request in self.requests[1:]
            if request is not self.last and not is_go_ahead(request.text)
        ]
        return tuple(texts[-MOST_BETWEEN:])

    def agreed(self) -> str:
        """Return the proposal that the last request accepts; '' unless it is a bare go-ahead."""
        if self.last is None or not is_go_ahead(self.last.text):
            return ""
        before = [answer for answer in self.answers if answer.id < self.last.id]
        return proposal_in(before[-1].text) if before else ""

    def decided(self) -> tuple[str, ...]:
        """Return the person's decisions, then the agent's."""
        by_person = ["", *(request.text for request in self.requests[1:])]
        by_agent = ["", *(answer.text for answer in reversed(self.answers))]
        return (
            *decisions(by_person, has_reasons=False),
            *decisions(by_agent, has_reasons=False),
        )


def _files_read(tools: Sequence[StoredEntry], conversation: Conversation) -> list[str]:
    return [
        os.path.join(tool.cwd or conversation.cwd, tool.text)
        for tool in tools
        if tool.kind == "read" and tool.outcome != "error" and "\n" not in tool.text
    ]


def _last_failure(items: Sequence[StoredEntry], tools: Sequence[StoredEntry]) -> StoredEntry | None:
    """Return the last command that failed and was not mended later."""
    open_failures = [
        failure.tool
        for failure in failures(items)
        if failure.fixed is None
        and failure.tool.kind == "command"
        and not _is_over(failure.tool, tools)
    ]
    return max(open_failures, key=lambda tool: tool.id, default=None)


def _branch_of(worktree: Worktree | None) -> str:
    branch = head_of(worktree.git_dir) if worktree else ""
    return "" if is_commit(branch) else branch


def page(handoff: Handoff, called_as: str, *, is_shared: bool = False) -> str:
    """Return the page, as Markdown of at most PAGE_CHARACTERS."""
    more = (
        f"More: `{called_as} read {handoff.conversation}`; the reason for a line: `{called_as} "
        f"why FILE:LINE`."
    )
    blocks = [
        *_blocks(handoff),
        f"More: `{called_as} search --team WORDS`." if is_shared else more,
    ]
    return shorten("\n\n".join(blocks), PAGE_CHARACTERS - 1) + "\n"


def _blocks(handoff: Handoff) -> Iterator[str]:
    yield _headline(handoff)
    yield _origin_line(handoff)
    yield f"## Task\n\n{_task(handoff)}"
    if handoff.decided:
        decided = "\n".join(f"- “{for_prompt(text)}”" for text in handoff.decided)
        yield f"## Decided and rejected\n\n{decided}"
    if handoff.files or handoff.read:
        yield f"## Files\n\n{_listed(handoff)}"
    if handoff.commands:
        commands = "\n".join(f"- `{_inline(command)}`" for command in handoff.commands)
        yield f"## Commands that worked\n\n{commands}"
    if handoff.failed[0]:
        yield _failure(handoff)
    yield from _outlook(handoff)


def _headline(handoff: Handoff) -> str:
    title = one_line(for_prompt(handoff.title)) or "a session without a title"
    return f"# Handoff: {shorten(title, 100)}"


def _origin_line(handoff: Handoff) -> str:
    """Say which session this is, from when, and where it worked."""
    branch = f", branch {for_prompt(handoff.branch)}" if handoff.branch else ""
    when = " to ".join(local_time(at / 1000) for at in (handoff.first_at, handoff.last_at) if at)
    session, directory = map(_name, (handoff.session_id, handoff.directory or "-"))
    return f"{handoff.runtime} session {session}, {when}, in {directory}{branch}."


def _task(handoff: Handoff) -> str:
    between = "\n\n".join(shorten(one_line(text), BETWEEN_CHARACTERS) for text in handoff.between)
    then = "Then, among others" if len(handoff.between) == MOST_BETWEEN else "Then"
    parts = (
        ("First asked", handoff.first_request, FIRST_CHARACTERS),
        (then, between, FIRST_CHARACTERS),
        ("Last asked", handoff.last_request, LAST_CHARACTERS),
        ("This request agreed to", handoff.agreed, PART_CHARACTERS),
    )
    return "\n\n".join(f"{label}:\n{_quoted(text, most)}" for label, text, most in parts if text)


def _failure(handoff: Handoff) -> str:
    command, error = handoff.failed
    since = ""
    if handoff.calls_since:
        since = f", {counted(handoff.calls_since, 'call')} before the end"
    return f"## The last failure{since}\n\n`{_inline(command)}`\n{_quoted(error, PART_CHARACTERS)}"


def _outlook(handoff: Handoff) -> Iterator[str]:
    """Yield the open question and the next step, or else the end of the session."""
    if handoff.question:
        yield f"## The open question\n\n{_quoted(handoff.question, PART_CHARACTERS)}"
    if handoff.next_step:
        yield f"## The next step, as last stated\n\n{_quoted(handoff.next_step, PART_CHARACTERS)}"
    elif handoff.ended_with and not handoff.question:
        ended = _quoted(handoff.ended_with, PART_CHARACTERS)
        yield f"## How it ended; no next step was stated\n\n{ended}"


def _listed(handoff: Handoff) -> str:
    lines: list[str] = []
    for state in (CONFLICTING, CHANGED, COMMITTED, GONE, UNKNOWN):
        lines += [
            f"- {_name(file.path)}: {file.state}{f' ({for_prompt(file.told)})' if file.told else ''}"
            for file in handoff.files
            if file.state == state
        ]
    lines += [f"- {_name(path)}: read" for path in handoff.read]
    shown: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > FILES_CHARACTERS:
            return "\n".join([*shown, f"- and {len(lines) - len(shown)} more"])
        shown.append(line)
    return "\n".join(shown)


def _name(text: str) -> str:
    return for_prompt(text).replace("\n", " ")


def _quoted(text: str, most: int) -> str:
    lines = [line.rstrip() for line in for_prompt(text).strip().splitlines()]
    kept = [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
    return "\n".join(f"> {line}".rstrip() for line in shorten("\n".join(kept), most).split("\n"))


def _inline(command: str) -> str:
    return shorten(one_line(for_prompt(command)).replace("`", "'"), COMMAND_CHARACTERS)


def _paths(files: Iterable[str], conversation: Conversation) -> list[str]:
    """Return the files, each once, the last first.

    Paths are relative to the directory for files below it, and for files in a clone of the same
    name on another machine."""
    cwd = conversation.cwd
    true_paths = [_true_path(os.path.normpath(path)) for path in files]
    if conversation.origin:
        inside = [path.partition(f"/{os.path.basename(cwd)}/")[2] for path in true_paths]
        true_paths = [
            os.path.join(cwd, below)
            if below and os.path.lexists(os.path.join(cwd, below))
            else path
            for path, below in zip(true_paths, inside)
        ]
    return [
        path.removeprefix(f"{cwd}/") if cwd else path
        for path in dict.fromkeys(reversed(true_paths))
    ]


def _true_path(path: str) -> str:
    """Return the real path of a file, whose stored `path` has blanks for tabs."""
    parent, name = os.path.split(path)
    if os.path.lexists(path) or not name:
        return path
    parent = _true_path(parent)
    try:
        alike = [entry for entry in os.listdir(parent) if plain(entry) == name]
    except OSError:
        return path
    return os.path.join(parent, alike[0]) if len(alike) == 1 else path


def _commands(tools: Sequence[StoredEntry]) -> list[str]:
    """Return the last successful commands that do more than look, the last first.

    Only one of each family is returned. Git commands are left out, because the states of the files
    show their outcome and repeating one may lose work."""
    ran = [use.text for use in reversed(tools) if use.kind == "command" and use.outcome == "ok"]
    ran = [
        command
        for command in ran
        if not is_looking(command) and "\n" not in command and not family(command).startswith("git")
    ]
    return list({family(command): command for command in reversed(ran)}.values())[::-1][
        :MOST_COMMANDS
    ]


def _is_over(failed: StoredEntry, tools: Sequence[StoredEntry]) -> bool:
    """Check if git stopped for a conflict, and went on later."""
    if not _IS_GIT.search(failed.text):
        return False
    later = [
        use for use in tools if use.id > failed.id and use.kind == "command" and use.outcome == "ok"
    ]
    return any(_IS_GIT.search(use.text) for use in later)


def _next_step(answers: Sequence[str]) -> str:
    """Return the last paragraph about remaining work, with the list after it, or ''."""
    for text in reversed(answers):
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
        for place in range(len(paragraphs) - 1, -1, -1):
            if _NEXT.search(paragraphs[place]):
                return "\n".join(paragraphs[place : place + 2])
    return ""


def _states(
    paths: Sequence[str],
    worktree: Worktree | None,
    conflicts: Mapping[str, str],
    session: Conversation,
    since: int,
) -> Iterator[HandedFile]:
    """Yield each file with its state, for the first MOST_FILES the one from git.

    The worktree is read directly, so git runs no filter for it. If the session is from another
    machine, a missing file may never have existed here."""
    cwd, times = session.cwd, (since, session.last_message_at or since)
    elsewhere = (UNKNOWN, "on another machine") if session.origin else (GONE, "")
    repository = Repository(worktree.git_dir, worktree.root) if worktree and worktree.root else None
    for place, path in enumerate(paths):
        whole = os.path.realpath(os.path.join(cwd, path))
        inside = os.path.relpath(whole, repository.root) if repository else ""
        is_here = os.path.lexists(whole)
        file = HandedFile(path, UNKNOWN) if is_here else HandedFile(path, *elsewhere)
        if is_here and repository and not inside.startswith("..") and place < MOST_FILES:
            file = _state(path, inside, repository, times)
        if whole in conflicts and file.state != CONFLICTING:
            file = HandedFile(path, CONFLICTING, conflicts[whole])
        yield file


def _state(path: str, inside: str, repository: Repository, times: tuple[int, int]) -> HandedFile:
    """Return the state of a file; `times` are the session's first and last."""
    try:
        if repository.is_unmerged(inside):
            return HandedFile(path, CONFLICTING, "a merge is not finished")
        if repository.is_changed(inside):
            return HandedFile(path, CHANGED)
        commit = repository.last_commit(inside)
    except GitUnavailableError:
        return HandedFile(path, UNKNOWN)
    if commit is None or commit.at < times[0]:
        return HandedFile(path, COMMITTED)
    later = ", after the session" if commit.at > times[1] + LATER else ""
    return HandedFile(path, COMMITTED, f"{commit.id[:8]} {commit.subject}{later}")
