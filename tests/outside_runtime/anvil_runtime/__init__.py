"""Anvil, an invented program, as a package outside session-memory would read it."""

from session_memory.common.system.json import as_string
from session_memory.sessions.runtimes.base import ProjectFolders


class Anvil(ProjectFolders):
    """`sessions/<directory>/<id>.jsonl`, append-only; every run of a hook is a record."""

    INTERFACE = 1
    name = "anvil"
    TITLE = "Anvil"
    USUAL_DIR = ".anvil"
    CONFIG_VARIABLE = "ANVIL_DIR"
    TRANSCRIPTS = "sessions"
    SESSIONS_FOLDER = "anvil-sessions"
    PROGRAM = "anvil"
    OWN_ID_VARIABLE = "ANVIL_SESSION_ID"
    AGENT_VARIABLE = "ANVIL_AGENT"
    PROJECT_VARIABLE = "ANVIL_PROJECT_DIR"
    TOOLS = {
        "Edit": ("edit", "file_path"),
        "Create": ("edit", "file_path"),
        "Execute": ("command", "command"),
    }

    def folder_name(self, directory):
        return directory.replace("/", "-")

    def is_own(self, event, environ):
        path = as_string(event.get("transcript_path"))
        return "/.anvil/sessions/-" in path or "ANVIL_PROJECT_DIR" in environ


RUNTIME = Anvil()
