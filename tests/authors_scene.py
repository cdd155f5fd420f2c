"""Sessions that really run commands and edit files in a repository, with matching transcripts.

Tests ask who wrote a line.
"""

from __future__ import annotations

import json
import subprocess
import time
from copy import copy
from pathlib import Path
from typing import Any

from git_scene import GIT_ENVIRONMENT, git, repository
from own_process import plain_environment, run_here
from records import append, assistant, codex_exchange, codex_item, codex_line, new_id, user, write

from session_memory.sessions.runtimes.claude import encode_cwd

CODEX, CLAUDE = "codex", "claude-code"


def next_second() -> None:
    """Lets git's clock, which counts in seconds, go on."""
    time.sleep(1.0 - time.time() % 1 + 0.02)


class Authors:
    """A person with a repository on the branch `work` and a worktree on the branch `other`."""

    def __init__(self, path: Path, **files: str) -> None:
        self.home = path / "home"
        (self.home / ".claude" / "projects").mkdir(parents=True)
        self.root, self.linked = repository(path / "mini", **files), path / "mini-wt"
        git(self.root, "worktree", "add", "-q", "-b", "other", str(self.linked))
        git(self.root, "switch", "-q", "-c", "work")

    def session(
        self, runtime: str, request: str, directory: Path | None = None, *, ago: float = 0
    ) -> Author:
        return Author(self, runtime, request, directory or self.root, ago)

    def run(self, *words: str, cwd: Path | None = None) -> str:
        return run_here([*words], plain_environment(self.home), cwd or self.root).stdout

    def conflicts(self) -> list[str]:
        """The lines for sessions in the linked worktree."""
        said = self.run("conflicts", cwd=self.linked)
        _, _, here = said.partition(f"{self.linked}\n")
        return [line for line in here.splitlines() if line.startswith("a.txt")]

    def why(self, target: str, cwd: Path | None = None) -> str:
        return self.run("why", target, cwd=cwd)

    def named(self, target: str) -> tuple[str, str]:
        """Return the attributed session, and how: "lines", "command", "commit" or "guess"; or ('', '')."""
        [reason, *_] = json.loads(self.run("why", target, "--json"))["reasons"]
        if asked := reason["asked"]:
            by_command = "commit" if reason["is_by_commit"] else "command"
            return asked["session"], by_command if asked["command"] else "lines"
        guess = reason["guess_by_time"]
        return (guess["session"], "guess") if guess else ("", "")


class Author:
    """A session in a directory, which began with a request so many seconds `ago`."""

    def __init__(
        self, authors: Authors, runtime: str, request: str, directory: Path, ago: float
    ) -> None:
        self.runtime, self.directory, self.id = runtime, directory, new_id()
        self.fields: dict[str, Any] = {"cwd": str(directory), "sessionId": self.id}
        at = time.time() - ago
        if runtime == CODEX:
            folder = authors.home / ".codex" / "sessions" / "2026" / "11" / "28"
            self.path = folder / f"rollout-2026-11-28T10-00-00-{self.id}.jsonl"
            header = {
                "id": self.id,
                "session_id": self.id,
                "cwd": str(directory),
                "thread_source": "user",
            }
            begun = [
                codex_line("session_meta", header, at=at),
                *codex_exchange(request, "Yes.", cwd=str(directory), at=at),
            ]
            write(self.path, *begun)
        else:
            self.path = (
                authors.home
                / ".claude"
                / "projects"
                / encode_cwd(str(directory))
                / f"{self.id}.jsonl"
            )
            write(self.path, user(request, at=at, **self.fields))

    def says(self, text: str) -> None:
        append(
            self.path,
            assistant(text, **self.fields) if self.runtime == CLAUDE else self._message(text),
        )

    def append(self, record: dict[str, Any]) -> None:
        append(self.path, record)

    def shell(self, command: str) -> str:
        """Runs a command line; what it printed."""
        began = time.time()
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=GIT_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr
        if self.runtime == CODEX:
            call = {
                "type": "custom_tool_call",
                "call_id": new_id(),
                "name": "exec",
                "input": "await tools.exec_command()",
            }
            item = {
                "type": "CommandExecution",
                "id": f"exec-{new_id()}",
                "command": ["/bin/bash", "-lc", command],
                "cwd": f"file://{self.directory}",
                "status": "completed" if done.returncode == 0 else "failed",
                "exit_code": done.returncode,
                "aggregated_output": output,
            }
            append(self.path, codex_line("response_item", call, at=began), codex_item(item))
        else:
            self._call("Bash", {"command": command}, began, output, failed=done.returncode != 0)
        return output

    def edit(self, name: str, old: str, new: str, *, fails: bool = False) -> None:
        """Replaces a text in a file by an editing tool, or is refused."""
        began, path = time.time(), self.directory / name
        if not fails:
            path.write_text(path.read_text().replace(old, new))
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        self._call(
            "Edit", given, began, "String to replace not found." if fails else "Done.", failed=fails
        )

    def sub_agent(self, request: str, directory: Path | None = None) -> Author:
        """A sub-agent that this session of Claude Code starts, perhaps in another directory;
        `goes_on` ends it."""
        given = {"description": request, "prompt": request, "subagent_type": "general-purpose"}
        append(self.path, assistant(("Agent", given), **self.fields))
        agent = copy(self)
        agent.directory = directory or self.directory
        agent.fields = {
            **self.fields,
            "cwd": str(agent.directory),
            "isSidechain": True,
            "agentId": new_id()[:8],
        }
        agent.path = (
            self.path.with_suffix("") / "subagents" / f"agent-{agent.fields['agentId']}.jsonl"
        )
        write(agent.path, user(request, **agent.fields))
        return agent

    def goes_on(self) -> None:
        """Takes the answer of its sub-agent, and ends its turn."""
        content = [
            block
            for line in self.path.read_text().splitlines()
            for block in _blocks(json.loads(line))
        ]
        [*_, started] = [block["id"] for block in content if block.get("name") == "Agent"]
        result = {"type": "tool_result", "tool_use_id": started, "content": "It is done."}
        append(self.path, user([result], **self.fields))
        self.says("Done.")

    def _call(
        self, tool: str, given: dict[str, Any], began: float, output: str, *, failed: bool
    ) -> None:
        call = assistant((tool, given), at=began, **self.fields)
        result = {
            "type": "tool_result",
            "tool_use_id": call["message"]["content"][0]["id"],
            "content": output,
        }
        append(self.path, call, user([{**result, "is_error": failed}], **self.fields))

    def _message(self, text: str) -> dict[str, Any]:
        return codex_item(
            {"type": "AgentMessage", "id": new_id(), "content": [{"type": "Text", "text": text}]}
        )


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record.get("message", {}).get("content")
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
