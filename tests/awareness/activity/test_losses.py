"""docs/measured/lost-work.md lists git commands that lose another session's work, and the remedies. Cells that are drawn, or with `--all` all, are played again with real git."""

from __future__ import annotations

import random
import re

import pytest
import share
from losses import COMMANDS, PAGE, PLACES, STATES, Cell, cells, play

ROW = re.compile(r"^\| `(.+?)` \| ([\w -]+) \| (\w+) \| .* \|$", re.MULTILINE)


def written() -> dict[Cell, str]:
    """Return the rows of the page by their cells."""
    return {
        Cell(row[1].replace("\\|", "|"), row[2], row[3]): row[0]
        for row in ROW.finditer(PAGE.read_text())
        if row[2] in PLACES and row[3] in STATES
    }


def drawn(chance: random.Random) -> list[Cell]:
    """Return cells of three places and states: some that lose work, and some that do not."""
    losing, chosen = written(), []
    stages = sorted({(cell.place, cell.state) for cell in losing})
    for stage in chance.sample(stages, 3):
        here = [cell for cell in cells() if (cell.place, cell.state) == stage]
        lossy = [cell for cell in here if cell in losing]
        others = [cell for cell in here if cell not in losing]
        chosen += chance.sample(lossy, min(3, len(lossy))) + chance.sample(others, 2)
    return chosen


@pytest.mark.parametrize("place", PLACES if share.is_all else ["drawn"])
def test_the_page_says_what_happens(place: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = [cell for cell in cells() if cell.place == place] or drawn(random.Random(seed))
    played = {loss.cell: loss.row for loss in play(chosen)}
    expected = {cell: row for cell, row in written().items() if cell in chosen}
    assert played == expected, f"seed {seed}; python -m tests.losses writes the page"


def test_the_page_counts_its_rows() -> None:
    text = PAGE.read_text()
    rows = [row.split(" | ")[-3:] for row in written().values()]
    asked = sum(row[0] == "yes" for row in rows)
    told = sum(row[1] != "-" for row in rows)
    assert f"- cells that lose work: {len(rows)}\n" in text
    assert f"- asked before, with `collisions: ask`: {asked}\n" in text
    assert f"- told with the victim's next prompt: {told}\n" in text


def test_the_page_knows_only_cells_that_there_are() -> None:
    assert set(written()) <= set(cells())
    assert f"plays {len(cells()):,} cells" in PAGE.read_text()
    assert f"{len(COMMANDS)} commands, {len(PLACES)} places" in PAGE.read_text()


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("git read-tree -u --reset HEAD", "uncommitted"),
        ("git checkout-index -f -a", "uncommitted"),
        ("git diff | git apply -R", "uncommitted"),
        ("git checkout -q -B work main", "commit"),
    ],
)
def test_a_rare_command_over_uncommitted_work_is_asked_told_and_rescued(
    command: str, state: str
) -> None:
    (loss,) = play([Cell(command, "same clone", state)])
    assert loss.is_asked
    assert command.rpartition("| ")[2] in loss.line
    assert loss.rescued
