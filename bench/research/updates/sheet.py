"""The sheet for a labeller: drawn updates of all programs in one form, and their ratings.

The draw has a seed. Labels are a TSV with a row for each update and each collision: repository,
session, number of the prompt, program, part (`update`, or `! ` and its kind), and label. `copy` and
`unjudged` are not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest
from math import sqrt
from pathlib import Path
from random import Random

from .replay import Told

LABELS = Path(__file__).with_name("labels.tsv")
GRADES = ("useful", "weak", "noise", "misleading")
UNCOUNTED = ("copy", "unjudged")
_SESSION = re.compile(r"- (?P<name>.+?) \((?P<facts>[^()]*\bmessages?)\)(?:: (?P<rest>.*))?$")
_RUNTIME = re.compile(r"(?:, |^)(Codex|Claude Code)(?=, |$)")


def drawn(updates: dict[str, list[Told]], count: int, seed: int) -> list[tuple[str, Told]]:
    """Draw `count` updates of all programs, and mix them.

    They are equally many for each program, and for each repository while it has more."""
    chance = Random(seed)
    sample = []
    for program, every in sorted(updates.items()):
        by_repository: dict[str, list[Told]] = {}
        for update in chance.sample(every, len(every)):
            by_repository.setdefault(update.repository, []).append(update)
        rounds = zip_longest(*(by_repository[name] for name in sorted(by_repository)))
        mixed = [update for turn in rounds for update in turn if update is not None]
        sample += [(program, update) for update in mixed[: count // len(updates)]]
    chance.shuffle(sample)
    return sample


def neutral(text: str) -> list[str]:
    """Return the lines of an update without signs of the program.

    Such signs are the header, quotation marks around names, and the order of fields."""
    lines = []
    for line in text.split("\n"):
        match = _SESSION.match(line)
        if match:
            name, facts = match["name"], match["facts"]
            runtime = _RUNTIME.search(facts)
            if runtime:
                facts = _RUNTIME.sub("", facts).removeprefix(", ")
            is_codex = bool(runtime and runtime[1] == "Codex") or name.startswith("codex: ")
            name = name.removeprefix("codex: ").replace('"', "")
            remainder = (match["rest"] or "").replace(" -> ", "; ")
            lines.append(
                f"session {name} | {'Codex' if is_codex else 'Claude'} | {facts} | {remainder}"
            )
        elif line.startswith("! "):
            lines.append("collision " + _collision(line[2:]))
        elif line.startswith("+"):
            lines.append(line)
    return lines


def _collision(line: str) -> str:
    """Return the file, session, time and order of a collision, which both forms have."""
    sentence = re.sub(r" \((?:Codex|Claude Code)\)|codex: ", "", line).replace('"', "")
    old = re.match(
        r"(.+?): (.+) ((?:edited|removed or moved) )(?:it|them) (just now|\S+ ago), (.*)$", sentence
    )
    new = re.match(
        r"(.+?): ((?:edited|removed or moved) )(just now|\S+ ago) by (.+), (.*)$", sentence
    )
    if old:
        return " | ".join((old[1], old[2], old[3] + old[4], old[5]))
    return " | ".join((new[1], new[4], new[2] + new[3], new[5])) if new else sentence


def kind_of(line: str) -> str:
    """Return the kind of a line about a collision."""
    if line.startswith(("! branch", "! HEAD")):
        return "head"
    if "not committed" in line:
        return "taken"
    order = re.search(r"(after|before) you (read|edited|did)?", line)
    return f"{order[1]} you {order[2] or 'did'}" if order else "edited"


def scores(path: Path = LABELS) -> str:
    """Return a table of the labels, with intervals of 95 %.

    It has updates by grade, and collisions by kind."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    rows = [row for row in rows if row[5] not in UNCOUNTED]
    lines = [
        "| program | updates | " + " | ".join(GRADES) + " |",
        "|---|---|" + "---|" * len(GRADES),
    ]
    for program in sorted({row[3] for row in rows}):
        counts = Counter(row[5] for row in rows if row[3] == program and row[4] == "update")
        shares = " | ".join(share(counts[grade], counts.total()) for grade in GRADES)
        lines.append(f"| {program} | {counts.total()} | {shares} |")
    lines += ["", "| program | collision | lines | true |", "|---|---|---|---|"]
    kinds = Counter((row[3], row[4]) for row in rows if row[4] != "update")
    for (program, kind), count in sorted(kinds.items()):
        true = sum(row[3:6] == [program, kind, "true"] for row in rows)
        lines.append(f"| {program} | {kind} | {count} | {share(true, count)} |")
    return "\n".join(lines)


def share(part: int, whole: int) -> str:
    """Return a share with Wilson's interval of 95 %: `75 % (66-82)`."""
    if not whole:
        return "-"
    z, p = 1.96, part / whole
    middle = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return f"{part} = {p:.0%} ({max(0.0, middle - half):.0%} to {min(1.0, middle + half):.0%})"
