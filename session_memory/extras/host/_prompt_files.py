"""Prompts for an agent in a container, as files in data/ipc/<group>/input/.

    input/<time>-<number>.json   {"type": "message", "text": "...", "uuid": "..."}: a prompt
    input/_close                 empty: end after the current turn

`_runner.py` reads them inside the container. A file gets its name only when it is whole. The agent
can write to the directory, so nothing there is read or followed by the host."""

from __future__ import annotations

import itertools
import json
import os
import time
from contextlib import suppress

from ...common.text.paths import is_name
from ...sessions.confined_files import directory_below, write_inside
from ...sessions.settings.host_layout import Group
from ._values import Prompt

CLOSE = "_close"
_SUFFIX = ".json"


class PromptFiles:
    """The prompts of one run of a group's agent."""

    def __init__(self, group: Group) -> None:
        self._host = group.host
        self._directory = f"{group.ipc_dir}/input"
        self._numbers = itertools.count()

    def clear(self) -> None:
        """Remove the files of an earlier run, because its open prompts are given again.

        Raises OSError, OutsideGroupError."""
        with directory_below(self._host, self._directory, make=True) as directory:
            for name in os.listdir(directory):
                if name == CLOSE or (name.endswith(_SUFFIX) and is_name(name)):
                    with suppress(OSError):  # the agent may have put a directory there
                        os.unlink(name, dir_fd=directory)

    def give(self, prompt: Prompt) -> None:
        """Write a prompt. Raises OSError, OutsideGroupError."""
        name = f"{time.time_ns() // 1_000_000:015d}-{next(self._numbers):06d}{_SUFFIX}"
        message = {"type": "message", "text": prompt.text, "uuid": prompt.uuid}
        self._write(name, json.dumps(message).encode())

    def close(self) -> None:
        """Ask the agent to end after its turn. Raises OSError, OutsideGroupError."""
        self._write(CLOSE, b"")

    def _write(self, name: str, content: bytes) -> None:
        with directory_below(self._host, self._directory, make=True) as directory:
            write_inside(directory, name, content)
