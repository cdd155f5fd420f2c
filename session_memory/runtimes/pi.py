"""Pi: where session files lie, what a record means, what its extension is given. Session format versions 1 to 3."""

from __future__ import annotations

from ..system.files import is_directory, os
from ..system.json import decode_line
from ..text.timestamps import epoch_seconds
from ..transcripts.entries import Entry, Session, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from . import ToolResult

    Record = dict[str, Any]
    Event = Mapping[str, Any]

SESSIONS_FOLDER = "pi-sessions"
NAME = "pi"
USUAL_DIR = ".pi/agent"
PROJECTS_FOLDER = "sessions"
OWN_ID_VARIABLE = "PI_SESSION_ID"
PROMPT_EVENT = "before_agent_start"
LIVE_FOLDER = ""
RENAME, CLEAR, RESUME = "/name {name}", "/new", "pi --session {id}"
CUSTOM_TYPE = "session-update"
TITLE_RANK = 3
_KINDS = {"edit": "edit", "write": "edit", "read": "read", "bash": "command", "powershell": "command"}
_ARGUMENTS = ("path", "file_path", "command", "pattern", "url", "query", "description")


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for tool results, most of a session file's bytes, and for the system prompt; without tools also for what
    shows that it has no text.

    The first `"message":{` that is not part of a string is the record's own: what stands before it are plain strings.
    """
    at = line.find(b'"message":{"role":"', 0, 400)
    if at < 0 or with_tools:
        return at < 0 or not line.startswith((b"toolResult", b"system"), at + 19)
    if line.startswith(b'assistant","content":[{"type":"', at + 19):
        return b'"text":"' in line or b'"type":"image"' in line
    return not line.startswith((b"toolResult", b"system", b"bashExecution"), at + 19)


def trail(first_line: bytes) -> Trail | None:
    """The way through the tree that a session file is. A file without a header is read as it stands."""
    header = _first_record(first_line)
    return Trail(header) if header is not None and header.get("type") == "session" else None


class Trail:
    """The branch that ends at the last record; a record beside it was left, one that an edit took out is forgotten.

    Records before version 2 have no ids and are all on it. `/tree` may return to a branch: its records count again as
    soon as one follows them.
    """

    def __init__(self, header: Record) -> None:
        version = header.get("version")
        self._is_tree = isinstance(version, int) and version > 1
        self._cwd = _string(header.get("cwd"))
        is_fork = bool(header.get("parentSession") or header.get("branchedFrom"))
        self._forked_at = epoch_seconds(header.get("timestamp")) if is_fork else None
        self._is_leaf_known = False
        self._next_id: str | None = None
        self._is_removed: dict[str, bool] = {}

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line that is read, from the last to the first."""
        link = _link(line) if self._is_tree else None
        if link is None:
            return True
        if self._is_leaf_known and link[0] != self._next_id:
            return False
        self._is_leaf_known = True
        self._next_id = link[1]
        if b'"context_edit"' in line:
            self._take_edit(_first_record(line) or {})
        return not self._is_removed.get(link[0], False)

    def complete(self, entry: Entry) -> None:
        """Adds the directory, and what the header of a fork tells: what is older than the fork was copied."""
        entry.cwd = self._cwd
        entry.is_copy = self._forked_at is not None and (entry.timestamp or 0.0) < self._forked_at

    def _take_edit(self, record: Record) -> None:
        """The last of several edits holds, and it is met first."""
        if record.get("type") == "context_edit":
            self._is_removed.setdefault(_string(record.get("targetId")), record.get("replacement") is None)


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a `message` record: a user's, the assistant's, or a command that the user ran (`!`).

    Left out are attempts that failed, and commands that the user kept from the agent (`!!`).
    """
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    text = ""
    tools: tuple[ToolUse, ...] = ()
    if role == "user":
        text, _ = _content(message.get("content"))
        text = _as_typed(text)
    elif role == "assistant" and message.get("stopReason") != "error":
        text, tools = _content(message.get("content"))
    elif role == "bashExecution" and not message.get("excludeFromContext"):
        role, tools = "user", (ToolUse("bash", _string(message.get("command")), "command", _string(record.get("id"))),)
    if not text and not tools:
        return None
    return Entry(
        str(role),
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=_string(record.get("id")),
        offset=offset,
    )


def title(record: Record) -> tuple[int, str] | None:
    """The name that the user gave the session with `/name`; '' where it was taken away."""
    if record.get("type") != "session_info":
        return None
    return TITLE_RANK, _string(record.get("name")).strip()


def is_compaction(record: Record) -> bool:
    """Whether the runtime compacted the conversation here."""
    return record.get("type") == "compaction"


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a tool call."""
    return b'"toolResult"' in line or b'"bashExecution"' in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: what a record brings is all of it."""


def results(record: Record) -> list[ToolResult]:
    """The result in a `toolResult` message; a command that the user ran brings its own."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return []
    if message.get("role") == "toolResult":
        return [(_string(message.get("toolCallId")), message.get("isError") is True, message.get("content"))]
    if message.get("role") == "bashExecution" and not message.get("excludeFromContext"):
        return [(_string(record.get("id")), message.get("exitCode") != 0, message.get("output"))]
    return []


