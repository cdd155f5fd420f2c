"""Sessions that are at work on the task of a session's first prompt.

A session counts if one of its turns is running. Evidence of the same task is the same prompt, the
same stem of both worktrees' branches, or the number of an issue, which is in both requests or in
the name of the other worktree's branch.
"""

from __future__ import annotations

from ...common.system.files import Opened, read_at, read_end, status_at
from ...common.system.git import USUAL_BRANCHES, Worktree, find_worktree, head_of, is_commit
from ...common.text.format import shorten
from ...common.text.sanitize import for_prompt, quotable
from ...common.text.task_names import branch_stem, issues_in, issues_of_branch, same_issue
from ...common.text.timestamps import age
from ...sessions.transcripts.reader import is_request
from .collisions.facts import PATH_CHARACTERS
from .report import is_same_prompt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._new_entries import NewEntries
    from .changes import OwnSession
    from .report import Report

SHORTEST_SAME = 40  # characters of a prompt that cannot be the same by chance
# a second session that gets the same prompt within this time in one directory probably got it by
# mistake
MISTAKE_SECONDS = 600
MOST_LINES = 2
_BEGINNING_BYTES = 256 * 1024
_END_BYTES = 64 * 1024
_INTERRUPTED = b'"[Request interrupted by user'  # how Claude Code notes that the user ended a turn
_ANSWER = b'"assistant'


def lines_about(
    reader: OwnSession,
    others: Sequence[tuple[Report, NewEntries]],
    now: float,
    is_first: bool,
) -> list[str]:
    """Return lines about sessions on the same task, and about sessions with the same prompt.

    At the first prompt, at most MOST_LINES sessions that are at work on its task get a line, unless
    an agent has already answered in this session, as in a fork. At every prompt, each session in
    this directory that just got the same prompt gets a line."""
    from .collisions._lines import called

    is_at_task = is_first and _ANSWER not in _beginning(reader.path)
    task = _Task(reader, now) if is_at_task else None
    lines: dict[str, str] = {}
    nearby: dict[str, str] = {}
    for report, new in others:
        session = new.session
        if not report.with_text or session.is_elsewhere or session.is_remote:
            continue
        if task is not None and len(lines) < MOST_LINES:
            words = task.shared_with(report, "" if session.worktree else ", in this directory")
            if words and _is_at_work(report, new, now):
                lines[session.key] = f"! {called(report)} {words}"
        is_nearby = session.key not in lines and not session.worktree
        if is_nearby and _is_mistaken(reader, report, new, now):
            words = same_prompt_at(reader.prompt, report, now, ", in this directory")
            nearby[session.key] = f"! {called(report)} {words}; {_done_so_far(report)}"
    return [*lines.values(), *nearby.values()]


def _done_so_far(report: Report) -> str:
    """Return what a session with the same prompt has done."""
    verb, number, files = report.named_files
    if not files:
        return "it has edited nothing yet"
    (path,) = quotable(files[:1])
    more = f" and {number - 1} more" if number > 1 else ""
    done = f"it {verb} {shorten(path, PATH_CHARACTERS)}{more}"
    return done if verb == "edited" else f"{done}, and has edited nothing yet"


def same_prompt_at(prompt: str, report: Report, now: float, place: str) -> str:
    """Return the words about a session at a `place` that got the same prompt, or ''."""
    if not is_same_prompt(prompt, report, now):
        return ""
    return f"got the same prompt {age(now - (report.prompted_at(prompt) or 0.0))}{place}"


def _is_mistaken(reader: OwnSession, report: Report, new: NewEntries, now: float) -> bool:
    """Check if a session in this directory just got the same prompt, and its user has not left."""
    if not is_same_prompt(reader.prompt, report, now):
        return False
    if now - (report.prompted_at(reader.prompt) or 0.0) > MISTAKE_SECONDS:
        return False
    return not reader.deadline.attempt(new.session.path, _was_left, new)


def _beginning(path: str) -> bytes:
    try:
        with Opened(path) as descriptor:
            return read_at(descriptor, 0, _BEGINNING_BYTES)
    except OSError:
        return b""


def _is_at_work(report: Report, new: NewEntries, now: float) -> bool:
    """Check that a turn is running.

    A session that has just answered may be waiting for a user who now continues in this session."""
    from ...sessions.transcripts.turns import is_at_work

    status, last = status_at(new.session.path), report.entries[-1:]
    if status is None or not last or (last[0].role == "assistant" and not last[0].tools):
        return False
    return is_at_work(new.runtime, new.session.path, report.entries, now - status.st_mtime)


def _was_left(new: NewEntries) -> bool:
    """Return whether the user left a session.

    The user left it if its process has ended, as far as the runtime records that, or if the user
    interrupted its last turn."""
    for line in reversed(read_end(new.session.path, _END_BYTES).split(b"\n")):
        if b'"type":"user"' in line or b'"type":"assistant"' in line:
            return _INTERRUPTED in line or new.runtime.has_left(new.session.path)
    return new.runtime.has_left(new.session.path)


class _Task:
    """The task of the session `reader`, known from its first prompt and its branch."""

    def __init__(self, reader: OwnSession, now: float) -> None:
        self._reader = reader
        self._now = now
        self._issues = issues_in(reader.prompt)
        self._worktree = find_worktree(reader.directory, reader.user_dir)
        self._branch = _branch_of(self._worktree)

    def shared_with(self, report: Report, place: str) -> str:
        """Return what a session at a `place` has in common with this task, or ''."""
        prompt = self._reader.prompt
        if len(" ".join(prompt.split())) >= SHORTEST_SAME:
            same = same_prompt_at(prompt, report, self._now, place)
            if same:
                return same
        requests = [
            entry for entry in reversed(report.entries) if entry.role == "user" and entry.text
        ]
        texts = [entry.text for entry in requests if is_request(entry.text)]
        texts += [report.title] if report.is_request else []
        named = next((issues for issues in map(issues_in, texts) if issues), set())
        issue = same_issue(self._issues, named)
        if issue:
            return f"is also working on {for_prompt(issue)}"
        return self._same_branch(report)

    def _same_branch(self, report: Report) -> str:
        """Return what another session's branch has in common with this task, or ''.

        The session is in another worktree."""
        worktree = self._worktree_of(report)
        branch = _branch_of(worktree)
        if not branch or worktree is None or self._worktree is None:
            return ""
        if worktree.common_dir != self._worktree.common_dir or worktree.root == self._worktree.root:
            return ""
        name, own_name = quotable([branch, self._branch])
        issues = issues_of_branch(branch)
        issue = same_issue(self._issues, issues) or same_issue(
            issues_of_branch(self._branch), issues
        )
        if issue:
            return f'is also working on {for_prompt(issue)}, on branch "{name}"'
        stem = branch_stem(branch)
        if stem and stem == branch_stem(self._branch):
            return f'is working on branch "{name}"; yours is "{own_name}"'
        return ""

    def _worktree_of(self, report: Report) -> Worktree | None:
        directory = next((entry.cwd for entry in reversed(report.entries) if entry.cwd), "")
        return (
            find_worktree(directory, self._reader.user_dir) if directory.startswith("/") else None
        )


def _branch_of(worktree: Worktree | None) -> str:
    """Return the branch of a worktree; '' for a commit, or for a branch that everybody uses."""
    branch = head_of(worktree.git_dir) if worktree else ""
    return "" if branch in USUAL_BRANCHES or is_commit(branch) else branch
