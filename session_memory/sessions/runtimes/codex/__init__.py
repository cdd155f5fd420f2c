"""Codex."""

from __future__ import annotations

from ....common.system.files import is_directory, names_in, path_stamp, read_end
from ....common.system.json import as_string, objects_in
from ...transcripts.edits import patch_uses
from ...transcripts.entries import Session, called
from ..base import CopiedSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...transcripts.entries import ToolUse
    from ..base import Event, Folders

MOST_SESSIONS = 400  # most recently written; a prompt may report only these
MOST_BEGUN = 5_000  # candidates, the last ones started; their status takes 10 ms
_ID_CHARACTERS = 36  # a UUID at the end of the name
_NAMES_FILE = "session_index.jsonl"
_NAMES_BYTES = 256 * 1024  # of its end


class Codex(CopiedSessions):
    """Codex: a rollout is `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.

    The day is the session's first, whatever its project. Rollouts that the user archived are in
    `archived_sessions/`. Sub-agents' rollouts are among the others; only their content names their
    session."""

    name = "codex"
    TITLE = "Codex"
    AUTOMATED_MARKS = (b'"originator":"codex_exec"',)
    USUAL_DIR = ".codex"
    CONFIG_VARIABLE = "CODEX_HOME"
    TRANSCRIPTS = "sessions"
    DEEPEST = 4
    SESSIONS_FOLDER = "codex-sessions"
    PROGRAM = "codex"
    CONTINUES = ("--last",)
    SERVERS = (
        "app-server",
        "mcp-server",
        "mcp",
        "exec-server",
        "cloud",
        "remote-control",
        "queue",
        "migrate-rollouts",
    )
    HELPERS = ("codex-code-mode-host",)
    OWN_ID_VARIABLE = "CODEX_SESSION_ID"
    AGENT_VARIABLE = "CODEX_THREAD_ID"
    HAS_BACKUP = True
    SUB_AGENT_EVENT = "UserPromptSubmit"
    WAITING_EVENTS = ("Stop", "PermissionRequest")
    SHOWS_NOTICES = True
    TOOLS = {"apply_patch": ("edit", "command"), "Bash": ("command", "command")}

    def call_began(self, lines: Iterable[bytes]) -> float | None:
        from .records import item_began

        return item_began(lines)

    def copies_dir(self, config_dir: str) -> str:
        return self.copies_root(config_dir)

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update the copies of compressed and archived rollouts.

        A prompt needs none, so they are not updated for it."""
        if everything and is_directory(self.transcripts_dir(config_dir)):
            from ...transcripts.mirror import Exclusion
            from .copies import bring_up_to_date

            exclusion = Exclusion(self.home_of(config_dir))
            bring_up_to_date(config_dir, self.copies_dir(config_dir), exclusion, self.place_of)

    def place_of(self, file: str) -> str:
        """Return a rollout's path, in the folder of its day.

        `rollout-2026-11-20T10-00-00-<id>.jsonl` is in `2026/11/20/`."""
        year, month, day = file[8:12], file[13:15], file[16:18]
        is_dated = (
            file.startswith("rollout-")
            and file.endswith(".jsonl")
            and (year + month + day).isdigit()
        )
        return f"{year}/{month}/{day}/{file}" if is_dated else ""

    def project_dir(self, config_dir: str, cwd: str) -> str:
        """Return today's folder: there is no folder for a directory."""
        from time import strftime

        return f"{self.transcripts_dir(config_dir)}/{strftime('%Y/%m/%d')}"

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        return f"{self.project_dir(config_dir, cwd)}/rollout-{session_id}.jsonl"

    def all_folders(self, config_dir: str) -> Iterator[str]:
        return self._youngest(self.transcripts_dir(config_dir))

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        """Return the newest rollouts and copies, because only their content names a directory."""
        return [*self.all_folders(config_dir), *self._youngest(self.copies_dir(config_dir))]

    def listed_dirs(self, config_dir: str) -> list[str]:
        path = self.transcripts_dir(config_dir)
        directories = [path]
        for _ in ("year", "month", "day"):
            names = [name for name in names_in(path) if name.isdigit()]
            if not names:
                break
            path = f"{path}/{max(names)}"
            directories.append(path)
        return directories

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the sessions in a day's folder, or the single session of a rollout."""
        if folder.endswith(".jsonl"):
            folder, _, file = folder.rpartition("/")
            files = [file]
        else:
            files = names_in(folder)
        return [
            Session(self.session_id_of(file), f"{folder}/{file}", "", is_elsewhere, worktree)
            for file in files
            if file.startswith("rollout-") and file.endswith(".jsonl")
        ]

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions in `folders`; with the scope `all`, also the newest others.

        Copies are left out."""
        place = self.transcripts_dir(config_dir)
        plain = [(path, worktree) for path, worktree in folders if path.startswith(f"{place}/")]
        return super().other_sessions(sessions_dir, config_dir, own_path, scope, plain)

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions of a project as the default does, and the copies."""
        from ...transcripts.projects import sessions_of_project

        return sessions_of_project(
            "", folders, scope, self.folders_below(config_dir, directory), self.sessions_in
        )

    def session_id_of(self, path: str) -> str:
        return super().session_id_of(path)[-_ID_CHARACTERS:]

    def given_name(self, path: str) -> str:
        """Return the session's last name in the index, which the user gave with `/rename`."""
        config_dir, session_id = self._config_dir_of(path), self.session_id_of(path)
        wanted = session_id.encode("utf-8", "surrogateescape")
        lines = read_end(f"{config_dir}/{_NAMES_FILE}", _NAMES_BYTES).split(b"\n")
        for record in [
            record for line in reversed(lines) if wanted in line for record in objects_in(line)
        ]:
            if record.get("id") == session_id:
                return as_string(record.get("thread_name")).strip()
        return ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether the transcript is a rollout.

        A sub-agent sends the same events; of these, its prompts and calls are answered."""
        path = as_string(event.get("transcript_path"))
        is_its = (
            path.rpartition("/")[2].startswith("rollout-") if path else "transcript_path" in event
        )
        answered = (self.SUB_AGENT_EVENT, self.TOOL_EVENT)
        return is_its and (not event.get("agent_id") or event.get("hook_event_name") in answered)

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the session's rollout; the event of a sub-agent names the sub-agent's.

        The session began on the same day or earlier."""
        path, session_id = super().own_path(event, start, config_dir), event.get("session_id")
        if not self.sub_agent(event) or self.session_id_of(path) == session_id:
            return path
        day, end = path.rpartition("/")[0], f"-{session_id}.jsonl"
        folders = (each for each in _days(self.transcripts_dir(config_dir)) if each <= day)
        names = ((folder, name) for folder in folders for name in names_in(folder))
        return next((f"{folder}/{name}" for folder, name in names if name.endswith(end)), path)

    def keeps_transcript(self, event: Event, environ: Mapping[str, str]) -> bool:
        return bool(event.get("transcript_path"))  # no transcript under `--ephemeral`

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        calls = called(event, self.TOOLS)
        return patch_uses(calls[0]) if calls and calls[0].kind == "edit" else calls

    def tasks(self, event: Event) -> list[str]:
        return [as_string(event.get("prompt"))]

    def _config_dir_of(self, path: str) -> str:
        """Return Codex's directory from the path of a rollout or copy."""
        sessions_dir = path.rsplit("/", self.DEEPEST)[0]
        if not sessions_dir.endswith("/sessions"):
            from ...transcripts.mirror import read_state

            sessions_dir = read_state(sessions_dir).sessions
        return sessions_dir.removesuffix("/sessions")

    def _youngest(self, directory: str) -> Iterator[str]:
        """Yield the most recently written rollouts among the sessions that began last.

        The names of folders and files show when a session began."""
        rollouts: list[str] = []
        for folder in _days(directory):
            rollouts += sorted([session.path for session in self.sessions_in(folder)], reverse=True)
            if len(rollouts) >= MOST_BEGUN:
                break
        if len(rollouts) > MOST_SESSIONS:
            rollouts = sorted(rollouts[:MOST_BEGUN], key=lambda path: -path_stamp(path)[2])[
                :MOST_SESSIONS
            ]
        yield from rollouts


def _days(directory: str) -> Iterator[str]:
    for year in _numbers(directory):
        for month in _numbers(year):
            yield from _numbers(month)


def _numbers(directory: str) -> list[str]:
    return [
        f"{directory}/{name}"
        for name in sorted(names_in(directory), reverse=True)
        if name.isdigit()
    ]


RUNTIME = Codex()