def recognises(line: bytes) -> bool:
    """Whether a line at the beginning of a session file is Pi's header."""
    return b'"session"' in line and (_first_record(line) or {}).get("type") == "session"


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The message that the extension returns from `before_agent_start`."""
    return {"message": {"customType": CUSTOM_TYPE, "content": text, "display": True}}


def is_from_a_person(prompt: str) -> bool:
    """Every prompt is: what extensions send by themselves does not come as one."""
    return True


def is_own(event: Event) -> bool:
    """Every event is: only our own extension sends them."""
    return True


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """Where the session's file lies: a named session's lies in its agent's home, whatever directory it works in."""
    return _session_dir(event) or _string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the session's file where it lies in `sessions/--<cwd>--/`, else `$PI_CODING_AGENT_DIR`, else
    `~/.pi/agent`."""
    above, _, project = _session_dir(event).rpartition("/")
    if project.startswith("--") and project.endswith("--") and above.endswith("/sessions"):
        return above[: -len("/sessions")]
    home = environ.get("HOME", "")
    path = environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return (home + path[1:] if path == "~" or path.startswith("~/") else path).rstrip("/")


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The session's file; a path that there is not where it keeps none (`--no-session`)."""
    path = _string(event.get("transcript_path"))
    if path:
        return path
    directory = _session_dir(event) or f"{config_dir}/sessions/{encode_cwd(_string(event.get('cwd')))}"
    return f"{directory}/{_string(event.get('session_id'))}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """The folder in `sessions_dir` that the session's file lies in; '' if it lies elsewhere."""
    directory = _session_dir(event)
    if not directory.startswith(sessions_dir + "/"):
        from os.path import realpath  # a host may name its home by another path

        directory, sessions_dir = realpath(directory), realpath(sessions_dir)
    inside = directory.startswith(sessions_dir + "/")
    return directory[len(sessions_dir) + 1 :].partition("/")[0] if inside else ""


def encode_cwd(cwd: str) -> str:
    """The name of the directory for sessions started in `cwd`."""
    return f"--{cwd.lstrip('/').replace('/', '-').replace(':', '-')}--"


def others(sessions_dir: str, config_dir: str, own_path: str, scope: str) -> list[Session]:
    """The named sessions of an agent home, each with the file that was written last; else those of the project, which
    is the directory that the own file lies in, or of all projects."""
    if sessions_dir:
        names = session_names(sessions_dir)
        found = [Session(name, latest_transcript(sessions_dir, name), name) for name in names]
    else:
        project_dir = own_path.rpartition("/")[0]
        found = _sessions_in(project_dir)
        if scope == "all":
            for folder in _listing(f"{config_dir}/sessions"):
                directory = f"{config_dir}/sessions/{folder}"
                if directory != project_dir:
                    found += _sessions_in(directory, is_elsewhere=True)
    return [session for session in found if session.path and session.path != own_path]


