"""`python -m bench.research.public build REPOSITORY...`: makes task files from public clones.

`python -m bench.research.public score CLONE... --tool COMMAND` asks a tool the questions of the
task files whose commits the clones have, and prints how many answers are right; `--each` adds a
table for each repository. `--baselines` adds the date alone, plain FTS5 (the program in README.md),
session-memory's commands, and agentsview and deja-vu if they are installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from ...command import run
from ...scratch import scratch_directory
from .scoring import Corpus, Grade, ToolError, asked, table
from .sources import Source
from .tasks import made, written

HERE = Path(__file__).parent
TASKS = HERE / "tasks"
WORKERS = 2


def main(
    *words: str,
    tasks: Path = TASKS,
    split: str = "",
    tool: list[str] = [],  # noqa: B006
    baselines: bool = False,
    agentsview: str = "agentsview",
    deja: str = "deja",
    each: bool = False,
) -> int:
    """Return the exit code.

    `words` are `build` or `score`, and clones; `each` adds a table for each repository."""
    clones = [Path(word) for word in words[1:]]
    if words[:1] == ("build",):
        return _build(clones, tasks, split)
    if words[:1] != ("score",):
        print(
            "bench.research.public: say `build CLONE...` or `score CLONE... --tool COMMAND`",
            file=sys.stderr,
        )
        return 2
    with scratch_directory() as place:
        tools = {command: command for command in tool}
        if baselines:
            tools |= dict(_baselines({"agentsview": agentsview, "deja": deja}, place))
        return _score(list(_matched(tasks, clones)), tools, each)


def _build(clones: list[Path], directory: Path, split: str) -> int:
    splits = dict(
        line.split("\t")[:2] for line in (HERE / "repositories.tsv").read_text().splitlines()[1:]
    )
    for clone in clones:
        name = Source(clone).name
        if not (split or name in splits):
            print(f"{name}: in no split; --split names one", file=sys.stderr)
            return 2
        print(written(made(clone, split or splits[name]), directory))
    return 0


def _score(corpora: list[tuple[dict[str, Any], Path]], tools: dict[str, str], each: bool) -> int:
    results: dict[str, dict[str, list[Grade]]] = {}
    seconds = dict.fromkeys(tools, 0.0)
    with ProcessPoolExecutor(WORKERS) as pool:
        jobs = [
            (tasks, name, pool.submit(_graded, tasks, clone, command))
            for tasks, clone in corpora
            for name, command in tools.items()
        ]
        for tasks, name, job in jobs:
            try:
                grades, spent = job.result()
            except ToolError as error:
                print(f"{tasks['repository']}: {error}", file=sys.stderr)
                continue
            for title in (tasks["split"], tasks["repository"]) if each else (tasks["split"],):
                results.setdefault(title, {}).setdefault(name, []).extend(grades)
            seconds[name] += spent
    for title, of_tools in results.items():
        names = sorted(
            tasks["repository"]
            for tasks, _ in corpora
            if title in (tasks["split"], tasks["repository"])
        )
        print(f"{title}: {', '.join(names)}\n\n{table(of_tools)}\n")
    print(
        "Processor seconds, with their index: "
        + ", ".join(f"{name} {spent:.0f}" for name, spent in seconds.items())
    )
    return 0 if results else 1


def _matched(directory: Path, clones: list[Path]) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield the tasks of each clone that has their commits."""
    for path in sorted(directory.glob("*/*.json")):
        tasks = json.loads(path.read_text())
        for clone in clones:
            if all(
                Source(clone).holds(tasks[name]) for name in ("head", "checkpoints") if tasks[name]
            ):
                yield tasks, clone
                break


def _graded(tasks: dict[str, Any], clone: Path, command: str) -> tuple[list[Grade], float]:
    """Return the grades of a tool in a repository, and the processor time that it took."""
    with scratch_directory() as root:
        corpus = Corpus(tasks, clone, root)
        before = _spent()
        return asked(command, corpus), _spent() - before


def _spent() -> float:
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _baselines(programs: dict[str, str], place: Path) -> Iterator[tuple[str, str]]:
    tools_program = f"{shlex.quote(sys.executable)} -m bench.research.public.tools"
    plain = place / "plain.py"
    plain.write_text(readme_program())
    yield "date alone", f"{tools_program} date"
    yield "plain FTS5", f"{shlex.quote(sys.executable)} {shlex.quote(str(plain))}"
    yield "files both changed", f"{tools_program} changed"
    yield "session-memory", f"{tools_program} ours"
    for name, program in programs.items():
        if path := shutil.which(program):
            yield name, f"{tools_program} {name} {shlex.quote(os.path.abspath(path))}"
        else:
            print(f"{name} is skipped: {program} is not on PATH", file=sys.stderr)


def readme_program() -> str:
    """Return the program in README.md."""
    match = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)
    assert match
    return match[1]


if __name__ == "__main__":
    run(main)
