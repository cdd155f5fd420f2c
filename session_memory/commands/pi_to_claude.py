"""scripts/pi_to_claude.py: makes transcripts of Claude Code of Pi's session files."""

from __future__ import annotations

import argparse
import os
import sys

from ..errors import SessionMemoryError
from ..runtimes.pi.conversion import write_converted
from ..system.terminal import exit_code
from ..text.format import counted
from .arguments import transcripts_below

DESCRIPTION = "Converts Pi's session files to transcripts of Claude Code: DIR/<project>/<session>.jsonl."


def main(words: list[str] | None = None) -> int:
    """Run the command; return the exit code: 1 if something could not be converted."""
    parser = argparse.ArgumentParser(prog="pi_to_claude", description=DESCRIPTION)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a session file, or a directory with some below it")
    parser.add_argument("--out", metavar="DIR", required=True, help="the output directory, for ingest --dir DIR")
    arguments = parser.parse_args(words)
    return exit_code(lambda: _convert_all(arguments.paths, os.path.abspath(arguments.out)))


def _convert_all(paths: list[str], out: str) -> int:
    written = unchanged = failed = 0
    for path in transcripts_below(paths):
        try:
            is_new = write_converted(path, out)
        except (SessionMemoryError, OSError) as error:
            failed += 1
            print(f"pi_to_claude: {error}", file=sys.stderr)
        else:
            written, unchanged = written + is_new, unchanged + (not is_new)
    more = f", {unchanged} as they were" if unchanged else ""
    print(f"{counted(written, 'session')} written to {out}{more}.")
    return 1 if failed or not (written or unchanged) else 0
