"""Words are letters and digits with their marks, in every script, for titles, memories and files."""

from __future__ import annotations

import pytest

from session_memory.common.text.format import has_words, words_of
from session_memory.memory.prompt_memories import terms
from session_memory.memory.strategies.extractive.sentences import has_words as says_something

TEXTS = {
    "हिन्दी में लिखो, दिन!": ["हिन्दी", "में", "लिखो", "दिन"],
    "தமிழ் எழுத்து": ["தமிழ்", "எழுத்து"],
    "שָׁלוֹם לְכֻלָּם": ["שָׁלוֹם", "לְכֻלָּם"],
    "snake_case-name 42": ["snake", "case", "name", "42"],
    "the plum — 'ripe' → ❤️ eaten…": ["the", "plum", "ripe", "eaten"],
    "Zu\u0308rich": ["Zu\u0308rich"],
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_whole(text: str) -> None:
    assert words_of(text) == TEXTS[text]


def test_a_title_is_found_by_the_beginning_of_a_word_and_by_nothing_within_one() -> None:
    assert has_words("हिन्दी में लिखो", "हिन्")
    assert not has_words("हिन्दी में लिखो", "दी")


def test_a_request_with_vowel_signs_says_something() -> None:
    assert says_something("दिन में लिखो")
    assert not says_something("दिन")


def test_a_prompt_is_compared_with_memories_by_whole_words() -> None:
    assert [*terms("यह दिन, अच्छा")] == ["यह", "दिन", "अच्छा"]
    assert not {*terms("दिन अच्छा")} & {*terms("दान अच्छी")}
