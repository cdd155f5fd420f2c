"""What may be told of a session that a prompt has read, by the gate: loaded only if a rule or a tombstone counts."""

from __future__ import annotations

from ..transcripts.gate import Family, Gate
from ..transcripts.reader import FIRST_PROMPT_RANK, USER_RANK
from ..transcripts.titles import is_request, subject
from .unseen import kept_title, take_unread_titles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.privacy import Privacy
    from .report import OwnRules
    from .unseen import Unseen


def judge(unseen: Unseen, rules: OwnRules | Privacy, session_id: str) -> Gate:
    """Return the gate of a session that was read, whose title is from then on one that may be told. What it began with
    is noted in its cursor. Raises OSError."""
    session, cursor = unseen.session, unseen.cursor
    start = cursor.get("start", "")
    if rules.has_name_rules(start):
        take_unread_titles(unseen)
    names = (session.name or session.key, unseen.title[1])
    if session.team_root or not rules.has_rules(start):
        gate = Gate(rules, session_id, start, names)
    else:
        family = Family(rules, unseen.runtime, session.path)
        if "kin" not in cursor:
            kin = family.kin(session.path, cursor.get("first", ""), bool(cursor.get("compacted")))
            cursor["kin"] = [unseen.runtime.session_id_of(path) for path in kin]
        gate = Gate(rules, session_id, start, names, family, family.copied(family.paths_of(cursor["kin"])))
    unseen.title = gate.title(unseen.title, _own_request(unseen, gate) if _is_doubtful(unseen, gate) else "")
    return gate


def _is_doubtful(unseen: Unseen, gate: Gate) -> bool:
    """Return whether the title may have been made of what is hidden."""
    return gate.hides_some and unseen.title[0] < USER_RANK


def _own_request(unseen: Unseen, gate: Gate) -> str:
    """Return what the first request is about that may be told, '' for none. It stays the same from then on."""
    if not unseen.cursor.get("own_title"):
        requests = [one.text for one in gate.told(unseen.entries) if one.role == "user" and is_request(one.text)]
        unseen.cursor["own_title"] = kept_title((FIRST_PROMPT_RANK, subject(requests[0]) if requests else ""))[1]
    return str(unseen.cursor["own_title"])
