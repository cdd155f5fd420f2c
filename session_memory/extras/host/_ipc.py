"""Files that a group's agent and its host exchange in data/ipc/<group>/, instead of a database.

An agent in a sandbox needs this. The agent can write to the directory, so a file there may be
anything: a link, a device, a directory. A request gets a name that ends in .json only when it is
complete. Before it is read, it is moved out of the agent's reach (data/ipc/.taken/<group>/, on the
same file system). Its answer is written there too, and then moved to responses/ by one rename. So
after a crash at any point, each request has one answer, and none is executed twice.
"""

# session_history.json, current_tasks.json, available_groups.json: what there is, written before each
# run
# tasks/<id>.json, a call of a tool: {"tool": "clear_session", "arguments": {"name": "Tax"}}
# responses/<id>.json, its answer: {"id": "<id>", "text": "Done: ...", "is_error": false}

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Container, Mapping, Sequence
from itertools import islice
from typing import Any

from ...app.tools.backend import Backend
from ...app.tools.call import ToolResult, call
from ...app.tools.definitions import tools_for
from ...common.system.files import NotAFileError, is_regular, names_in, try_lock
from ...common.system.json import decode
from ...common.text.paths import is_name
from ...common.text.sanitize import for_prompt
from ...extension_points import TOOL_AUDIENCES
from ...sessions.confined_files import TooLargeError, directory_below, read_inside, write_inside
from ...sessions.settings.host_layout import Group, Layout
from ...sessions.transcripts.pointers import SessionManager
from .request_files import REQUEST_BYTES

Rows = Sequence[Mapping[str, Any]]

MOST_REQUESTS = 100  # of one group at a time, so the others need not wait
BEING_WRITTEN_SECONDS = 2.0
_TAKEN = ".taken"
_SUFFIX, _ANSWERED = ".json", ".answer"
_MOST_LISTED = 10_000
_COLUMNS = ("id", "group_folder", "session_id", "name", "created_at", "archived_at")


def write_snapshots(
    layout: Layout,
    group: str,
    sessions: SessionManager,
    tasks: Rows = (),
    groups: Rows = (),
    audiences: Container[str] = (),
) -> None:
    """Write the snapshots of a group: its history, and its own `tasks` and `groups`.

    `tasks` have a `group_folder`, `groups` a `folder`, '' for a chat without one. Main gets all of
    them, and the history of all groups given. Its agent also gets the tools for these `audiences`.
    Raises OSError, OutsideGroupError."""
    own_group = layout.group(group)
    others = [str(row["folder"]) for row in groups if row["folder"] not in (group, "")]
    names = [group, *others] if own_group.is_main else [group]
    history = [dict(zip(_COLUMNS, entry)) for name in names for entry in sessions.get_history(name)]
    snapshots = {
        "session_history": {
            "active": sessions.get(group),
            "sessions": _visible(history, "group_folder", own_group),
        },
        "current_tasks": {"tasks": _visible(tasks, "group_folder", own_group)},
        "available_groups": {
            "groups": _visible(groups, "folder", own_group),
            **{f"has_{audience}": audience in audiences for audience in TOOL_AUDIENCES},
        },
    }
    with directory_below(layout.root, own_group.ipc_dir) as directory:
        for name, content in snapshots.items():
            write_inside(directory, name + _SUFFIX, _json(content))


def has_requests(layout: Layout, group: str) -> bool:
    """Check if a group has new or interrupted requests.

    This takes little of an idle host's time."""
    return bool(
        names_in(layout.group(group).tasks_dir)
        or names_in(f"{layout.root}/data/ipc/{_TAKEN}/{group}")
    )


def answer_requests(layout: Layout, group: str, backend: Backend) -> int:
    """Answer the file requests of a group's agent with its `backend`; return their number.

    If another process is answering, return 0 without waiting. Raises OSError, OutsideGroupError."""
    own_group = layout.group(group)
    taken_dir = f"{layout.root}/data/ipc/{_TAKEN}/{group}"
    with (
        directory_below(layout.root, own_group.tasks_dir) as tasks,
        directory_below(layout.root, own_group.responses_dir) as responses,
        directory_below(layout.root, taken_dir, make=True) as claimed,
    ):
        if not try_lock(claimed):
            return 0
        files = _RequestFiles(tasks, responses, claimed, taken_dir)
        answered = 0
        for request_id in files.interrupted():
            files.answer(request_id, _answer(files, request_id, backend, is_again=True))
            answered += files.publish(request_id)
        for request_id in files.waiting()[:MOST_REQUESTS]:
            if files.take(request_id):
                files.answer(request_id, _answer(files, request_id, backend))
                answered += files.publish(request_id)
        return answered


