"""`python -m bench.archive`: archiving a transcript, compared with decoding its lines.

Archiving includes redaction; orjson decodes every line. Both run in this process, one after the
other, on the same file. The medians of their processor time are compared, because other work on the
machine affects the elapsed time. `--transcripts DIR` uses real transcripts: first joined as one of Claude
Code, then each as its own runtime's. `--peers` also races the tools from PyPI that turn Claude
Code's transcripts into text, as whole processes, each in its own environment (this needs a package
index).
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

from session_memory.common.system.files import Opened
from session_memory.history.archives.format import ArchiveStyle
from session_memory.history.archives.list import KnownArchives
from session_memory.history.archives.writer import ArchiveSource, write_archive
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.detection import runtime_of
from session_memory.sessions.runtimes.table import runtime

from .command import run
from .report import Row, as_table
from .scenes import REPOSITORY
from .scratch import scratch_directory
from .sources import copied, decode, generated
from .stopwatch import seconds

RUNS_OF_PEERS = 2
LIMIT = 2.0  # times the time of decoding: half its rate
LIMIT_OF_EACH = 4.8  # the same for many short transcripts
MEGABYTE = 1024 * 1024
# The package to install, and the command that converts the session {file} below the home into
# {out}.
PEERS = {
    "claude-conversation-extractor==1.1.2": ["claude-extract", "--all", "--output", "{out}"],
    "claude-code-transcripts==0.6": [
        "claude-code-transcripts",
        "json",
        "{file}",
        "--output",
        "{out}",
    ],
    "claude-code-log==1.7.0": [
        "claude-code-log",
        "{file}",
        "--output",
        "{out}/log.md",
        "--no-cache",
    ],
}
OURS = (
    "import sys; from session_memory.cli import main; sys.exit(main(['archive', '--all', "
    "'--home', sys.argv[1]]))"
)


def main(
    megabytes: int = 100, runs: int = 5, transcripts: Path | None = None, peers: bool = False
) -> int:
    source = copied(transcripts) if transcripts else generated(seed=7)
    with scratch_directory() as root:
        project = root / ".claude" / "projects" / "-home-dev-alpha"
        transcript = source(project, megabytes * MEGABYTE, time.time() - 3600)
        rows = [against_orjson(root, transcript, runs)]
        if transcripts:
            rows.append(each_against_orjson(root, transcripts, runs))
        print(as_table(rows, runs, "processor times"))
        if peers:
            print(as_table(against_peers(root, transcript), RUNS_OF_PEERS, "times"))
        return int(any(row.is_over for row in rows))


def against_orjson(root: Path, transcript: Path, runs: int) -> Row:
    """The processor time to archive against that to decode every line."""
    archiving, decoding = [], []
    for number in range(runs):
        source = ArchiveSource(f"session-{number}", str(transcript), runtime("agent-sdk"))
        archive = partial(write_archive, source, str(root / "archives"), ArchiveStyle(), 0.0)
        archiving.append(seconds(archive, time.process_time))
        decoding.append(seconds(partial(decode, [transcript]), time.process_time))
    rate = transcript.stat().st_size / 1e6 / median(archiving)
    return Row(
        f"archiving {rate:.0f} MB/s",
        median(archiving),
        median(decoding),
        "orjson, every line",
        LIMIT,
    )


def each_against_orjson(root: Path, transcripts: Path, runs: int) -> Row:
    """The time to archive each transcript as its runtime's against that to decode every line."""
    runtimes: dict[Path, Runtime] = {}
    for path in sorted(transcripts.rglob("*.jsonl")):
        with Opened(str(path)) as descriptor:
            if runtime_of_path := runtime_of(descriptor):
                runtimes[path] = runtime_of_path
    archiving, decoding = [], []
    for number in range(runs):
        archive = partial(_archive_each, runtimes, root / f"each-{number}")
        archiving.append(seconds(archive, time.process_time))
        decoding.append(seconds(partial(decode, runtimes), time.process_time))
    return Row(
        f"archiving {len(runtimes)} one by one",
        median(archiving),
        median(decoding),
        "orjson, every line",
        LIMIT_OF_EACH,
    )


def _archive_each(runtimes: dict[Path, Runtime], directory: Path) -> None:
    known = KnownArchives()
    for number, (path, runtime_of_path) in enumerate(runtimes.items()):
        source = ArchiveSource(f"session-{number}", str(path), runtime_of_path)
        write_archive(source, str(directory), ArchiveStyle(), 0.0, known=known)


def against_peers(root: Path, transcript: Path) -> list[Row]:
    """Measure each peer's process against `session-memory archive --all`.

    Raises CalledProcessError."""
    ours = [sys.executable, "-c", OURS, str(root / ".claude")]
    our_seconds = _process_seconds(ours, root, REPOSITORY)
    rows = [Row("session-memory archive --all", our_seconds, our_seconds, "itself")]
    for requirement, arguments in PEERS.items():
        print(f"{requirement} ...", file=sys.stderr)
        environment = root / requirement.partition("==")[0]
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", requirement], check=True)
        out = root / f"{environment.name}-out"
        out.mkdir()
        program, *options = [argument.format(file=transcript, out=out) for argument in arguments]
        theirs = _process_seconds([str(environment / "bin" / program), *options], root, root)
        written = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        rows.append(
            Row(
                f"{requirement}, {written / 1e6:.1f} MB written",
                theirs,
                our_seconds,
                "session-memory",
            )
        )
    return rows


def _process_seconds(command: list[str], home: Path, directory: Path) -> float:
    return median([seconds(partial(_run, command, home, directory)) for _ in range(RUNS_OF_PEERS)])


def _run(command: list[str], home: Path, directory: Path) -> None:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    subprocess.run(
        command,
        cwd=directory,
        env=environment,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    run(main)
