"""The processes of Claude Code, by `sessions/<pid>.json`.

Claude Code writes the file when a process starts and deletes it when it ends. A process that was
killed leaves it."""

from __future__ import annotations

from ....common.system.files import is_directory, names_in, read_each
from ....common.system.json import decode
from ....common.system.processes import NotedProcess, is_alive, pid_domain

_PROJECTS = "/projects/"


def noted_processes(config_dir: str) -> list[NotedProcess]:
    """Return the noted processes, running or not."""
    directory = f"{config_dir}/sessions"
    processes = []
    for _, content in read_each(directory, names_in(directory)):
        try:
            noted = decode(content.decode())
            words = [str(noted.get(key, "")) for key in ("procStart", "sessionId", "pidDomain")]
            processes.append(NotedProcess(int(noted["pid"]), *words))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return processes


def has_left(path: str, program: str) -> bool:
    """Return whether the session's process has ended; `path` is its transcript.

    True if Claude Code keeps such files, and no file of a process that may still run names the
    session. A process of another machine or container may still run."""
    config_dir, _, name = path.rpartition(_PROJECTS)
    folder, _, file = name.partition("/")
    if not folder or "/" in file or not is_directory(f"{config_dir}/sessions"):
        return False
    session_id, domain = file.removesuffix(".jsonl"), pid_domain()
    for process in noted_processes(config_dir):
        is_elsewhere = process.domain not in ("", domain)
        if process.session_id == session_id and (
            is_elsewhere or is_alive(process.pid, process.started, program)
        ):
            return False
    return True
