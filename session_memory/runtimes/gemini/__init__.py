"""Gemini CLI."""

from __future__ import annotations

from ...system.files import is_directory, is_file
from ...system.json import as_string
from ...transcripts.mirror import Exclusion, has_changed
from ..base import CopiedSessions, ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base import Event


CHATS = "chats"
_MOST_CHARACTERS = 200  # of the name of a folder
_UNKNOWN = "unknown"  # the folder for the mirrors of chats of which nothing tells the directory


class Gemini(CopiedSessions, ProjectFolders):
    """A chat says nothing of its directory, and may be deleted at any time: so each has a mirror (see
    transcripts/mirror.py and mirrors.py), `<directory>/<session>.jsonl`; that of a sub-agent lies in `<session>/`
    beside it. What a hook says at the start of a session makes Gemini lose the prompt when it resumes that, and what
    one says before a tool is run does not reach the agent: neither is answered. In a sub-agent no prompt's event comes.
    """

    name = "gemini"
    TITLE = "Gemini CLI"
    USUAL_DIR = ".gemini"
    CONFIG_VARIABLE = "GEMINI_CLI_HOME"
    SESSIONS_FOLDER = "gemini-sessions"
    PROGRAM = "gemini"
    OWN_ID_VARIABLE = "GEMINI_SESSION_ID"
    AGENT_VARIABLE = "GEMINI_CLI"
    PROJECT_VARIABLE = "GEMINI_PROJECT_DIR"
    PROMPT_EVENT = "BeforeAgent"
    START_EVENT = ""
    TOOL_EVENT = "BeforeTool"
    PROMPT_ID_KEY = "timestamp"

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$GEMINI_CLI_HOME/.gemini`, else `~/.gemini`."""
        return (environ.get(self.CONFIG_VARIABLE) or environ.get("HOME", "")).rstrip("/") + f"/{self.USUAL_DIR}"

    def transcripts_dir(self, config_dir: str) -> str:
        return self.copies_root(config_dir)

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update the mirrors, if a chat has changed. What is read for a prompt is bounded."""
        if not is_directory(f"{config_dir}/tmp"):
            return
        home = self.home_of(config_dir)
        root = f"{home.state_dir}/{self.name}"
        if everything or has_changed(root):
            from .mirrors import bring_up_to_date

            bring_up_to_date(config_dir, root, Exclusion(home), everything)

    def folder_name(self, directory: str) -> str:
        from ...text.paths import dashed

        return dashed(directory)[:_MOST_CHARACTERS] or _UNKNOWN

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        path = super().transcript_path(config_dir, cwd, session_id)
        return path if is_file(path) else self.transcript_of(config_dir, session_id) or path

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the mirror: the event names the chat."""
        return self.transcript_path(config_dir, start, as_string(event.get("session_id")))

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        folder, _, file = as_string(event.get("transcript_path")).rpartition("/")
        return folder.endswith("/chats") and file.startswith("session-") and "/tmp/" in folder

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return what the variable says, else the directory over the chat's `tmp/<project>/chats/`."""
        above, mark, _ = as_string(event.get("transcript_path")).rpartition("/tmp/")
        return above if mark and not environ.get(self.CONFIG_VARIABLE) else self.config_dir(environ)


RUNTIME = Gemini()
