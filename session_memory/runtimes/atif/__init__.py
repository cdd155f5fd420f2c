"""ATIF: the trajectory format of Harbor, which agents write that have no reader of their own here."""

from __future__ import annotations

from ...system.files import is_directory
from ...transcripts.mirror import Exclusion, has_changed
from ..base import CopiedSessions, ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base import Event


class Atif(CopiedSessions, ProjectFolders):
    """Any agent that writes ATIF: trajectories lie anywhere in `~/.atif`, which may be a link or hold some. Each is one
    JSON document that is written anew as it grows, so it has a mirror (see transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`; that of an embedded sub-agent lies in `<session>/` beside it. There are no hooks."""

    name = "atif"
    TITLE = "ATIF"
    USUAL_DIR = ".atif"
    CONFIG_VARIABLE = "ATIF_DIR"
    TRANSCRIPTS = ""
    SESSIONS_FOLDER = "atif-sessions"
    PROGRAM = "atif"
    OWN_ID_VARIABLE = "ATIF_SESSION_ID"
    AGENT_VARIABLE = "ATIF_SESSION_ID"
    PROMPT_EVENT = ""
    START_EVENT = ""
    TOOL_EVENT = ""
    SHOWS_WHAT_WAS_TOLD = False

    def transcripts_dir(self, config_dir: str) -> str:
        return self.copies_root(config_dir)

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update the mirrors, if a trajectory has changed. What is read for a prompt is bounded."""
        if not is_directory(config_dir):
            return
        home = self.home_of(config_dir)
        root = f"{home.state_dir}/{self.name}"
        if everything or has_changed(root):
            from .mirrors import bring_up_to_date

            bring_up_to_date(config_dir, root, Exclusion(home), everything)

    def folder_name(self, directory: str) -> str:
        from ...text.paths import dashed

        return dashed(directory)[:200] or "unknown"

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return False


RUNTIME = Atif()
