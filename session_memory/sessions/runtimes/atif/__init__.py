"""ATIF: Harbor's trajectory format, for agents that have no reader of their own here."""

from __future__ import annotations

from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base import Event


class Atif(MirroredSessions):
    """Any agent that writes ATIF, with trajectories anywhere in `~/.atif`.

    The directory may be a link or contain links. Each trajectory is one JSON document that is
    rewritten as it grows, so it has a mirror (see sessions/transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`. The mirror of an embedded sub-agent is in `<session>/` beside it.
    There are no hooks."""

    name = "atif"
    TITLE = "ATIF"
    USUAL_DIR = ".atif"
    CONFIG_VARIABLE = "ATIF_DIR"
    TRANSCRIPTS = ""
    SESSIONS_FOLDER = "atif-sessions"
    PROGRAM = "atif"
    OWN_ID_VARIABLE = "ATIF_SESSION_ID"
    AGENT_VARIABLE = "ATIF_SESSION_ID"
    HAS_BACKUP = True
    PROMPT_EVENT = ""
    START_EVENT = ""
    TOOL_EVENT = ""
    SHOWS_WHAT_WAS_TOLD = False

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return False


RUNTIME = Atif()
