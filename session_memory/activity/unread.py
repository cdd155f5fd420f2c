"""Sessions that changed and that a prompt does not read, since it tells of enough others: how many there are."""

from __future__ import annotations

from ..system.files import open_regular, os
from ..text.sanitize import for_people
from ..transcripts.lines import first_line
from ..transcripts.reader import FIRST_PROMPT_RANK, TitleOwner, TranscriptHead, TranscriptReader
from .report import may_hide, rules_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
    from .changes import OwnSession

MOST_HEADS = 30  # that are read for it
MOST_SEARCHED_BYTES = 1024 * 1024  # of a transcript in which a name is looked for


def count_told(unread: Sequence[Session], cursors: Mapping[str, Cursor], settings: Settings, own: OwnSession) -> int:
    """Return how many of these sessions may be told of. If that cannot be known, one is not counted."""
    is_hidden = may_hide(settings, own.home)
    judged = [session for session in unread if is_hidden or session.is_elsewhere]
    found = []
    heads_left, by_name = MOST_HEADS, settings.has_name_rules
    for session in judged:
        cursor = cursors.get(session.key, {})
        if "start" in cursor and ("titled" in cursor or not by_name):
            found.append((session, cursor["start"], cursor.get("title", (0, ""))[1]))
        elif heads_left:
            heads_left -= 1
            found += own.deadline.attempt(session.path, _from_head, session, own.runtime_of(session), by_name) or []
    rules = rules_for(settings, own.home, [start for _, start, _ in found])
    names = [(start, session.name or session.key, title, own.id_of(session)) for session, start, title in found]
    told = [one for one in names if not rules.rule(*one).ignore and rules.forgotten_until(one[-1], one[0]) is None]
    return len(unread) - len(judged) + len(told)


def _from_head(session: Session, runtime: Runtime, by_name: bool) -> list[tuple[Session, str, str]]:
    """Return the session with its directory and its title, as the beginning of its transcript has them, and all of it
    if a rule may name it; [] if that is too long to look for a name in it. Raises OSError."""
    descriptor = open_regular(session.path)
    try:
        session_id, size = runtime.session_id_of(session.path), os.fstat(descriptor).st_size
        if by_name and size > MOST_SEARCHED_BYTES:
            return []
        reader = TranscriptReader(runtime, first_line(descriptor), owner=TitleOwner(session_id, descriptor))
        if by_name:
            reader.take_titles(descriptor, 0, size)
        head = TranscriptHead(runtime, descriptor, session_id)
        return [(session, for_people(head.cwd), head.best_title(max(reader.title, (FIRST_PROMPT_RANK, "")))[1])]
    finally:
        os.close(descriptor)
