"""The strategy without a model: what is worth keeping of a conversation, by what it says itself."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from session_memory.memories.strategies.extractive.sentences import choices, excerpt, is_request, title_of
from session_memory.memories.strategies.extractive.strategy import ExtractiveStrategy
from session_memory.memories.strategy import Memory
from session_memory.store.values import Conversation, Filter, StoredEntry

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT.parent / "shared" / "transcripts"
CWD = "/srv/shop"
CONVERSATION = Conversation(7, "session", "a.jsonl", "", "claude-code", CWD, "", 0, 1000, 9, "ready", "")


def entries(*said: object) -> list[StoredEntry]:
    """A string is the user's or, behind `> `, the assistant's; a tuple a tool use: name, kind, argument, error."""
    numbers = itertools.count(1)
    found = []
    for one in said:
        number = next(numbers)
        if isinstance(one, tuple):
            name, kind, argument, *error = one
            item = StoredEntry(number, "tool", argument, number, CWD, 0, tool=name, kind=kind)
            found.append(item._replace(outcome="error" if error else "ok", error=error[0] if error else ""))
        else:
            assert isinstance(one, str)
            role = "assistant" if one.startswith("> ") else "user"
            found.append(StoredEntry(number, role, one.removeprefix("> "), number, CWD, 0))
    return found


def episode(*said: object, title: str = "") -> Memory:
    strategy = ExtractiveStrategy({}, None)
    conversation = CONVERSATION._replace(title=title)
    assert strategy.should_process(conversation, entries(*said))
    [memory] = strategy.process(conversation, entries(*said)).memories
    return memory


WORK = (
    "The checkout fails for guests. Please find out why!\n\n```\nTypeError: user is null\n```",
    "> I'll look into it.",
    ("Read", "read", "/srv/shop/src/checkout.py"),
    ("Read", "read", "/srv/shop/README.md"),
    ("Bash", "command", "cd /srv/shop && pytest tests/test_checkout.py -q", "TypeError: user is null"),
    ("Edit", "edit", "/srv/shop/src/checkout.py"),
    ("Edit", "edit", "/srv/shop/src/checkout.py"),
    ("Edit", "edit", "/srv/shop/src/checkout.py", "String to replace not found in file."),
    ("Bash", "command", "cd /srv/shop && pytest tests/test_checkout.py -q"),
    ("Bash", "command", "ls src"),
    ("Bash", "command", 'git commit -am "Let guests check out" && git push'),
    "> Guests have no user, so I check for that first. We decided to keep the session for them. The tests pass now, and "
    "I have pushed the change to the branch, so that it can be reviewed.",
    "Great. From now on always run the tests before you commit, ok?",
    "No, really: never commit without the tests.",
    "> Understood.",
)


class TestEpisode:
    def test_it_tells_what_was_asked_done_and_decided(self):
        assert episode(*WORK) == Memory(
            "episode",
            "The checkout fails for guests.",
            """Asked: The checkout fails for guests. Please find out why!

Then asked:
- Great. From now on always run the tests before you commit, ok?
- No, really: never commit without the tests.

Changed: `src/checkout.py` (2 edits)
Read: `README.md`

Committed:
- Let guests check out

Ran: `pytest` (2 times), `git commit && git push`

Failed:
- `pytest`: TypeError: user is null -> worked after editing `src/checkout.py`

Wanted or decided:
- the user: "No, really: never commit without the tests."
- the assistant: "We decided to keep the session for them."

