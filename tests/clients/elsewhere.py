"""Runtimes that use Claude Code's plugin, for somebody who uses both in the same project."""

from __future__ import annotations

from pathlib import Path

from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer
from install_machine import PYTHON, agent_home, compiled_copy_of_repository
from records import exchange, new_id, write

from session_memory.sessions.runtimes.claude import encode_cwd

# the fake model repeats the beginning of a prompt, not all of this
TOLD = r"- \"tidy the docs\" (Claude Code, "


class Elsewhere:
    """Another runtime, and the copy of the repository that it takes the plugin from."""

    def __init__(self, runtime: OtherRuntime, source: Path, root: Path) -> None:
        self.runtime = runtime
        self.source = source
        python = root / "bin" / "python3"
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
        python.chmod(0o755)
        runtime.environment["PATH"] = f"{python.parent}:{runtime.environment['PATH']}"
        agent_home(runtime.project)


def has_worked_in_claude_code(runtime: OtherRuntime) -> None:
    folder = runtime.home / ".claude" / "projects" / encode_cwd(str(runtime.project))
    write(
        folder / f"{new_id()}.jsonl", *exchange("tidy the docs", "Done.", cwd=str(runtime.project))
    )


def elsewhere(
    kind: type[OtherRuntime], place: Path, root: Path, model: LoopbackServer
) -> Elsewhere:
    return Elsewhere(kind(root, place, model), compiled_copy_of_repository(root / "copy"), root)
