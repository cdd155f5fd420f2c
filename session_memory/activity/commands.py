"""Names of the commands that a session ran, with those that failed."""

from __future__ import annotations

from ..text.format import counted
from ..text.shell_commands import LOOKING, commit_message, family
from .actions import COMMAND, FileAction
from .collisions.evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes import Runtime
    from ..transcripts.entries import Entry, ToolUse

HOUSEKEEPING = ("git add", "mkdir", "rm", "rmdir", "touch")
MOST_NAMED = 3
MOST_SEARCHED = 12  # calls, the last ones, for their results


def names_of(ran: list[tuple[Entry, ToolUse]], runtime: Runtime, path: str) -> list[str]:
    """Return the last commands that the session with the transcript at `path` ran, by what they are, as `npm test
    (failed)` and `git commit "Fix the cart"`; how many there were if all of them only look or keep house. A call
    without a result, or that the user refused, ran nothing."""
    evidence = Evidence({"": runtime}, {"": path}, None, "")
    failed: dict[str, bool] = {}
    looked = 0
    for number, (entry, tool) in enumerate(reversed(ran)):
        parts = [part for part in family(tool.argument).split(" && ") if part not in HOUSEKEEPING]
        message = commit_message(tool.argument) if "git commit" in parts else ""
        name = " && ".join(parts) + (f' "{message}"' if message and parts[-1] == "git commit" else "")
        if name in failed:
            continue
        if number < MOST_SEARCHED and tool.call_id:
            call = FileAction(COMMAND, "", (entry.timestamp or 0.0, entry.offset, tool.call_id), is_command=True)
            end, has_failed = evidence.end("", call)
            if end is None:
                continue
        else:
            has_failed = False
        if name in (LOOKING, ""):
            looked += 1
        else:
            failed[name] = has_failed
    if not failed:
        return [counted(looked, "command")] if looked else []
    names = [f"{name} (failed)" if has_failed else name for name, has_failed in failed.items()]
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return [*reversed(names[:MOST_NAMED]), *more]
