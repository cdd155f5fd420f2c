"""`python -m bench.research.updates.relevance REPOSITORY... --told FILE [FILE]`: how often updates
name the file that matters.

FILE is what `python -m bench.research.updates --play` wrote, one for each program. Counted are the
prompts with an update by any of the programs. A file matters if another session edited it in the
day before and the reader goes on to edit it, or if the prompt names it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...scratch import scratch_directory
from .replay import History, Told, histories
from .talks import PATCHED, Talk

DAY = 86_400
MOST_PROMPTS = 3  # up to which the reader's edits count, as in the rules for labels
_AROUND = "\"'`()[]{}<>,;:!?.@*…"


class Occasion(NamedTuple):
    """A prompt with an update, and the files that matter to it, relative to their worktree."""

    repository: str
    session: str
    number: int
    edited_next: frozenset[str]
    in_prompt: frozenset[str]


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m bench.research.updates.relevance", description=__doc__
    )
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPOSITORY")
    parser.add_argument("--told", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--misses", action="store_true", help="print the updates that name none")
    options = parser.parse_args()
    programs = [_told(path) for path in options.told]
    wanted = {key for texts in programs for key in texts}
    occasions = [
        occasion
        for repository in options.repositories
        for occasion in _occasions(repository, wanted)
    ]
    for path, texts in zip(options.told, programs):
        counts = [_count(occasions, texts, kind) for kind in ("edited_next", "in_prompt")]
        size = sum([len(text) for text in texts.values()])
        print(
            f"{path}: {len(texts)} updates of {size / max(1, len(texts)):.0f} characters; "
            f"a file that the reader edits next {counts[0]}, that the prompt names {counts[1]}"
        )
        for occasion in occasions if options.misses else ():
            _print_miss(occasion, texts)
    return 0


def _told(path: Path) -> dict[tuple[str, str, int], str]:
    """Return the texts by repository, session and number of the prompt."""
    updates = [Told(*json.loads(line)) for line in path.open()]
    return {(update.repository, update.session, update.number): update.text for update in updates}


def _count(occasions: list[Occasion], texts: dict[tuple[str, str, int], str], kind: str) -> str:
    counted = [occasion for occasion in occasions if getattr(occasion, kind)]
    named = [each for each in counted if names_any(texts.get(each[:3], ""), getattr(each, kind))]
    return f"{len(named)} of {len(counted)}"


def _print_miss(occasion: Occasion, texts: dict[tuple[str, str, int], str]) -> None:
    text = texts.get(occasion[:3], "")
    for kind in ("edited_next", "in_prompt"):
        paths = getattr(occasion, kind)
        if paths and not names_any(text, paths):
            print(*occasion[:3], kind, *sorted(paths)[:6])
            print(text or "nothing", end="\n\n")


def names_any(text: str, paths: frozenset[str]) -> bool:
    """Check if a line of an update names one of `paths`, perhaps by its last parts."""
    lines = [line for line in text.split("\n") if line.startswith(("- ", "! "))]
    words = {
        word.strip(_AROUND).replace("../", "").lstrip("/")
        for line in lines
        for word in line.split()
    }
    return any(f"/{path}".endswith(f"/{word}") for word in words if word for path in paths)


def _occasions(repository: Path, wanted: set[tuple[str, str, int]]) -> Iterator[Occasion]:
    with scratch_directory() as root:
        for history in histories(repository, root):
            edits = {talk.session: list(_edits(history, talk)) for talk in history.talks}
            for talk in history.talks:
                prompts = talk.prompts()
                for number, (line, prompt) in enumerate(prompts, 1):
                    if (history.name, talk.session, number) not in wanted:
                        continue
                    recent = {
                        path
                        for session, done in edits.items()
                        for time, path in done
                        if session != talk.session and line.time - DAY < time < line.time
                    }
                    after = prompts[number + MOST_PROMPTS - 1 :][:1]
                    until = after[0][0].time if after else float("inf")
                    done = {path for time, path in edits[talk.session] if line.time <= time < until}
                    names = _names_in(prompt.text)
                    yield Occasion(
                        history.name,
                        talk.session,
                        number,
                        frozenset(recent & done),
                        frozenset([path for path in recent if path.rpartition("/")[2] in names]),
                    )


def _names_in(prompt: str) -> set[str]:
    """Return the names with a dot inside in a prompt."""
    words = [word.strip(_AROUND).rpartition("/")[2] for word in prompt.split()]
    return {word for word in words if "." in word[1:-1]}


def _edits(history: History, talk: Talk) -> Iterator[tuple[float, str]]:
    """Yield when and which files a session edited."""
    for line in talk.lines:
        for call in talk.kind.calls(line):
            names = PATCHED.findall(call.text.replace("\\n", "\n")) if call.kind == "patch" else []
            if call.kind == "edit" and call.given.get("file_path"):
                names = [call.given["file_path"]]
            for name in names:
                yield line.time, history.relative(os.path.join(talk.cwd, name))


if __name__ == "__main__":
    sys.exit(main())
