"""Tool calls written as files, which the host answers, for an agent without a database.

An agent in a sandbox has none (see `_ipc`).
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from ...app.tools.call import Served, ToolResult
from ...common.system.files import read_whole, write_private
from ...extension_points import TOOL_AUDIENCES
from ...sessions.settings.host_layout import MAIN
from ._audiences import tools_of_group

REQUEST_BYTES = 64 * 1024
RESPONSE_BYTES = 256 * 1024
SNAPSHOT_BYTES = 16 * 1024 * 1024
WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.05


class RequestFiles:
    """Calls through the directory `path` that host and agent share.

    An example is data/ipc/<group>, mounted in a sandbox."""

    def __init__(self, path: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._groups_file = path + "/available_groups.json"
        self._tasks_dir = path + "/tasks"
        self._responses_dir = path + "/responses"
        self._wait_seconds = wait_seconds

    def served(self) -> Served:
        """Return the tools that the host offers to this group, by its snapshots.

        Only main has main's tools. The host decides which group this is."""
        is_main, offered = False, []
        try:
            snapshot = json.loads(read_whole(self._groups_file, SNAPSHOT_BYTES))
            is_main = any(group["folder"] == MAIN for group in snapshot["groups"])
            offered = [name for name in TOOL_AUDIENCES if snapshot.get(f"has_{name}") is True]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no snapshot yet
            pass
        return Served(tools_of_group(is_main=is_main, others=offered), self.call)

    def call(self, name: str, arguments: object) -> ToolResult:
        """Call a tool and return the host's answer."""
        request = json.dumps({"tool": name, "arguments": arguments or {}}).encode()
        if len(request) > REQUEST_BYTES:
            return ToolResult(
                f"{name}: the arguments are too long. Call it again with shorter ones", True
            )
        request_id = f"{int(time.time() * 1000)}-{os.urandom(4).hex()}"
        temporary = f"{self._tasks_dir}/.{request_id}.tmp"
        try:
            write_private(temporary, request)
            os.replace(temporary, f"{self._tasks_dir}/{request_id}.json")
            return self._await(request_id) or ToolResult(
                "The host does not answer. Tell the user if this continues", True
            )
        except OSError as error:
            return ToolResult(f"{name}: {error.strerror}. Tell the user if it happens again", True)

    def _await(self, request_id: str) -> ToolResult | None:
        """Return the answer and delete its file; on a timeout withdraw the request, return None."""
        path = f"{self._responses_dir}/{request_id}.json"
        deadline = time.monotonic() + self._wait_seconds
        while not os.path.lexists(path):
            if time.monotonic() > deadline:
                # else it would be executed when nobody expects it
                with suppress(FileNotFoundError):
                    os.unlink(f"{self._tasks_dir}/{request_id}.json")
                return None
            time.sleep(_PAUSE_SECONDS)
        response = json.loads(read_whole(path, RESPONSE_BYTES))
        os.unlink(path)
        return ToolResult(str(response["text"]), response["is_error"] is True)
