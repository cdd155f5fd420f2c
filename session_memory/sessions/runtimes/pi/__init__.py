"""Pi."""

from __future__ import annotations

from ....common.system.files import (
    is_directory,
    is_file,
    names_in,
    path_stamp,
    path_text,
    user_dir,
)
from ....common.system.json import as_string
from ...transcripts.entries import Session
from ..base import ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..base import Event, Folders

_DATABASE = "agent.db"  # omp makes it when it starts
CUSTOM_TYPE = "session-update"  # of the messages that our extension puts in


class Pi(ProjectFolders):
    """Pi: session files are at `sessions/--<directory>--/<time>_<id>.jsonl`.

    An agent home's named sessions are at `<name>/<time>_<id>.jsonl` in the home's own place. Our
    extension sends the events, with lower-case names; it does not answer a session's start. Pi has
    no sub-agents."""

    name = "pi"
    TITLE = "Pi"
    USUAL_DIR = ".pi/agent"
    CONFIG_VARIABLE = "PI_CODING_AGENT_DIR"
    TRANSCRIPTS = "sessions"
    SESSIONS_FOLDER = "pi-sessions"
    LISTS_RECENT = True
    PROGRAM = "pi"
    PACKAGE = "@earendil-works/pi-coding-agent"
    OWN_ID_VARIABLE = "PI_SESSION_ID"
    AGENT_VARIABLE = "PI_CODING_AGENT"
    PROMPT_EVENT = "before_agent_start"
    START_EVENT = ""
    TOOL_EVENT = "tool_call"
    FAILED_EVENT = "tool_result"
    TOOLS = {"edit": ("edit", "path"), "write": ("edit", "path"), "bash": ("command", "command")}
    FAILING_TOOLS = {"read": ("read", "path")}
    # whether there is always a database in its directory: omp has the same CONFIG_VARIABLE
    HAS_DATABASE = False

    def config_dir(self, environ: Mapping[str, str]) -> str:
        home = user_dir(environ)
        path = environ.get(self.CONFIG_VARIABLE) or ""
        path = (home + path[1:] if path == "~" or path.startswith("~/") else path).rstrip("/")
        is_own = path and is_file(f"{path}/{_DATABASE}") == self.HAS_DATABASE
        return path if is_own else f"{home}/{self.USUAL_DIR}"

    def folder_name(self, directory: str) -> str:
        return encode_cwd(directory)

    def name_inside(self, name: str) -> str:
        return name[: -len("--")] + "-"

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        return super().folders_below(
            config_dir, *[directory.rstrip("/") for directory in directories]
        )

    def sessions_called(
        self, files: Iterable[str], folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        return [
            Session(self.session_id_of(file), f"{folder}/{file}", "", is_elsewhere, worktree)
            for file in files
            if file.endswith(".jsonl") and not file.startswith(".")
        ]

    def sub_agents_beside(self, path: str) -> list[str]:
        return []

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return a home's named sessions, each with its last file; else the project's, or `all`."""
        if sessions_dir:
            files = {
                name: self.latest_transcript(sessions_dir, name)
                for name in self.session_names(sessions_dir)
            }
            sessions = [
                Session(path_text(name), file, path_text(name)) for name, file in files.items()
            ]
        else:
            sessions = super().other_sessions("", config_dir, own_path, scope, folders)
        return [session for session in sessions if session.path and session.path != own_path]

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        return self.other_sessions(sessions_dir, config_dir, "", "project")

    def session_names(self, sessions_dir: str) -> list[str]:
        """Return the names of the directories, except `new-*`, which hosts are still creating."""
        names = names_in(sessions_dir)
        return [
            name
            for name in names
            if not name.startswith((".", "new-")) and is_directory(f"{sessions_dir}/{name}")
        ]

    def latest_transcript(self, sessions_dir: str, name: str) -> str:
        """Return the last written session file of `<sessions_dir>/<name>/`; '' if there is none.

        Pi would continue this one."""
        paths = [session.path for session in self.sessions_in(f"{sessions_dir}/{name}")]
        return max(paths, key=lambda path: path_stamp(path)[2], default="")

    def transcript_of(self, config_dir: str, session_id: str) -> str:
        sessions = (
            session
            for folder in self.all_folders(config_dir)
            for session in self.sessions_in(folder)
        )
        return next((session.path for session in sessions if session.key == session_id), "")

    def call_began(self, lines: Iterable[bytes]) -> float | None:
        from .nested import nested_began

        return nested_began(lines)

    def session_id_of(self, path: str) -> str:
        """Return the id in `<time>_<id>.jsonl`.

        It must not be shortened, because it begins with the time."""
        name = super().session_id_of(path)
        return name.partition("_")[2] or name

    def asks_for_approval(self, words: Sequence[str]) -> bool:
        return False

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return (
            event.get("runtime", "pi") == self.name
            and not as_string(event.get("hook_event_name"))[:1].isupper()
            and "extra" not in event  # Hermes's names begin small too
        )

    def keeps_transcript(self, event: Event, environ: Mapping[str, str]) -> bool:
        return bool(event.get("transcript_path"))  # no transcript under `--no-session`

    def start_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory of the session's file; a named one's is in the agent's home."""
        return _session_dir(event) or as_string(event.get("cwd"))

    def project_start(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the agent's working directory, which never changes."""
        return as_string(event.get("cwd"))

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory above `sessions/--<cwd>--/` if the session's file is there.

        Otherwise return the usual directory."""
        above, _, project = _session_dir(event).rpartition("/")
        if project.startswith("--") and project.endswith("--") and above.endswith("/sessions"):
            return above[: -len("/sessions")]
        return self.config_dir(environ)

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the path of the session's file.

        Under `--no-session`, return a path in its project where no file will ever be."""
        path = as_string(event.get("transcript_path"))
        if path:
            return path
        directory = _session_dir(event) or self.project_dir(config_dir, as_string(event.get("cwd")))
        return f"{directory}/{as_string(event.get('session_id'))}.jsonl"

    def own_name(self, event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
        """Return the folder in `sessions_dir` with the session's file; '' if it is elsewhere."""
        directory = _session_dir(event)
        if not directory.startswith(sessions_dir + "/"):
            from os.path import realpath  # a host may name its home by another path

            directory, sessions_dir = realpath(directory), realpath(sessions_dir)
        inside = directory.startswith(sessions_dir + "/")
        return directory[len(sessions_dir) + 1 :].partition("/")[0] if inside else ""

    def can_ask(self, event: Event, environ: Mapping[str, str]) -> bool:
        return event.get("can_ask") is True

    def held_output(self, reason: str, text: str) -> dict[str, Any]:
        return {"held": reason, **super().held_output(reason, text)}

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        return {"message": {"customType": CUSTOM_TYPE, "content": text, "display": True}}


def encode_cwd(cwd: str) -> str:
    """Return the name of the folder for sessions started in `cwd`."""
    return f"--{cwd.lstrip('/').replace('/', '-').replace(':', '-')}--"


def _session_dir(event: Event) -> str:
    path = as_string(event.get("transcript_path"))
    return path.rpartition("/")[0] if path else as_string(event.get("session_dir")).rstrip("/")


RUNTIME = Pi()
