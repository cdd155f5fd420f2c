"""Claude Code and claude-agent-sdk."""

from __future__ import annotations

from ....common.system.files import is_directory, is_file, names_in, path_text, read_each, real_path
from ....common.system.json import as_string, decode
from ....common.text.paths import is_name
from ...transcripts.entries import FROM_AGENTS, Session
from ..base import ProjectFolders, transcripts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ....common.system.process_table import ProcessTable
    from ....common.system.processes import NotedProcess
    from .._evidence import ProcessEvidence, SessionPlace
    from ..base import Event, Folders

MOST_UNITS = 200  # of an encoded path
# the call that starts a sub-agent may be written to the transcript after its start
WRITTEN_WITHIN_SECONDS = 0.4


class ClaudeCode(ProjectFolders):
    """Claude Code: transcripts are at `projects/<directory>/<session>.jsonl`.

    An agent home has a file `<name>.json` for each of its sessions, with the id as `sessionId`."""

    name = "claude-code"
    TITLE = "Claude Code"
    AUTOMATED_MARKS = (b'"entrypoint":"sdk-',)
    USUAL_DIR = ".claude"
    CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
    LISTS_RECENT = True
    TRANSCRIPTS = "projects"
    SUB_AGENTS = "/subagents"
    NO_SESSIONS = (".", "agent-")
    SESSIONS_FOLDER = "sessions"
    PROGRAM = "claude"
    OWN_ID_VARIABLE = "CLAUDE_CODE_SESSION_ID"
    AGENT_VARIABLE = "CLAUDECODE"
    HAS_BACKUP = True
    PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"  # `cwd` follows the agent's `cd`
    SUB_AGENT_EVENT = "SubagentStart"
    WAITING_EVENTS = ("Stop", "PermissionRequest")
    FAILED_EVENT = "PostToolUseFailure"
    PROMPT_ID_KEY = "prompt_id"  # the same for all prompts of a turn
    SHOWS_NOTICES = True
    TOOLS = {
        "Edit": ("edit", "file_path"),
        "MultiEdit": ("edit", "file_path"),
        "Write": ("edit", "file_path"),
        "NotebookEdit": ("edit", "notebook_path"),
        "Bash": ("command", "command"),
    }
    FAILING_TOOLS = {"Read": ("read", "file_path")}

    def folder_name(self, directory: str) -> str:
        return encode_cwd(directory)

    def name_inside(self, name: str) -> str:
        return name[:MOST_UNITS] if len(name) > MOST_UNITS else name + "-"

    def watched_dirs(self, config_dir: str) -> list[str]:
        return [self.transcripts_dir(config_dir), f"{config_dir}/sessions"]

    def started_in(self, config_dir: str, directory: str) -> str:
        """Return the folder for `directory` or for its nearest parent with a folder, or ''."""
        while directory.strip("/"):
            folder = self.project_dir(config_dir, directory)
            if is_directory(folder):
                return folder
            directory = directory.rstrip("/").rpartition("/")[0]
        return ""

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        own_dir = own_path.rpartition("/")[0]
        if sessions_dir:
            return self._named_in(sessions_dir, own_dir)
        return self._sessions(config_dir, own_dir, scope, folders)

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        sessions = self._named_in(sessions_dir, self.project_dir(config_dir, root))
        for session in sessions:
            if not is_file(session.path):
                session.path = (
                    self.transcript_of(config_dir, self.session_id_of(session.path)) or session.path
                )
        return sessions

    def _named_in(self, sessions_dir: str, project_dir: str) -> list[Session]:
        """Return an agent home's sessions that have an id, with their transcripts in
        `project_dir`."""
        pointers = _pointers(sessions_dir, self.session_names(sessions_dir))
        return [
            Session(path_text(name), f"{project_dir}/{id}.jsonl", path_text(name))
            for name, id in pointers
        ]

    def session_names(self, sessions_dir: str) -> list[str]:
        """Return the names of the files, except `new-*`, which hosts are still creating."""
        files = names_in(sessions_dir)
        return [
            file[:-5]
            for file in files
            if file.endswith(".json") and not file.startswith((".", "new-"))
        ]

    def sub_agents_beside(self, path: str) -> list[str]:
        """Return the transcripts of sub-agents.

        Those that a workflow started are one folder deeper."""
        if not is_directory(self.folder_beside(path)):
            return []
        workflows = f"{self.folder_beside(path)}{self.SUB_AGENTS}/workflows"
        folders = [f"{workflows}/{name}" for name in sorted(names_in(workflows))]
        return super().sub_agents_beside(path) + [
            agent for folder in folders for agent in transcripts_in(folder)
        ]

    def is_of_workflow(self, path: str) -> bool:
        return path.rpartition("/")[0].rpartition("/")[0].endswith(f"{self.SUB_AGENTS}/workflows")

    def live_session_id(self, config_dir: str, pid: int) -> str:
        return named_session_id(f"{config_dir}/sessions", str(pid))

    def live_processes(self, config_dir: str) -> list[NotedProcess]:
        from .processes import noted_processes

        return noted_processes(config_dir)

    def evidence(
        self, config_dir: str, candidates: Sequence[SessionPlace], table: ProcessTable
    ) -> Mapping[str, ProcessEvidence]:
        from .processes import _noted_evidence

        noted = _noted_evidence(self, config_dir, candidates, table)
        return super().evidence(config_dir, candidates, table) if noted is None else noted

    def has_left(self, path: str) -> bool:
        from .processes import has_left

        return has_left(path, self.PROGRAM)

    def keeps_transcript(self, event: Event, environ: Mapping[str, str]) -> bool | None:
        # `--no-session-persistence` is for print mode and the SDK
        return True if _is_interactive(environ) else None

    def process(self, event: Event, environ: Mapping[str, str]) -> str:
        return environ.get("CLAUDE_PID", "")

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether the transcript is in Claude Code's directory.

        Codex and Qwen Code also run the hooks of its plugins. Copilot runs the hooks in its
        settings, and its events name no transcript. Kimi Code's name their client,
        Hermes's have further values in `extra`, and events from our extensions for other runtimes
        name their runtime."""
        path = as_string(event.get("transcript_path"))
        if not path:
            is_named = any([key in event for key in ("runtime", "client_type", "extra")])
            return not environ.get("COPILOT_CLI") and not is_named
        return path.rpartition("/")[0].rpartition("/")[0].endswith("/projects")

    def own_name(self, event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
        file = f"/{as_string(event.get('session_id'))}.jsonl"
        return next((session.name for session in sessions if session.path.endswith(file)), "")

    def is_from_a_person(self, prompt: str) -> bool:
        """Return whether a person typed a prompt.

        Background tasks and other agents report through the same event."""
        return not prompt.lstrip().startswith(
            ("<task-notification>", "<system-reminder>", *FROM_AGENTS)
        )

    def replaced_texts(self, event: Event) -> list[str]:
        from ...transcripts.edits import argument_edits

        return [
            old
            for old, _ in argument_edits(event.get("tool_input"), "old_string", "new_string", "")
            if old
        ]

    def tasks(self, event: Event) -> list[str]:
        from time import monotonic, sleep

        from .records import tasks_given

        end = monotonic() + WRITTEN_WITHIN_SECONDS
        transcript_and_type = (
            as_string(event.get("transcript_path")),
            as_string(event.get("agent_type")),
        )
        while not (prompts := tasks_given(*transcript_and_type)) and monotonic() < end:
            sleep(0.03)
        return prompts

    def can_ask(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether the session is interactive and its mode asks; other modes refuse."""
        return _is_interactive(environ) and event.get("permission_mode") != "dontAsk"

    def held_output(self, reason: str, text: str) -> dict[str, Any]:
        asks = {
            "hookEventName": self.TOOL_EVENT,
            "permissionDecision": "ask",
            "permissionDecisionReason": reason,
        }
        return {"hookSpecificOutput": {**asks, "additionalContext": text} if text else asks}


