"""Where Claude Code and claude-agent-sdk keep the transcripts of their sessions, and which sessions there are."""

from __future__ import annotations

from ...system.files import is_directory, is_file, names_in, os, path_text, read_each, read_whole, real_path
from ...system.json import decode
from ...text.names import is_name
from ...transcripts.entries import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "sessions"
USUAL_DIR = ".claude"
CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
DEEPEST = 2  # what lies deeper belongs to sub-agents
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "CLAUDE_CODE_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "CLAUDECODE")
PROGRAM = "claude"
MOST_UNITS = 200  # of an encoded path


def config_dir(environ: Mapping[str, str]) -> str:
    """`$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "") + "/.claude").rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """`projects/`."""
    return f"{config_dir}/projects"


def copies_dir(config_dir: str) -> str:
    """Always '': Claude Code compresses nothing."""
    return ""


def place_of(file: str) -> str:
    """Always '': names do not tell in which folder a transcript belongs."""
    return ""


def refresh(config_dir: str, everything: bool = False) -> None:
    """Nothing is to be done: Claude Code writes its transcripts itself."""


def project_dir(config_dir: str, cwd: str) -> str:
    """The directory for the transcripts of sessions that are started in `cwd`."""
    return f"{config_dir}/projects/{encode_cwd(cwd)}"


def transcript_path(config_dir: str, cwd: str, session_id: str) -> str:
    """Where the transcript of a session started in `cwd` lies, or will lie."""
    return f"{project_dir(config_dir, cwd)}/{session_id}.jsonl"


def encode_cwd(cwd: str) -> str:
    """The name of the directory for sessions started in `cwd` (its real path).

    Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`; above 200 units the first 200 and a checksum of the path
    remain (the 32-bit `h * 31 + unit`, its absolute value in base 36), as Claude Code does it.
    """
    from ...text.paths import dashed

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


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The folders whose names begin as that of `directory` does, as far as a long one is not shortened."""
    name = encode_cwd(directory)
    within = name[:MOST_UNITS] if len(name) > MOST_UNITS else name + "-"
    names = [(folder, folder.rpartition("/")[2]) for folder in _folders(config_dir)]
    return [folder for folder, one in names if one == name or one.startswith(within)]


def listed_dirs(config_dir: str) -> list[str]:
    """The directory of the folders."""
    return [f"{config_dir}/projects"]


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """The sessions whose transcripts lie in `folder`, without those of sub-agents."""
    return [
        Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
        for file in names_in(folder)
        if file.endswith(".jsonl") and not file.startswith((".", "agent-"))
    ]


def sub_agents(path: str) -> list[str]:
    """The transcripts in the folder of a session's sub-agents, which lies beside its own."""
    folder = path.removesuffix(".jsonl") + "/subagents"
    return [f"{folder}/{file}" for file in sorted(names_in(folder)) if file.endswith(".jsonl")]


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The named sessions of an agent home, else those of the project that the transcript lies in, or of all."""
    own_dir = own_path.rpartition("/")[0]
    return _named_in(sessions_dir, own_dir) if sessions_dir else _sessions(config_dir, own_dir, scope, folders)


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
    return _sessions(config_dir, _dir_of(config_dir, own_id, directory), scope, folders)


def named_sessions(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """The named sessions with their transcripts wherever these lie: among those of `root`, else in any project."""
    found = []
    for session in _named_in(sessions_dir, project_dir(config_dir, root)):
        if not is_file(session.path):
            elsewhere = _dir_of(config_dir, session.path.rpartition("/")[2][:-6], "")
            session.path = f"{elsewhere}/{session.path.rpartition('/')[2]}" if elsewhere else session.path
        found.append(session)
    return found


def session_names(sessions_dir: str) -> list[str]:
    """The names of the sessions of an agent home, in no particular order."""
    files = names_in(sessions_dir)
    return [file[:-5] for file in files if file.endswith(".json") and not file.startswith((".", "new-"))]


def named_session_id(sessions_dir: str, name: str) -> str:
    """The id that `<sessions_dir>/<name>.json` holds as `sessionId`; '' where there is none."""
    return next((session_id for _, session_id in _pointers(sessions_dir, [name])), "")


def session_id_of(path: str) -> str:
    """The id of the session whose transcript lies at `path`."""
    return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))


def given_name(path: str) -> str:
    """Always '': a transcript holds its session's name."""
    return ""


def live_session_id(config_dir: str, pid: int) -> str:
    """The id of the session that is open in the process `pid`, by its note in `sessions/`; '' for none."""
    try:
        session_id = decode(read_whole(f"{config_dir}/sessions/{pid}.json").decode())["sessionId"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return session_id if is_name(session_id) else ""


def live_processes(config_dir: str) -> list[tuple[int, str]]:
    """The processes that are noted in `sessions/<pid>.json`, each with its start as proc(5) has it ('' for none)."""
    directory = config_dir + "/sessions"
    found = []
    for _, content in read_each(directory, os.listdir(directory) if is_directory(directory) else ()):
        try:
            noted = decode(content.decode())
            found.append((int(noted["pid"]), str(noted.get("procStart", ""))))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _named_in(sessions_dir: str, project_dir: str) -> list[Session]:
    """The sessions that `<sessions_dir>/<name>.json` name, each with its transcript in `project_dir`.

    Left out are those that have no id yet, and `new-*`, which hosts use for sessions that are just being made.
    """
    found = _pointers(sessions_dir, session_names(sessions_dir))
    return [
        Session(path_text(name), f"{project_dir}/{session_id}.jsonl", path_text(name)) for name, session_id in found
    ]


def _pointers(sessions_dir: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each of `names` with the session id in its file; those without one are left out."""
    for file, content in read_each(sessions_dir, [name + ".json" for name in names]):
        try:
            session_id = decode(content.decode())["sessionId"]
        except (ValueError, KeyError, TypeError):
            continue
        if is_name(session_id):
            yield file[: -len(".json")], session_id


def _sessions(config_dir: str, own_dir: str, scope: str, folders: Folders) -> list[Session]:
    """The sessions in `own_dir` and in `folders`, and with the scope `all` those elsewhere."""
    from ...transcripts.projects import sessions_of_project

    return sessions_of_project(own_dir, folders, scope, _folders(config_dir), sessions_in)


def _folders(config_dir: str) -> Iterator[str]:
    """The folders of all projects. What they lie in is listed when the first is asked for."""
    projects_dir = f"{config_dir}/projects"
    for name in names_in(projects_dir):
        yield f"{projects_dir}/{name}"


def _dir_of(config_dir: str, session_id: str, cwd: str) -> str:
    """The directory with the transcript of `session_id`, else the one for `cwd` or a directory above it; else ''."""
    if session_id:
        for folder in _folders(config_dir):
            if is_file(f"{folder}/{session_id}.jsonl"):
                return folder
    while cwd.strip("/"):
        directory = project_dir(config_dir, cwd)
        if is_directory(directory):
            return directory
        cwd = cwd.rstrip("/").rpartition("/")[0]
    return ""


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits
