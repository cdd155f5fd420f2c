"""Collisions with another machine, which has a copy of the repository of its own: files and a branch that both have in
hand."""

from __future__ import annotations

from ..system.git import USUAL_BRANCHES, head_of
from ..transcripts.team_sessions import branch_of
from .collisions import BRANCH, Fact
from .touches import EDIT, Touch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..system.git import Worktree
    from ..transcripts.entries import Entry
    from .report import Report
    from .unseen import Unseen


def touches_elsewhere(entries: Iterable[Entry], root: str) -> list[Touch]:
    """The edits in `entries` of files of the repository, by the paths that these have here, where its root is `root`.
    What commands did there does not show."""
    found = []
    for entry in entries:
        for tool in entry.tools:
            if entry.timestamp is not None and tool.kind == EDIT and not tool.argument.startswith("/"):
                found.append(Touch(EDIT, f"{root}/{tool.argument}", entry.timestamp, entry.offset, ""))
                found[-1].is_elsewhere = True
    return found


def branch_facts(
    others: list[tuple[Report, Unseen]], worktree: Worktree | None, told: Mapping[str, float]
) -> list[Fact]:
    """That sessions on other machines do something on the branch that is checked out in `worktree`, each once. Branches
    that everybody works on do not count."""
    head = head_of(worktree.git_dir) if worktree else ""
    if not head or head in USUAL_BRANCHES:
        return []
    found = []
    for report, unseen in others:
        session = unseen.session
        if session.team_root and any([entry.tools for entry in report.entries]) and branch_of(session.path) == head:
            fact = Fact(BRANCH, session.key, report.last_active, path=head)
            if fact.key not in told:
                found.append(fact)
    return found