class _RequestFiles:
    """Requests and answers in open directories.

    `taken_dir` is the path of `taken`, which the agent cannot reach."""

    def __init__(self, tasks: int, responses: int, claimed: int, taken_dir: str) -> None:
        self._tasks = tasks
        self._responses = responses
        self._taken = claimed
        self._taken_dir = taken_dir

    def interrupted(self) -> list[str]:
        """Publish answers written before a crash; return the requests without an answer."""
        for name in os.listdir(self._taken):
            if name.startswith("."):  # an unfinished answer
                self._remove(name)
            elif name.endswith(_ANSWERED):
                self.publish(name.removesuffix(_ANSWERED))
        left = [
            name.removesuffix(_SUFFIX)
            for name in sorted(os.listdir(self._taken))
            if name.endswith(_SUFFIX)
        ]
        return [request_id for request_id in left if not self._is_answered(request_id)]

    def waiting(self) -> list[str]:
        """Return the complete requests, the oldest first."""
        requests = []
        with os.scandir(self._tasks) as entries:
            for entry in islice(entries, _MOST_LISTED):
                request_id, suffix = os.path.splitext(entry.name)
                if suffix == _SUFFIX and is_name(request_id):
                    status = entry.stat(follow_symlinks=False)
                    if not (
                        is_regular(status) and self._is_being_written(entry.name, status.st_mtime)
                    ):
                        requests.append((status.st_mtime, request_id))
        return [request_id for _, request_id in sorted(requests)]

    def take(self, request_id: str) -> bool:
        """Move a request, whatever it is, out of the agent's reach.

        Return False if it is gone or already answered."""
        name = request_id + _SUFFIX
        try:
            os.rename(name, name, src_dir_fd=self._tasks, dst_dir_fd=self._taken)
        except OSError:
            return False
        return not self._is_answered(request_id)

    def read(self, request_id: str) -> bytes:
        """Return the content of a taken request. Raises NotAFileError, TooLargeError."""
        name = request_id + _SUFFIX
        if not is_regular(os.stat(name, dir_fd=self._taken, follow_symlinks=False)):
            raise NotAFileError("not a regular file")  # never open a device
        return read_inside(self._taken, name, REQUEST_BYTES)

    def answer(self, request_id: str, answer: ToolResult) -> None:
        """Write the answer; from then on the request counts as answered."""
        response = {"id": request_id, "text": answer.text, "is_error": answer.is_error}
        write_inside(self._taken, request_id + _ANSWERED, _json(response))

    def publish(self, request_id: str) -> bool:
        """Delete the request and move the answer to responses/.

        Return False if a directory is in its place."""
        self._remove(request_id + _SUFFIX)
        try:
            os.rename(
                request_id + _ANSWERED,
                request_id + _SUFFIX,
                src_dir_fd=self._taken,
                dst_dir_fd=self._responses,
            )
        except IsADirectoryError:
            self._remove(request_id + _ANSWERED)
            return False
        return True

    def _is_answered(self, request_id: str) -> bool:
        """Return whether a request with this id has an answer; if so, delete the repetition."""
        try:
            os.stat(request_id + _SUFFIX, dir_fd=self._responses, follow_symlinks=False)
        except FileNotFoundError:
            return False
        self._remove(request_id + _SUFFIX)
        return True

    def _is_being_written(self, name: str, modified: float) -> bool:
        """Return whether an invalid request is so new that its writer may not have finished."""
        if time.time() - modified > BEING_WRITTEN_SECONDS:
            return False
        try:
            decode(read_inside(self._tasks, name, REQUEST_BYTES).decode())
        except ValueError:
            return True
        except OSError:
            pass
        return False

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._taken)
        except FileNotFoundError:
            pass
        except OSError:
            shutil.rmtree(f"{self._taken_dir}/{name}", ignore_errors=True)


def _answer(
    files: _RequestFiles, request_id: str, backend: Backend, *, is_again: bool = False
) -> ToolResult:
    """Return the answer to a taken request.

    `is_again` means that it may have been executed before a crash."""
    tools = tools_for(backend)
    try:
        request = decode(files.read(request_id).decode())
        name, arguments = request["tool"], request.get("arguments")
        tool = next(tool for tool in tools if tool.name == name)
    except TooLargeError:
        return ToolResult(f"A request has at most {REQUEST_BYTES} bytes. Ask again with less", True)
    except OSError:
        return ToolResult("A request must be a regular file. Write it again", True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ToolResult(
            'A request is JSON such as {"tool": "list_sessions", "arguments": {}}. Write it again',
            True,
        )
    except StopIteration:
        names = ", ".join(tool.name for tool in tools)
        return ToolResult(f"This tool does not exist. Use one of {names}", True)
    if is_again and not (tool.is_read_only or tool.is_idempotent):
        return ToolResult(
            f"The host was interrupted in {name}. Check with list_sessions whether it was done",
            True,
        )
    return call(backend, tool.name, arguments)


def _visible(rows: Rows, key: str, group: Group) -> list[dict[str, Any]]:
    """Return the rows that a group may see, safe for a prompt."""
    seen = [row for row in rows if group.is_main or row[key] == group.name]
    return [
        {
            name: for_prompt(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        for row in seen
    ]


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