def located(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """The named sessions of an agent home, each with the file that was written last."""
    return others(sessions_dir, config_dir, "", "project")


def of_project(config_dir: str, own_id: str, directory: str, scope: str) -> list[Session]:
    """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
    folder = next((f for f in _listing(f"{config_dir}/sessions") if own_id and _holds(config_dir, f, own_id)), "")
    return others("", config_dir, f"{config_dir}/sessions/{folder or encode_cwd(directory)}/", scope)


def session_id_of(path: str) -> str:
    """The id of the session whose file lies at `path`."""
    name = path.rpartition("/")[2].removesuffix(".jsonl")
    return name.partition("_")[2] or name


def _holds(config_dir: str, folder: str, session_id: str) -> bool:
    return any(session.key == session_id for session in _sessions_in(f"{config_dir}/sessions/{folder}"))


def session_names(sessions_dir: str) -> list[str]:
    """The names of the sessions of an agent home: one directory each, without `new-*`, which are just being made."""
    names = _listing(sessions_dir)
    return [name for name in names if not name.startswith((".", "new-")) and is_directory(f"{sessions_dir}/{name}")]


def latest_transcript(sessions_dir: str, name: str) -> str:
    """The session file of `<sessions_dir>/<name>/` written last, which pi would continue; '' if there is none."""
    latest, latest_time = "", -1
    for session in _sessions_in(f"{sessions_dir}/{name}"):
        try:
            modified = os.stat(session.path).st_mtime_ns
        except FileNotFoundError:
            continue
        if modified > latest_time:
            latest, latest_time = session.path, modified
    return latest


def _sessions_in(directory: str, is_elsewhere: bool = False) -> list[Session]:
    """A session for each file `<time>_<id>.jsonl`. Ids begin with the time as well: none may be shortened."""
    return [
        Session(session_id_of(file), f"{directory}/{file}", is_elsewhere=is_elsewhere)
        for file in _listing(directory)
        if file.endswith(".jsonl") and not file.startswith(".")
    ]


def _listing(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _session_dir(event: Event) -> str:
    path = _string(event.get("transcript_path"))
    return path.rpartition("/")[0] if path else _string(event.get("session_dir")).rstrip("/")


def _link(line: bytes) -> tuple[str, str | None] | None:
    """The id in a line and that of its parent, None for the first of all; None for a line that is not of the tree.

    Most lines begin as pi writes them, with both, and need not be decoded for them.
    """
    if line.startswith(b'{"type":"'):
        at = line.find(b'"', 9)
        end = line.find(b'"', at + 8)
        if line.startswith(b'","id":"', at) and line.startswith(b'","parentId":', end):
            parent = line[end + 13 : end + 80]
            if parent.startswith(b"null"):
                return line[at + 8 : end].decode(), None
            if parent.startswith(b'"') and b'"' in parent[1:]:
                return line[at + 8 : end].decode(), parent[1 : parent.find(b'"', 1)].decode()
    record = _first_record(line) or {}
    if record.get("type") == "session" or not isinstance(record.get("id"), str) or "parentId" not in record:
        return None
    parent_id = record["parentId"]
    return record["id"], parent_id if isinstance(parent_id, str) else None


def _first_record(line: bytes) -> Record | None:
    return next((value for value in decode_line(line)[0] if isinstance(value, dict)), None)


def _as_typed(text: str) -> str:
    """What the user typed, with skills and files by their names where pi put in all their content."""
    typed = []
    while text.startswith(('<skill name="', '<file name="')):
        tag, sign = ("</skill>", "/skill:") if text.startswith("<skill") else ("</file>", "@")
        begin, end = text.find('"') + 1, text.find(tag)
        if end < 0:
            break
        typed.append(sign + text[begin : text.find('"', begin)])
        text = text[end + len(tag) :].lstrip()
    return " ".join([*typed, text]).strip()


def _content(content: object) -> tuple[str, tuple[ToolUse, ...]]:
    if isinstance(content, str):
        return content.strip(), ()
    parts: list[str] = []
    tools: list[ToolUse] = []
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append(block["text"].strip())
        elif kind == "image":
            parts.append("[image]")
        elif kind == "toolCall" and isinstance(block.get("name"), str):
            name = block["name"]
            argument = _primary_argument(block.get("arguments"))
            tools.append(ToolUse(name, argument, _KINDS.get(name, "other"), _string(block.get("id"))))
    return "\n\n".join([part for part in parts if part]), tuple(tools)


def _primary_argument(arguments: object) -> str:
    values = arguments if isinstance(arguments, dict) else {}
    strings = {key: value for key, value in values.items() if isinstance(value, str) and value}
    return next((strings[key] for key in _ARGUMENTS if key in strings), next(iter(strings.values()), ""))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
