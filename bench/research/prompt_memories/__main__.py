"""`python -m bench.research.prompt_memories`: how often a prompt gets the memory it is about.

It should get nothing if it is about none. It also measures what the search costs the prompt hook.
Each set of labelled prompts is asked with the memories of both. Real users' prompts are about none
of them, in any project. The cost is that of a prompt with nothing else new, with 5,000 memories,
less that of the same prompt with none, in starts of a bare interpreter. Exits with 1 if a figure
misses its aim. `--faults` also prints which prompts got something else, `--runs 0` leaves out the
cost, `--cpu` counts processor time, for a busy machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...command import run
from ...real import TRANSCRIPTS
from ...scratch import scratch_directory
from .cost import MEMORIES, MOST, added_by_memories
from .prompts import ABOUT, OTHER_FORMS, SETS, UNRELATED, Answer, ask, read, real_prompts

LEAST_RIGHT, LEAST_SILENT = 0.70, 0.99


def main(
    faults: bool = False, transcripts: Path = TRANSCRIPTS, runs: int = 60, cpu: bool = False
) -> int:
    sets = {path.stem: read(path) for path in SETS}
    memories = [memory for memories_of_set, _ in sets.values() for memory in memories_of_set]
    passed = True
    with scratch_directory() as name:
        for title, (_, prompts) in sets.items():
            passed &= _show(title, ask(memories, prompts, name), with_faults=faults)
        real = real_prompts(transcripts, {memory.origins[0][5] for memory in memories})
        if real:
            passed &= _show("real transcripts", ask(memories, real, name), with_faults=faults)
    if runs:
        for title, added in added_by_memories(memories, runs, of_processor=cpu).items():
            passed &= added <= MOST
            print(f"a prompt {title}, {MEMORIES:,} memories: {added:+.2f} x (at most +{MOST} x)")
    return 0 if passed else 1


def _show(title: str, answers: Sequence[Answer], *, with_faults: bool) -> bool:
    """Print how many of the answers are right, and return whether these are enough."""
    by_sign = {
        sign: [answer for answer in answers if answer.prompt.sign == sign]
        for sign in (ABOUT, OTHER_FORMS, UNRELATED)
    }
    about = [answer for answer in answers if answer.prompt.memory]
    shares = []
    for words, answers_of_sign in (
        ("about a memory", about),
        ("of these with other forms of its words", by_sign[OTHER_FORMS]),
        ("about nothing remembered", by_sign[UNRELATED]),
    ):
        if answers_of_sign:
            right = sum(answer.is_right for answer in answers_of_sign)
            share = right / len(answers_of_sign)
            shares.append(
                share >= (LEAST_SILENT if words == "about nothing remembered" else LEAST_RIGHT)
            )
            print(f"{title:18} {words:40} {right:4} of {len(answers_of_sign):4}  {share:.3f}")
    others = sum(id != answer.prompt.memory for answer in about for id in answer.ids)
    if about:
        print(f"{title:18} {'other memories told with them':40} {others:4}")
    for answer in answers if with_faults else ():
        if not answer.is_right:
            print(
                f"  {answer.prompt.sign} {answer.prompt.text[:100]!r} got "
                f"{answer.told.text.partition(chr(10))[2]!r}"
            )
    return all(shares)


if __name__ == "__main__":
    run(main)
