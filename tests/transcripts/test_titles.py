"""How a session is called that has no title."""

from __future__ import annotations

import pytest

from session_memory.transcripts.titles import is_request, subject


@pytest.mark.parametrize(
    "text",
    ["3", "y", "yes", "Yes, please.", "commit", "commit and push", "ok continue", "go ahead!", "[image]", "继续", ""],
)
def test_what_only_agrees_or_says_to_go_on_is_no_request(text):
    assert not is_request(text)


@pytest.mark.parametrize(
    "text", ["fix it", "run the tests", "status?", "yes, but rename it", "修复登录", "go to main.py"]
)
def test_what_names_something_is_a_request(text):
    assert is_request(text)


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("Implement the following plan:\n\n# Plan: Log in\n\n## Context", "Log in"),
        ("implement the following plan: **Log in**\n...", "Log in"),
        ("Implement the following plan:\n\n# Implementation Plan\n\n## Context\n\nUsers forget.", "Users forget."),
        ("Implement the following plan:", "Implement the following plan:"),
        ("# Plan\n\nLog in", "# Plan\n\nLog in"),
    ],
)
def test_a_plan_is_about_what_its_heading_says(prompt, about):
    assert subject(prompt) == about
