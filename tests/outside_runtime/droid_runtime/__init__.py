"""Factory's Droid 0.225, as a package outside session-memory would read it."""

from session_memory.common.system.json import as_string
from session_memory.sessions.runtimes.base import ProjectFolders


class Droid(ProjectFolders):
    """`sessions/<directory>/<id>.jsonl`, append-only; every run of a hook is a record."""

    INTERFACE = 1
    name = "droid"
    TITLE = "Droid"
    USUAL_DIR = ".factory"
    CONFIG_VARIABLE = "FACTORY_HOME_OVERRIDE"
    TRANSCRIPTS = "sessions"
    SESSIONS_FOLDER = "droid-sessions"
    PROGRAM = "droid"
    OWN_ID_VARIABLE = "DROID_SESSION_ID"
    AGENT_VARIABLE = "DROID_PROJECT_DIR"
    PROJECT_VARIABLE = "FACTORY_PROJECT_DIR"
    TOOLS = {
        "Edit": ("edit", "file_path"),
        "Create": ("edit", "file_path"),
        "Execute": ("command", "command"),
    }

    def folder_name(self, directory):
        return directory.replace("/", "-")

    def is_own(self, event, environ):
        path = as_string(event.get("transcript_path"))
        return "/sessions/-" in path or "FACTORY_PROJECT_DIR" in environ


RUNTIME = Droid()
