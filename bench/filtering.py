"""`python -m bench.filtering`: how much less a model has to read of transcripts once they are filtered, how quickly.

What is counted is what `session-memory filter` counts. Each setting that keeps less is measured beside the default.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from session_memory.memories.reduction import Reduction, measured
from session_memory.settings.sections import Filtering, MemorySettings

from .command import run
from .real import TRANSCRIPTS

SETTINGS = {
    "default": Filtering(),
    "parameters uncapped": Filtering(max_parameter_chars=10**6),
    "without tool structure": Filtering(keep_tool_structure=False),
    "user messages only": Filtering(keep_tool_structure=False, keep_agent_responses=False),
}


def main(*directories: Path) -> int:
    given = directories or (TRANSCRIPTS / "claude", TRANSCRIPTS / "pi")
    if not all(directory.is_dir() for directory in given):
        print("no transcripts there: name directories that hold some", file=sys.stderr)
        return 1
    print("| transcripts | kept | characters before | after | less | of the files | MB/s |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for directory in given:
        for name, filtering in SETTINGS.items():
            print(row(directory, name, MemorySettings(filtering=filtering)))
    return 0


def row(directory: Path, name: str, settings: MemorySettings) -> str:
    """A line of the table for all transcripts below a directory."""
    total = Reduction()
    began = time.perf_counter()
    for path in sorted(directory.rglob("*.jsonl")):
        total = total.plus(measured(str(path), settings) or Reduction())
    rate = total.file_bytes / 1e6 / (time.perf_counter() - began)
    sizes = f"{total.characters_before:,} | {total.characters_after:,} | {total.reduction:.1%}"
    of_files = 1 - total.characters_after / total.file_bytes if total.file_bytes else 0.0
    return f"| {directory.name} | {name} | {sizes} | {of_files:.1%} | {rate:.0f} |"


if __name__ == "__main__":
    run(main)
