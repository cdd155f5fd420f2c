"""The benchmark of memories in prompts: its sets, and that it sees what is wrong."""

from __future__ import annotations

import pytest

from bench.research.prompt_memories.calls import MEMORIES, told_with
from bench.research.prompt_memories.calls import read as read_with_patterns
from bench.research.prompt_memories.prompts import (
    ABOUT,
    OTHER_FORMS,
    SETS,
    UNRELATED,
    Prompt,
    ask,
    read,
)

KNOWN = [memory for path in SETS for memory in read(path)[0]]


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_prompts_about_a_memory_get_it_and_others_get_nothing(path, tmp_path):
    answers = ask(KNOWN, read(path)[1], tmp_path)
    right = {
        sign: [one.is_right for one in answers if one.prompt.sign == sign]
        for sign in ("?", "~", "-")
    }
    about = right[ABOUT] + right[OTHER_FORMS]
    assert sum(about) >= 0.70 * len(about)
    assert sum(right[OTHER_FORMS]) >= 0.70 * len(right[OTHER_FORMS])
    assert sum(right[UNRELATED]) >= 0.99 * len(right[UNRELATED])


def test_four_hundred_prompts_are_labelled():
    assert sum(len(read(path)[1]) for path in SETS) >= 400


def test_another_memory_than_the_right_one_is_seen_to_be_wrong(tmp_path):
    one, other = KNOWN[:2]
    answers = ask(
        KNOWN[:2],
        [Prompt(ABOUT, "/srv/shop", one.title, id) for id in (one.id, other.id)],
        tmp_path,
    )
    assert [answer.is_right for answer in answers] == [True, False]
    assert not ask(KNOWN[:2], [Prompt(UNRELATED, "/srv/shop", one.title)], tmp_path)[0].is_right


def test_a_memory_that_is_told_with_a_command_of_another_pattern_is_seen_to_be_wrong(tmp_path):
    commands = [("one", "git commit -m 'Use dayjs'"), ("one", "npm i dayjs"), ("two", "ls")]
    memories = read_with_patterns(MEMORIES)
    told = told_with(commands, memories, tmp_path)
    assert {"We use luxon for dates, not dayjs"} < {telling.title for telling in told}
    assert all(telling.is_right for telling in told)
    others = {id: (memory, "docker") for id, (memory, _) in memories.items()}
    assert not any(telling.is_right for telling in told_with(commands, others, tmp_path))
