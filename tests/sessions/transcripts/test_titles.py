"""How a session is called that has no title."""

from __future__ import annotations

import pytest

from session_memory.sessions.transcripts.reader import is_request, telling_request, title_of


def test_what_names_something_is_a_request_and_what_only_agrees_or_another_agent_said_is_none():
    agreed = [
        "3",
        "y",
        "yes",
        "Yes, please.",
        "commit",
        "commit and push",
        "ok continue",
        "go ahead!",
        "[image]",
        "继续",
        "",
        '<teammate-message teammate_id="lead">Rename the tables, and then test them.</teammate-message>',
    ]
    requests = [
        "fix it",
        "run the tests",
        "status?",
        "yes, but rename it",
        "修复登录",
        "go to main.py",
    ]
    assert [text for text in agreed + requests if is_request(text)] == requests


@pytest.mark.parametrize(
    ("requests", "telling"),
    [
        (
            ["hi there", "rename the tables of the store", "then test it all again"],
            "rename the tables of the store",
        ),
        (["fix it", "status of main"], "status of main"),
        (["fix it", "test it"], "fix it"),
        (["hi", "修复登录页面"], "修复登录页面"),
        ([], ""),
    ],
)
def test_the_first_request_that_says_enough_names_a_session_else_the_one_that_says_most(
    requests, telling
):
    assert telling_request(requests) == telling


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Implement the following plan:\n\n# Plan: Log in\n\n## Context", "Log in"),
        ("implement the following plan: **Log in**\n...", "Log in"),
        (
            "Implement the following plan:\n\n# Implementation Plan\n\n## Context\n\nUsers forget.",
            "Users forget.",
        ),
        ("Implement the following plan:", "Implement the following plan:"),
        ("# Plan\n\nLog in", "# Plan\n\nLog in"),
    ],
)
def test_a_plan_gives_its_heading_as_the_title(prompt, title):
    assert title_of(prompt) == title


def test_any_other_request_is_quoted_as_it_is():
    prompt = "PLEASE fix the login in @src/main.ts!! Thanks"
    assert title_of(prompt) == prompt