Shortly before the end: Guests have no user, so I check for that first. We decided to keep the session for them. The tests pass now, and I have pushed the change to the branch, so that it can be reviewed.
At the end: Understood.""",
            "shop",
        )

    def test_what_is_left_open_is_told(self):
        text = episode("Please fix the build", "> On it.", ("Bash", "command", "make", "make: *** [all] Error 2")).text
        assert text.endswith("The last thing that happened: Bash failed: make: *** [all] Error 2")
        text = episode("Please fix the build", "> Done.", "And what about the docs then?").text
        assert text.endswith("Left without an answer: And what about the docs then?")

    def test_a_failure_that_nothing_followed_says_so(self):
        text = episode("Please fix the build", ("Bash", "command", "make all", "boom"), "> I give up.").text
        assert "- `make all`: boom -> not seen to work" in text

    def test_like_failures_are_told_once(self):
        failed = ("Bash", "command", "npm run lint", "✖ 140 problems (138 errors)")
        again = ("Bash", "command", "npm run lint", "✖ 22 problems (20 errors)")
        text = episode("Fix all lint errors", failed, ("Edit", "edit", "a.js"), again, "> Some are left.").text
        assert text.count("npm run lint`") == 2
        assert "- `npm run lint` (2 times): " in text

    def test_looking_around_and_slips_of_the_pen_are_not_told(self):
        text = episode(
            "Where is the config read?", ("Bash", "command", "grep -rn config src", "Exit code 1"),
            ("Edit", "edit", "/srv/shop/a.py", "String to replace not found in file."), "> In settings.py, at start-up.",
        ).text  # fmt: skip
        assert "Failed" not in text

    def test_files_elsewhere_are_told_from_where_they_lie_together(self):
        edits = [("Edit", "edit", f"/other/deep/project/{name}.py") for name in ("a", "b")]
        assert "Changed: `a.py`, `b.py`" in episode("Change the other project", *edits, "> Done.").text

    def test_many_requests_are_told_by_the_longest_of_them(self):
        requests = [f"Please change number {number}{' and check it well' * (number % 2)}" for number in range(20)]
        text = episode("Do all of these things", *requests, "> Done.").text
        assert "Then asked (12 more):" in text
        assert text.count("check it well") == 8

    def test_talk_without_any_tool_is_worth_an_episode_too(self):
        memory = episode("Which name is better, Ada or Grace?", "> Ada, since it is shorter.", "Let's go with Ada.")
        assert memory.text == (
            "Asked: Which name is better, Ada or Grace?\n\nThen asked:\n- Let's go with Ada.\n\n"
            'Wanted or decided:\n- the user: "Let\'s go with Ada."\n\n'
            "At the end: Ada, since it is shorter.\nLeft without an answer: Let's go with Ada."
        )

    def test_a_conversation_in_which_nobody_speaks_is_nothing(self):
        strategy = ExtractiveStrategy({}, None)
        assert not strategy.should_process(CONVERSATION, entries(("Bash", "command", "ls")))


class TestTitle:
    @pytest.mark.parametrize(
        ("given", "requests", "title"),
        [
            ("Fixing the build", ["please look"], "Fixing the build"),
            ("please look into the build of", ["please look into the build of the app. Now!"], "please look into the build of the app."),
            ("hi", ["What is the plan?"], "What is the plan?"),
            ("", ["https://github.com/a/b/issues/1"], "Allow guests"),
            ("", ["## The checkout\n\n- fails for guests"], "fails for guests"),
            ("", ["Bitte prüfe, warum der Build fehlschlägt! Danke."], "Bitte prüfe, warum der Build fehlschlägt!"),
            ("", ["请检查构建为什么失败。谢谢"], "请检查构建为什么失败。"),
            ("", ["ビルドが失敗する理由を調べてください。お願いします"], "ビルドが失敗する理由を調べてください。"),
            ("", ["ok"], "Allow guests"),
            ("", [], "Allow guests"),
        ],
    )  # fmt: skip
    def test_it_is_what_the_session_is_called_or_what_was_asked_first(self, given, requests, title):
        assert title_of(given, requests, ["Allow guests"]) == title

    def test_there_is_always_one(self):
        assert title_of("", [], []) == "Conversation"
        assert title_of("", ["ok"], []) == "ok"


class TestRequests:
    @pytest.mark.parametrize(
        "text", ["hi", "Hello!", "ok", "yes", "/clear", "/model opus", "weiter", "你好", "thanks a", "👍"]
    )
    def test_a_greeting_or_a_nod_is_none(self, text):
        assert not is_request(text)

    @pytest.mark.parametrize(
        "text",
        [
            "Fix the build",
            "https://example.org/issues/1",
            "请修复构建",
            "Почини сборку проекта",
            "/etc/hosts is empty, please look",
        ],
    )
    def test_what_asks_for_something_is_one(self, text):
        assert is_request(text)


class TestChoices:
    @pytest.mark.parametrize(
        "text",
        [
            "Always use tabs.", "Please never push to main", "I'd rather use SQLite here.", "let's go with option B",
            "use uv instead of pip", "From now on write tests first", "stop committing everything",
            "Bitte verwende immer Tabs.", "Ab jetzt nur noch auf Deutsch antworten", "Préfère toujours les petites fonctions.",
            "Usa siempre pnpm en lugar de npm.", "Всегда пиши тесты.", "以后都用中文回答。", "不要修改测试。", "必ずテストを書いてください。",
        ],
    )  # fmt: skip
    def test_what_the_user_wants_is_found_in_many_languages(self, text):
        assert choices(entries(text)[0]) == [text]

    @pytest.mark.parametrize(
        "text",
        [
            "Should we always use tabs?", "It never works.", "we never get a response", "if (always) { never(); }",
            "The build fails.", "rather than doing that", "and never mind the rest (of it",
            "为什么总是失败？",
        ],
    )  # fmt: skip
    def test_questions_complaints_code_and_halves_are_not(self, text):
        assert choices(entries(text)[0]) == []

    def test_of_the_assistant_only_decisions_count(self):
        said = "> I decided to use SQLite. It is always fast. Decide what to try."
        assert choices(entries(said)[0]) == ["I decided to use SQLite."]

    def test_pasted_text_is_not_what_the_user_wants(self):
        assert choices(entries("Always use tabs.\n" + "log line\n" * 900)[0]) == []

    def test_code_and_quotation_marks_of_markdown_are_left_out(self):
        said = "Do this:\n```\nalways use tabs\n```\n> - **Never** use `eval` here."
        assert choices(entries(said)[0]) == ["Never use `eval` here."]


class TestExcerpt:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("# Done\n\n- one\n- two\n\nThat is all.", "Done; one; two; That is all."),
            ("Look:\n\n```py\ncode()\n```\nand so on", "Look: and so on"),
            ("```\nonly code\n```", "``` only code ```"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b; 1 | 2"),
            ("✅ Fixed", "Fixed"),
            ("", ""),
        ],
    )
    def test_it_is_one_line_without_markup(self, text, told):
        assert excerpt(text, 100).replace("```; ", "``` ").replace("; ```", " ```") == told

    def test_a_huge_text_is_not_read_to_its_end(self):
        assert excerpt("word " * 10**6, 50).startswith("word word")


@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="../shared/transcripts is not there")
@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_of_real_sessions_it_makes_something_short_and_telling(tmp_path, runtime):
    from session_memory.store.ingest.ingestion import Ingestion
    from session_memory.store.ingest.sources import SourceDirectory
    from session_memory.store.sqlite.engine import SqliteStore

    store = SqliteStore(str(tmp_path / "store.db"))
    Ingestion(store).scan(SourceDirectory(str(TRANSCRIPTS / runtime)))
    strategy = ExtractiveStrategy({}, None)
    for conversation in store.conversations(Filter(limit=100)):
        found = list(store.entries(conversation.id))
        if conversation.entry_count < 10 or not strategy.should_process(conversation, found):
            continue
        [memory] = strategy.process(conversation, found).memories
        assert 0 < len(memory.title) <= 80
        assert 100 < len(memory.text) < 7000
        assert "Asked: " in memory.text
        assert "At the end: " in memory.text
    store.close()
