"""`python -m bench`: measures the hook and the reader against their limits, and prints a table.

Ratios are those of one run: each measured run is preceded by one of a bare interpreter (`python -I
-c pass`, whole process, the interpreter that runs this), and the medians of both are compared.

`--list` lists the cases, `--check` exits with 1 if a limit is exceeded, `--cpu` counts the time of
the processor, for a machine that is busy; `--transcripts DIR` makes the sessions of those in DIR,
`--keep DIR` builds the homes there and leaves them.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from .cases import CASES, Case, Stage
from .command import run
from .report import Row, as_json, as_table, rows_of
from .scenes import install
from .scratch import remove_tree, scratch_directory
from .sources import copied, generated
from .stopwatch import Command, CommandError, Stopwatch

SEED = 7
RUNS_FOR_SCALE = 15


def main(
    *cases: str,
    list: bool = False,
    json: bool = False,
    check: bool = False,
    runs: int = 60,
    cpu: bool = False,
    transcripts: Path | None = None,
    keep: Path | None = None,
) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded, or if a case could not be run."""
    unknown = set(cases) - {case.name for case in CASES}
    if unknown:
        print(
            f"bench: no such case: {', '.join(sorted(unknown))}; --list lists them", file=sys.stderr
        )
        return 2
    if list:
        for case in CASES:
            print(f"{case.name:20} {case.title} (at most {case.limit} x)")
        return 0
    chosen = [case for case in CASES if not cases or case.name in cases]
    try:
        with (
            nullcontext(keep) if keep else scratch_directory() as root,
            Stopwatch(of_processor=cpu) as stopwatch,
        ):
            rows = _measure(chosen, root, stopwatch, runs, transcripts, is_kept=bool(keep))
    except (CommandError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(
        as_json(rows, runs) if json else as_table(rows, runs, "processor times" if cpu else "times")
    )
    return 1 if check and any(row.is_over for row in rows) else 0


def _measure(
    cases: Sequence[Case],
    root: Path,
    stopwatch: Stopwatch,
    runs: int,
    transcripts: Path | None,
    *,
    is_kept: bool,
) -> list[Row]:
    """Return the rows of cases, then those for scale."""
    rows: list[Row] = []
    app = install(root / "program")
    for case in cases:
        # Each case has a source of its own, so its transcripts do not depend on the cases before
        # it.
        stage = Stage(
            root / case.name,
            app,
            copied(transcripts) if transcripts else generated(SEED),
            stopwatch,
        )
        print(f"{case.title} ...", file=sys.stderr)
        setup = case.set_up(stage)
        rows += rows_of(
            case,
            *stopwatch.compare(setup.command, setup.reference, runs, setup.before, setup.check),
        )
        if not is_kept:
            remove_tree(stage.root)  # which a search for conflicts may still write to
    for title, command in _for_scale(root).items():
        bare = Command([sys.executable, "-I", "-c", "pass"], command.environment)
        measured, reference = stopwatch.compare(command, bare, RUNS_FOR_SCALE)
        rows.append(Row(title, measured.seconds, reference.seconds, "bare"))
    return rows


def _for_scale(home: Path) -> dict[str, Command]:
    """What else starts for a prompt, as far as it is there."""
    environment = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "DISABLE_AUTOUPDATER": "1",
    }
    commands = {"for scale: python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"]}
    node = shutil.which("node")
    if node:
        commands["for scale: node -e 0"] = [node, "-e", "0"]
    sdk = importlib.util.find_spec("claude_agent_sdk")
    claude = Path(sdk.origin).parent / "_bundled" / "claude" if sdk and sdk.origin else None
    if claude and claude.exists():
        commands["for scale: claude --version"] = [str(claude), "--version"]
    return {title: Command(arguments, environment) for title, arguments in commands.items()}


if __name__ == "__main__":
    run(main)
