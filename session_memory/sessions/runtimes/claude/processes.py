"""The processes of Claude Code, by `sessions/<pid>.json`.

Claude Code writes the file when a process starts and deletes it when it ends. A process that was
killed leaves it. `status` is `busy`, `idle`, `shell` (a command runs in the background) or
`waiting`, then `waitingFor` names the dialog that is open; older versions note no status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....common.system.files import is_directory, names_in, read_each
from ....common.system.json import as_string, decode
from ....common.system.process_table import ProcessTable
from ....common.system.processes import NotedProcess, is_alive, pid_domain
from .._evidence import (
    ASKING,
    IN_BACKGROUND,
    WAITING,
    WORKING,
    Processes,
    ProcessEvidence,
    SessionPlace,
)
from ..base import Runtime

_PROJECTS = "/projects/"
_STATES = {"busy": WORKING, "idle": WAITING, "shell": IN_BACKGROUND, "waiting": WAITING}
_APPROVALS = ("permission prompt", "sandbox request")


def noted_processes(config_dir: str) -> list[NotedProcess]:
    """Return the noted processes, running or not."""
    return [process for process, _ in _notes(config_dir)]


def _notes(config_dir: str) -> Iterator[tuple[NotedProcess, Mapping[str, Any]]]:
    """Yield each noted process with everything that is noted of it."""
    directory = f"{config_dir}/sessions"
    for _, content in read_each(directory, names_in(directory)):
        try:
            noted = decode(content.decode())
            words = [str(noted.get(key, "")) for key in ("procStart", "sessionId", "pidDomain")]
            yield NotedProcess(int(noted["pid"]), *words), noted
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


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


def _noted_evidence(
    runtime: Runtime, config_dir: str, candidates: Sequence[SessionPlace], table: ProcessTable
) -> dict[str, ProcessEvidence] | None:
    """Return the evidence of sessions by the notes; None if Claude Code keeps none.

    Of several processes of a session, the one whose status changed last counts."""
    if not is_directory(f"{config_dir}/sessions"):
        return None
    domain, processes = pid_domain(), Processes(runtime, table)
    by_session: dict[str, tuple[float, ProcessEvidence]] = {}
    for process, noted in _notes(config_dir):
        since = _seconds(noted.get("statusUpdatedAt")) or _seconds(noted.get("startedAt"))
        if process.domain not in ("", domain):
            evidence = ProcessEvidence(
                None, "its process is in another container or on another machine"
            )
        elif is_alive(process.pid, process.started, runtime.PROGRAM):
            evidence = _of_process(process.pid, noted, since, processes)
        else:
            continue
        if since >= by_session.get(process.session_id, (0.0, evidence))[0]:
            by_session[process.session_id] = since, evidence
    ended = ProcessEvidence(False)
    return {each.path: by_session.get(each.id, (0.0, ended))[1] for each in candidates}


def _of_process(
    pid: int, noted: Mapping[str, Any], since: float, processes: Processes
) -> ProcessEvidence:
    status, question = as_string(noted.get("status")), as_string(noted.get("waitingFor"))
    state = ASKING if question in _APPROVALS else _STATES.get(status, "")
    listed = processes.table.processes.get(pid)
    children = processes.started_by(listed, ()) if listed else ()
    return ProcessEvidence(
        True, noted=state, since=since, question=question, process=listed, children=children
    )


def _seconds(milliseconds: object) -> float:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0
