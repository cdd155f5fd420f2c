"""The extent of a prompt: how many modules its values enter."""

from __future__ import annotations

from bench.modules import modules_of_prompt

MOST = 40


def test_a_prompt_with_news_enters_no_more_modules() -> None:
    found = modules_of_prompt()
    assert "awareness.activity.updates" in found
    assert len(found) <= MOST, found
