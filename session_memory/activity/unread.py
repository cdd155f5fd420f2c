"""Sessions that changed and that a prompt does not read, since it tells of enough others: how many there are."""

from __future__ import annotations

from ..system.files import open_regular, os
from ..text.sanitize import for_people
from ..transcripts.reader import FIRST_PROMPT_RANK, TranscriptHead
from .report import rules_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
    from .changes import OwnSession

MOST_HEADS = 30  # that are read for it


def count_told(unread: Sequence[Session], cursors: Mapping[str, Cursor], settings: Settings, own: OwnSession) -> int:
    """How many of these sessions no rule hides. Where that cannot be known, one is not counted."""
    judged = [session for session in unread if settings.has_rules or session.is_elsewhere]
    found = []
    heads_left = MOST_HEADS
    for session in judged:
        cursor = cursors.get(session.key, {})
        if "start" in cursor:
            found.append((session, cursor["start"], cursor.get("title", (0, ""))[1]))
        elif heads_left:
            heads_left -= 1
            found += own.deadline.attempt(session.path, _from_head, session, own.runtime_of(session)) or []
    rules = rules_for(settings, own.home, [start for _, start, _ in found])
    names = [(start, session.name or session.key, title, own.id_of(session)) for session, start, title in found]
    return len(unread) - len(judged) + sum([not rules.rule(*known).ignore for known in names])


def _from_head(session: Session, runtime: Runtime) -> list[tuple[Session, str, str]]:
    """Return the session with its directory and its title, as the beginning of its transcript has them. Raises
    OSError."""
    descriptor = open_regular(session.path)
    try:
        head = TranscriptHead(runtime, descriptor, runtime.session_id_of(session.path))
        return [(session, for_people(head.cwd), head.best_title((FIRST_PROMPT_RANK, ""))[1])]
    finally:
        os.close(descriptor)
