"""`python -m bench.archive`: archiving a transcript, redaction included, against decoding every line of it with orjson.

Both run in this process, one after the other, on the same file. `--peers` also races the tools from PyPI that turn
Claude Code's transcripts into text, as whole processes, each in its own environment (needs a package index).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import orjson

from session_memory.archive import write_archive
from session_memory.archive_writing import Source, Style
from session_memory.runtimes import claude

from .report import Row, as_table
from .scenes import REPOSITORY
from .sources import copied, generated

RUNS = 5
LIMIT = 2.0  # times the time of decoding: half its rate
MEGABYTE = 1024 * 1024
# What is installed, and the command that converts the sessions below {home} into {out}.
PEERS = {
    "claude-conversation-extractor==1.1.2": ["claude-extract", "--all", "--output", "{out}"],
    "claude-code-transcripts==0.6": ["claude-code-transcripts", "json", "{file}", "-o", "{out}"],
    "claude-code-log==1.7.0": ["claude-code-log", "{project}", "--no-cache"],
}
OURS = (
    "import sys, time; from session_memory.cli import main; sys.exit(main(['archive', '--all', '--home', sys.argv[1]]))"
)


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.archive", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, metavar="N", help="the size of the transcript (100)")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"how often each is run ({RUNS})")
    parser.add_argument("--transcripts", type=Path, metavar="DIR", help="make it of the real transcripts in DIR")
    parser.add_argument("--peers", action="store_true", help="also race the tools from PyPI")
    options = parser.parse_args()
    source = copied(options.transcripts) if options.transcripts else generated(seed=7)
    with tempfile.TemporaryDirectory(prefix="session-memory-bench-") as name:
        root = Path(name)
        project = root / ".claude" / "projects" / "-home-dev-alpha"
        transcript = source(project, options.megabytes * MEGABYTE, time.time() - 3600)
        rows = [against_orjson(root, transcript, options.runs)]
        if options.peers:
            rows += against_peers(root, transcript, max(1, options.runs // 3))
        print(as_table(rows, options.runs))


def against_orjson(root: Path, transcript: Path, runs: int) -> Row:
    """The time to archive against the time to decode every line."""
    archiving, decoding = [], []
    for number in range(runs):
        source = Source(f"session-{number}", str(transcript), claude)
        archiving.append(_seconds(partial(write_archive, source, str(root / "archives"), Style(), 0.0)))
        decoding.append(_seconds(partial(decode, transcript)))
    rate = transcript.stat().st_size / 1e6 / median(archiving)
    return Row(f"archiving {rate:.0f} MB/s", median(archiving), median(decoding), "orjson, every line", LIMIT)


def decode(transcript: Path) -> None:
    """Decodes every line, which is the least that a program can do that looks at all of them."""
    with open(transcript, "rb", buffering=MEGABYTE) as file:
        for line in file:
            orjson.loads(line)


def against_peers(root: Path, transcript: Path, runs: int) -> list[Row]:
    """The time of each peer's process against that of `session-memory archive --all`. Raises CalledProcessError."""
    ours = [sys.executable, "-c", OURS, str(root / ".claude")]
    own = median([_seconds(partial(_run, ours, root, REPOSITORY)) for _ in range(runs)])
    rows = [Row("session-memory archive --all", own, own, "itself")]
    for requirement, arguments in PEERS.items():
        environment = root / requirement.partition("==")[0]
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", requirement], check=True)
        places = {"out": root / f"{environment.name}-out", "file": transcript, "project": transcript.parent}
        command = [argument.format(**places) for argument in arguments]
        command[0] = str(environment / "bin" / command[0])
        theirs = median([_seconds(partial(_run, command, root, root)) for _ in range(runs)])
        rows.append(Row(requirement, theirs, own, "session-memory"))
    return rows


def _run(command: list[str], home: Path, directory: Path) -> None:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
