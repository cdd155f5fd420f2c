"""Blocks that a program puts before a prompt are not a person's words, and never a title."""

from __future__ import annotations

import pytest
from records import (
    PiSession,
    atif_exchange,
    codex_exchange,
    copilot_exchange,
    droid_exchange,
    exchange,
    gemini_exchange,
    kimi_exchange,
    line,
    opencode_exchange,
    qwen_exchange,
)
from runtimes_scene import row_of

from session_memory.sessions.runtimes.table import all_runtimes
from session_memory.sessions.transcripts.entries import Entry, typed_by_person
from session_memory.sessions.transcripts.reader import (
    TranscriptReader,
    is_request,
    telling_request,
    title_of,
)

RUNTIMES = {runtime.name: runtime for runtime in all_runtimes()}
REQUEST = "please mend the <b>latch</b> of the garden gate"
BLOCKS = [
    "<system_instruction>\nYou work inside an app.\n</system_instruction>",
    "<recommended_plugins>\n- garden\n</recommended_plugins>",
    "<system-reminder>\nUse tools.\n</system-reminder>",
    '<workspace_info root="/w">\nmain\n</workspace_info>',
    "<open_tabs>a.py</open_tabs>",
    "<attached_files>\n<file>a < b</file>\n</attached_files>",
    "<session-start-hook>x</session-start-hook>",
    "<project_notes>Gates are green.</project_notes>",
]


def exchanges(prompt: str) -> dict[str, list[dict[str, object]]]:
    """A turn in the records of each family of runtimes."""
    pi = PiSession()
    pi.exchange(prompt, "Done.")
    steps = [
        {"type": "step", "id": str(at), "number": at, **step}
        for at, step in enumerate(atif_exchange(prompt, "Done."))
    ]
    return {
        "claude-code": exchange(prompt, "Done."),
        "pi": pi.records[1:],
        "codex": codex_exchange(prompt, "Done."),
        "qwen-code": qwen_exchange(prompt, "Done."),
        "copilot": copilot_exchange(prompt, "Done."),
        "opencode": opencode_exchange(prompt, "Done."),
        "gemini": gemini_exchange(prompt, "Done."),
        "droid": droid_exchange(prompt, "Done."),
        "openclaw": pi.records[1:],
        "omp": pi.records[1:],
        "cline": steps,
        "hermes": steps,
        "kimi": kimi_exchange(prompt, "Done."),
        "atif": steps,
    }


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_leading_block_of_a_program_is_left_out_in_every_runtime(name):
    for block in [*BLOCKS, "\n\n".join(BLOCKS)]:
        records = row_of(exchanges(f"{block}\n\n{REQUEST}"), RUNTIMES[name])
        content = [(at, line(value)) for at, value in enumerate(records)]
        entries = TranscriptReader(RUNTIMES[name], b"").forward(content)
        assert [entry.text for entry in entries if isinstance(entry, Entry)] == [REQUEST, "Done."]


def test_markup_that_a_person_pasted_stays():
    for text in [
        f"{REQUEST}\n\n<system_instruction>\nBe kind.\n</system_instruction>",
        "<div class='gate'>\n<p>shut</p>\n</div>\n\nwhy does this not close?",
        "<my-gate open></my-gate> is blank",
        "<file_path> is the name in the docs, mend that",
        "a < b and c > d",
        "<T> is not covariant here",
        "<context>\nA gate.\n</context>\n\nMend it.",
    ]:
        assert typed_by_person(text) == text


def test_tags_around_the_words_are_taken_off_and_what_is_within_stays():
    assert (
        typed_by_person("<user_query>\n<div>a</div> is blank\n</user_query>")
        == "<div>a</div> is blank"
    )
    assert typed_by_person('<user_input mode="act">mend it</user_input>') == "mend it"
    assert (
        typed_by_person(
            "<user_info>\nOS: Linux\n</user_info>\n\n<user_query>\nmend it\n</user_query>"
        )
        == "mend it"
    )


def test_a_title_begins_after_images_and_blocks():
    for before in [
        "[image]",
        "[image]\n\n[image]",
        "<div>\n<p>shut</p>\n</div>",
        "<context>x</context>",
    ]:
        assert title_of(f"{before}\n\n{REQUEST}") == REQUEST
    assert title_of("[image]") == "[image]"
    assert title_of("[[ ## user_query ## ]]\nwhy is it shut?") == "why is it shut?"


def test_a_title_is_not_a_trivial_answer_if_a_request_says_more():
    for trivial in [
        "y",
        "nothing to add",
        "Works for me!",
        "1",
        "[image]",
        "/commit",
        "ok, go for it",
        "<context>x</context>\ny",
    ]:
        assert telling_request([trivial, "mend the latch"]) == "mend the latch"
    assert telling_request(["/create-ux-design"]) == "/create-ux-design"
    assert not is_request("works for me")
    assert not is_request("/mode")


def test_a_session_begun_by_a_handoff_is_called_after_the_one_that_it_continues():
    page = "# Handoff: write all as claude-code\n\nclaude-code session 50eed3e4, 10:00 to 11:00, in /w.\n\n## Task\n"
    assert title_of(page) == 'continues "write all as claude-code"'
    assert title_of('# Handoff: continues "write all"\n\nmore') == 'continues "write all"'
