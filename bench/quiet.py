"""`python -m bench.quiet`: the characters of updates in a day, with 1, 3 and 8 busy sessions.

A session prompts every ten minutes for eight hours. In between, each busy session gets a request,
edits files of its part of the project and answers, and now and then it pauses for an hour."""

from __future__ import annotations

import random
import sys

from .clones import Clone
from .scenes import SEED
from .scratch import scratch_directory

BUSY = (1, 3, 8)
PROMPTS = 48
MINUTES = 10


def main() -> int:
    for number in BUSY:
        texts = _told(number)
        total = sum(map(len, texts))
        silent = sum([not text for text in texts])
        print(
            f"{number} busy: {total / PROMPTS:.0f} characters a prompt, {total:,} a day; "
            f"{silent} of {PROMPTS} prompts without an update"
        )
    return 0


def _told(number: int) -> list[str]:
    """Return the update of each prompt of the day, '' for none."""
    numbers = random.Random(SEED)
    with scratch_directory() as root:
        clone = Clone(root)
        reader = clone.session("reader")
        others = [clone.session(f"busy{at}") for at in range(number)]
        paused = [0] * number
        texts = [reader.prompt()]
        for prompt in range(1, PROMPTS):
            for at, other in enumerate(others):
                paused[at] = paused[at] - 1 if paused[at] else 6 * (numbers.random() < 0.1)
                if paused[at]:
                    continue
                other.say(f"mend the fence of bed {prompt}")
                for _ in range(numbers.randrange(1, 5)):
                    other.edit(f"beds/{at}/{numbers.randrange(20)}.py", "x\n")
                other.say("ok")
            clone.now += 60 * MINUTES
            texts.append(reader.prompt())
        return texts


if __name__ == "__main__":
    sys.exit(main())