def encode_cwd(cwd: str) -> str:
    """Return Claude Code's name of the folder for sessions started in `cwd` (its real path).

    Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`. Above 200 units, the name is the first 200
    and a checksum of the path: the 32-bit `h * 31 + unit`, its absolute value in base 36."""
    from ....common.text.paths import dashed

    path = real_path(cwd)
    encoded = dashed(path)
    if len(encoded) <= MOST_UNITS:
        return encoded
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [units[i] | units[i + 1] << 8 for i in range(0, len(units), 2)]
    checksum = 0
    for code in codes:
        checksum = (checksum * 31 + code) & 0xFFFFFFFF
    if checksum >= 0x80000000:
        checksum = 0x100000000 - checksum
    return f"{encoded[:MOST_UNITS]}-{_base36(checksum)}"


def named_session_id(sessions_dir: str, name: str) -> str:
    """Return the `sessionId` in `<sessions_dir>/<name>.json`; '' if there is none."""
    return next((session_id for _, session_id in _pointers(sessions_dir, [name])), "")


def _is_interactive(environ: Mapping[str, str]) -> bool:
    return not environ.get("CLAUDE_CODE_ENTRYPOINT", "sdk").startswith("sdk")


def _pointers(sessions_dir: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `names` with the session id in its file; skip names without one."""
    for file, content in read_each(sessions_dir, [name + ".json" for name in names]):
        try:
            session_id = decode(content.decode())["sessionId"]
        except (ValueError, KeyError, TypeError):
            continue
        if is_name(session_id):
            yield file[: -len(".json")], session_id


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits


RUNTIME = ClaudeCode()
