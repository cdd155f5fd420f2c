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


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("could you please fix the login? Thanks!", "fix the login"),
        ("Hey, can you rename the module, please?", "rename the module"),
        ("ok, I want you to look at the build", "look at the build"),
        ("Bitte prüfe den Build", "prüfe den Build"),
        ("请检查构建", "检查构建"),
        ("i think we should drop the cache", "drop the cache"),
        ("fix it", "fix it"),
        ("how was the cache added?", "how was the cache added?"),
        ("hi", "hi"),
        ("please", "please"),
        ("Please,\nrename it\n\nand test it", "rename it\n\nand test it"),
        ("please rename it\n\nand test it", "rename it\n\nand test it"),
        ("", ""),
    ],
)
def test_politeness_is_not_what_a_prompt_is_about(prompt, about):
    assert subject(prompt) == about


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("WHY IS THE LOGIN BROKEN AGAIN!!!", "why is the login broken again!"),
        ("fix the fucking README, NOT the docs", "fix the README, not the docs"),
        ("ULTRATHINK about the JSON parser", "about the JSON parser"),
        ("what does HTTP mean?", "what does HTTP mean?"),
    ],
)
def test_it_is_told_without_shouting(prompt, about):
    assert subject(prompt) == about


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("@notes/prompt.md really ULTRATHINK this", "prompt.md"),
        ("please implement @a/one.md, @b/two.md", "one.md, two.md"),
        ("read @src/main.ts in full, it leaks", "read main.ts in full, it leaks"),
        ("ask @ada about it", "ask @ada about it"),
    ],
)
def test_files_that_are_mentioned_are_called_by_their_names(prompt, about):
    assert subject(prompt) == about


def test_a_very_long_line_is_left_as_it_is():
    assert subject("please " + "a" * 3000).startswith("please ")
