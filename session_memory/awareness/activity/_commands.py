"""Outcomes of the calls of a session, and the names of the commands that it ran."""

from __future__ import annotations

from ...common.text.shell_commands import LOOKING, commit_message, family
from ...sessions.transcripts.entries import FAILED, ToolUse
from .actions import COMMAND, EDIT, FileAction, sub_agent_actions
from .changes import RUNNING_SECONDS
from .collisions._evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...sessions.runtimes.base import Runtime
    from ._new_entries import NewEntries
    from .report import Report, SessionSummary

HOUSEKEEPING = ("git add", "mkdir", "rm", "rmdir", "touch")
MOST_NAMED = 3
# so many of the last calls have their results searched; earlier calls are assumed to be done
MOST_SEARCHED = 24


def note_outcomes(summary: SessionSummary, runtime: Runtime, path: str) -> None:
    """Note how the calls in `summary` ended, and count them again.

    The results come from the transcript at `path`. Some calls did nothing: a refused or interrupted
    call, a failed edit or read, and a call in the last message without a result, which may be
    waiting for permission."""
    evidence, last = Evidence({"": runtime}, {"": path}, None, ""), summary.last
    for entry, tool, _ in summary.calls[-MOST_SEARCHED:]:
        if tool.call_id:
            place = (entry.timestamp or 0.0, entry.offset, tool.call_id)
            action = FileAction(tool.kind, "", place, is_command=tool.kind == COMMAND)
            is_last = entry is last or (
                entry.message_id != "" and last is not None and entry.message_id == last.message_id
            )
            tool.outcome = evidence.outcome("", action, is_last=is_last)
    summary.count_calls()


def add_sub_agents(report: Report, new: NewEntries, transcripts: list[str]) -> None:
    """Add to a report the files that the session's sub-agents edited since its first new entry."""
    runtime, since = (
        new.runtime,
        report.summary.first_timestamp or report.last_active - RUNNING_SECONDS,
    )
    evidence = Evidence({"": runtime}, {"": new.session.path}, None, "")
    actions = sub_agent_actions(transcripts, runtime, {}, since, gate=report.gate)
    edits = [action for action in actions if action.kind == EDIT and action.time >= since]
    done = [
        action.path for action in edits if not action.is_doubtful and evidence.is_done("", action)
    ]
    if done:
        report.summary.by_sub_agents = list(dict.fromkeys(done))
        report.summary.count_calls()


def names_of(ran: list[ToolUse]) -> list[str]:
    """Return short names of a session's last commands, such as `npm test (failed)`.

    A commit's name includes its message: `git commit "Fix the cart"`. Commands that only look or
    keep house have no name."""
    failed: dict[str, bool] = {}
    for tool in reversed(ran):
        parts = [part for part in family(tool.argument).split(" && ") if part not in HOUSEKEEPING]
        message = commit_message(tool.argument) if "git commit" in parts else ""
        name = " && ".join(parts) + (
            f' "{message}"' if message and parts[-1] == "git commit" else ""
        )
        if name not in (LOOKING, ""):
            failed.setdefault(name, tool.outcome == FAILED)
    names = [f"{name} (failed)" if has_failed else name for name, has_failed in failed.items()]
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return [*reversed(names[:MOST_NAMED]), *more]
