"""Runs Claude Code in a container and gives it the prompts that arrive as files:

    python3 _runner.py IPC_DIRECTORY CLAUDE ARGUMENT...

It passes its own stdin on, which is the SDK's control channel, and adds each prompt from
IPC_DIRECTORY/input/*.json, oldest first. With IPC_DIRECTORY/input/_close, or at the end of stdin,
Claude Code ends after its turn. It needs only Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

POLL_SECONDS = 0.1
BLOCK_BYTES = 64 * 1024
CLOSE = "_close"


class Runner:
    """A running Claude Code whose stdin has two sources."""

    def __init__(self, directory: str, command: list[str]) -> None:
        self._input = f"{directory}/input"
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self._lock = threading.Lock()
        self._is_over = threading.Event()

    def run(self) -> int:
        """Serve until Claude Code ends; return its exit code."""
        threading.Thread(target=self._relay, daemon=True).start()
        while self._process.poll() is None and not self._is_over.wait(POLL_SECONDS):
            self._read_files()
        self._close()
        return self._process.wait()

    def _relay(self) -> None:
        left = b""
        while content := os.read(0, BLOCK_BYTES):  # sys.stdin's lock would outlive the main thread
            *lines, left = (left + content).split(b"\n")
            for line in lines:
                self._write(line + b"\n")
        self._is_over.set()

    def _read_files(self) -> None:
        try:
            names = sorted(name for name in os.listdir(self._input) if name.endswith(".json"))
        except FileNotFoundError:
            return
        for name in names:
            path = f"{self._input}/{name}"
            with open(path, "rb") as file:
                content = file.read()
            os.unlink(path)
            record = prompt_record(content)
            if record is not None:
                self._write(json.dumps(record).encode() + b"\n")
        if os.path.lexists(f"{self._input}/{CLOSE}"):
            os.unlink(f"{self._input}/{CLOSE}")
            self._is_over.set()

    def _write(self, line: bytes) -> None:
        stdin = self._process.stdin
        with self._lock:
            if stdin is not None and not stdin.closed:
                try:
                    stdin.write(line)
                    stdin.flush()
                except BrokenPipeError:
                    self._is_over.set()

    def _close(self) -> None:
        stdin = self._process.stdin
        with self._lock:
            if stdin is not None and not stdin.closed:
                try:
                    stdin.close()
                except BrokenPipeError:
                    pass


def prompt_record(content: bytes) -> dict[str, Any] | None:
    """Return the record for Claude Code's stdin, None if a file is not a prompt."""
    try:
        message = json.loads(content)
    except ValueError:
        return None
    if not isinstance(message, dict) or not isinstance(message.get("text"), str):
        return None
    record = {
        "type": "user",
        "message": {"role": "user", "content": message["text"]},
        "parent_tool_use_id": None,
        "session_id": "default",
        "client_composed": True,
    }
    return {**record, "uuid": message["uuid"]} if message.get("uuid") else record


if __name__ == "__main__":
    sys.exit(Runner(sys.argv[1], sys.argv[2:]).run())
