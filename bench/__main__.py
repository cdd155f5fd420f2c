"""`python -m bench`: measures the hook and the reader against their limits, and prints a table.

Ratios are those of one run: each measured run is preceded by one of a bare interpreter (`python -I -c pass`, whole
process, the interpreter that runs this), and the medians of both are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

from .cases import CASES, Case, Stage
from .report import Row, as_json, as_table, rows_of
from .scenes import install
from .sources import copied, generated
from .stopwatch import Command, CommandError, Stopwatch

SEED = 7
RUNS = 60
RUNS_FOR_SCALE = 15


def main() -> int:
    """Returns the exit code: 1 where a limit was exceeded and that was to be checked, or a case could not be run."""
    options = _options()
    if options.list:
        for case in CASES:
            print(f"{case.name:20} {case.title} (at most {case.limit} x)")
        return 0
    root = options.keep or Path(tempfile.mkdtemp(prefix="session-memory-bench-"))
    try:
        rows = _measure(options, root)
    except (CommandError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.keep:
            shutil.rmtree(root)
    times = "processor times" if options.cpu else "times"
    print(as_json(rows, options.runs) if options.json else as_table(rows, options.runs, times))
    return 1 if options.check and any(row.is_over for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="what to measure (everything)")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is exceeded")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"how often each case is run ({RUNS})")
    parser.add_argument("--cpu", action="store_true", help="count the processor's time: for a machine that is busy")
    parser.add_argument("--transcripts", type=Path, metavar="DIR", help="make the sessions of the transcripts in DIR")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="build the homes in DIR, which is new, and leave them")
    options = parser.parse_args()
    unknown = set(options.cases) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; --list lists them")
    return options


def _measure(options: argparse.Namespace, root: Path) -> list[Row]:
    """The rows of the cases that were asked for, then those for scale."""
    rows: list[Row] = []
    app = install(root / "program")
    with Stopwatch(of_processor=options.cpu) as stopwatch:
        for case in CASES:
            if not options.cases or case.name in options.cases:
                # A source of its own: no case gets other transcripts because of those before it.
                source = copied(options.transcripts) if options.transcripts else generated(SEED)
                rows += _measure_case(case, Stage(root / case.name, app, source, stopwatch), options)
        for title, command in _for_scale(root).items():
            bare = Command([sys.executable, "-I", "-c", "pass"], command.environment)
            own, reference = stopwatch.compare(command, bare, RUNS_FOR_SCALE, lambda: None, lambda stdout: None)
            rows.append(Row(title, own.seconds, reference.seconds, "bare"))
    return rows


def _measure_case(case: Case, stage: Stage, options: argparse.Namespace) -> list[Row]:
    print(f"{case.title} ...", file=sys.stderr)
    setup = case.set_up(stage)
    times = stage.stopwatch.compare(setup.command, setup.reference, options.runs, setup.before, setup.check)
    if not options.keep:
        shutil.rmtree(stage.root)
    return rows_of(case, *times)


def _for_scale(home: Path) -> dict[str, Command]:
    """What else starts for a prompt, as far as it is there."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "DISABLE_AUTOUPDATER": "1"}
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
    sys.exit(main())
