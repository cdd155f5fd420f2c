"""`python -m bench.research.updates REPOSITORY... --play FILE`: replays public histories.

It runs a program (`--program DIR`) and writes its hook's updates to FILE. `--draw FILE FILE` draws
from two such files and prints the sheet to label. Without either, the published labels are counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ...scenes import REPOSITORY, SEED
from ...scratch import scratch_directory
from .replay import Told, histories
from .sheet import drawn, neutral, scores

COUNT = 200


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.research.updates", description=__doc__)
    parser.add_argument(
        "repositories", nargs="*", type=Path, metavar="REPOSITORY", help="a git directory"
    )
    parser.add_argument(
        "--program", type=Path, default=REPOSITORY, metavar="DIR", help="the program (this one)"
    )
    parser.add_argument("--play", type=Path, metavar="FILE", help="write what is told to FILE")
    parser.add_argument(
        "--draw", nargs="+", type=Path, metavar="FILE", help="draw from what two programs told"
    )
    parser.add_argument("--seed", type=int, default=SEED, metavar="N")
    parser.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"updates to draw ({COUNT})"
    )
    options = parser.parse_args()
    if options.play:
        _play(options.repositories, options.program.resolve(), options.play)
    elif options.draw:
        updates = {
            path.stem: [Told(*json.loads(line)) for line in path.open()] for path in options.draw
        }
        for _, update in drawn(updates, options.count, options.seed):
            print(
                f"{update.repository} {update.session} {update.number}",
                *neutral(update.text),
                "",
                sep="\n",
            )
    else:
        print(scores())
    return 0


def _play(repositories: list[Path], program: Path, file: Path) -> None:
    with file.open("w") as file_of_updates:
        for repository in repositories:
            with scratch_directory() as root:
                for history in histories(repository, root):
                    for update in history.play(program):
                        file_of_updates.write(json.dumps(update) + "\n")


if __name__ == "__main__":
    sys.exit(main())
