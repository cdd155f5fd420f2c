"""The proof in words, for the command and the page.

It has counts and comparisons, and makes no claim about events that did not happen.
"""

from typing import Any, NamedTuple

from ...common.text.format import counted, enumerated, share_of
from ...common.text.timestamps import iso_time, local_time
from ...history.told_lines import CONFLICT, FILE, KINDS
from ._comparison import FEW, Tally
from ._proof import ARMS, TOLD, Proof

HEEDED = "Read the file again, or its diff, before the next edit"
TOO_FEW = f"too few to compare: fewer than {FEW} moments on one side"
# the time of a prompt or an edit with nothing new: docs/measured/performance.md
HOOK_MILLISECONDS = 11


class Row(NamedTuple):
    """The moments of one arm.

    It has the name, label and counts, how many more moments `left_alone` the file, and the
    comparison with the told moments."""

    arm: str
    label: str
    tally: Tally
    left_alone: int
    verdict: str

    @property
    def heeded(self) -> str:
        return f"{self.tally.heeded} of {self.tally.cases}"

    @property
    def interval(self) -> str:
        low, high = self.tally.interval
        return f"{low:.0%} to {high:.0%}" if self.tally.cases else ""


def rows_of(proof: Proof) -> list[Row]:
    """Return the arms that have moments."""
    return [
        Row(arm, label, proof.arms[arm], proof.left_alone[arm], _verdict(proof, arm))
        for arm, label in ARMS.items()
        if proof.arms[arm].cases or proof.left_alone[arm]
    ]


def told_lines(proof: Proof) -> list[str]:
    """Return the reports, and how many proved right."""
    sums = proof.told
    if not (sums.updates or sums.memories or sums.paths):
        return ["No transcript here shows an update: see session-memory doctor."]
    memories = f" and {sums.memories:,} with memories" if sums.memories else ""
    since, shown = local_time((proof.installed_at or 0) / 1000), enumerated(sorted(sums.runtimes))
    lines = [
        f"{counted(sums.updates, 'update')}{memories}, about {sums.tokens:,} tokens, since "
        f"{since}. {sums.arrived:,} "
        f"arrived: the transcript shows the text, and the conversation continued from it ({shown})."
    ]
    number = sum(sums.lines.values())
    kinds = [
        f"{sums.lines[kind]:,} about {words}" for kind, words in KINDS.items() if sums.lines[kind]
    ]
    lines.append(
        f"{counted(number, 'line')} with `!` arrived{': ' + enumerated(kinds) if kinds else ''}."
    )
    if sums.lines[FILE]:
        lines.append(
            f"Of {counted(sums.lines[FILE], 'line')} about files, {sums.known:,} "
            f"{'names' if sums.known == 1 else 'name'} an edit that another transcript here shows; "
            f"in {sums.both:,} both sessions edited the file."
        )
    if sums.lines[CONFLICT]:
        lines.append(
            f"Of {counted(sums.lines[CONFLICT], 'line')} about changes that would not merge, in "
            f"{sums.conflicted:,} a "
            "later merge in a session conflicted in that file."
        )
    if sums.paths or sums.untold:
        lines.append(
            f"{counted(sums.paths, 'call')} that found no file got the path of the one known file "
            f"of that name. {sums.paths_arrived:,} of these paths arrived, and "
            f"{sums.paths_used:,} of them were used in the same turn. Of {sums.untold:,} similar "
            f"calls without this line, {sums.untold_used:,} used that path, judged by the files "
            "that sessions had worked on before."
        )
    return lines


def compared_lines(proof: Proof) -> list[str]:
    """Return how the arms came about, and what they leave out."""
    rows = rows_of(proof)
    lines = (
        []
        if rows
        else ["Nothing to compare yet: no session edited a file that another session had open."]
    )
    if proof.left_out:
        lines.append(
            f"{counted(proof.left_out, 'moment')} more are not compared: the transcript is gone "
            "or does not show the updates, or no update of the session named the file."
        )
    if len(rows) > 1:
        lines.append(
            "The sessions were not chosen at random, so their time and work differ too. Claude "
            "Code refuses to edit a file that changed since it was "
            "read; that attempt counts as an edit."
        )
    return lines


def sum_lines(proof: Proof) -> list[str]:
    """Return what it costs, and what it might have saved at most."""
    sums, lines = proof.sums, []
    if sums.tokens and sums.told:
        lines.append(
            f"Told: {sums.told:,} tokens, {share_of(sums.told, sums.tokens)} of the "
            f"{sums.tokens:,} that the sessions "
            f"with updates read and wrote. Each later answer reads them again: with that, at most "
            f"{share_of(sums.told_again, sums.tokens)}."
        )
    if sums.read:
        lines.append(
            f"Read twice: of the files that several sessions read, about {sums.read:,} tokens, "
            f"{share_of(sums.identical, sums.read)} had been read by another session before, "
            "word for word. That is the most that could be saved; nothing was saved yet."
        )
    if proof.hooks_a_day:
        seconds = proof.hooks_a_day * HOOK_MILLISECONDS / 1000
        lines.append(
            f"Hooks: about {seconds:.1f} s a day, an estimate: {proof.hooks_a_day:,.0f} prompts "
            f"and edits a day, at "
            f"{HOOK_MILLISECONDS} ms each. The real time is not recorded."
        )
    return lines


def as_json(proof: Proof) -> dict[str, Any]:
    """Return the proof as plain values."""
    sums = {
        **vars(proof.told),
        "tokens": proof.told.tokens,
        "runtimes": sorted(proof.told.runtimes),
    }
    del sums["characters"]
    return {
        "sessions": proof.sessions,
        "missing_transcripts": proof.missing,
        "first_update_at": iso_time(proof.installed_at / 1000) if proof.installed_at else None,
        "told": {**sums, "lines": {kind: proof.told.lines[kind] for kind in KINDS}},
        "heeded": [
            {
                "arm": row.arm,
                "heeded": row.tally.heeded,
                "moments": row.tally.cases,
                "interval": row.tally.interval,
                "sessions": len(row.tally.clusters),
                "left_alone": row.left_alone,
                "difference": difference._asdict()
                if (difference := proof.difference(row.arm))
                else None,
            }
            for row in rows_of(proof)
        ],
        "not_compared": proof.left_out,
        "sums": {**vars(proof.sums), "hooks_a_day": proof.hooks_a_day},
    }


def _verdict(proof: Proof, arm: str) -> str:
    if arm == TOLD:
        return TOO_FEW if 0 < proof.arms[arm].cases < FEW else ""
    difference = proof.difference(arm)
    if difference is None:
        return TOO_FEW
    more = "more" if difference.value >= 0 else "fewer"
    low, high = sorted((difference.low, difference.high))
    return (
        f"{abs(difference.value) * 100:.0f} points {more} with an update ({low * 100:+.0f} to "
        f"{high * 100:+.0f}); {difference.p:.2%} of random shuffles differ as much"
    )
