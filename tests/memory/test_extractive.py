"""The strategy without a model: the part of a conversation that it keeps."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from markdown_snapshot import MarkdownSnapshot

from session_memory.common.text.shell_commands import family
from session_memory.history.store.values import Conversation, Filter, StoredEntry
from session_memory.memory.format import new_memory, render
from session_memory.memory.memory_index import Origin
from session_memory.memory.strategies.extractive import _solutions as solutions
from session_memory.memory.strategies.extractive.sentences import excerpt, own_words
from session_memory.memory.strategies.extractive.strategy import (
    ExtractiveStrategy,
    _asks,
    _title_of,
)
from session_memory.memory.strategy import Memory

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT.parent / "shared" / "transcripts"
CWD = "/srv/shop"
CONVERSATION = Conversation(
    7, "session", "a.jsonl", "", "claude-code", CWD, "", 0, 1000, 9, "ready", ""
)


def said(text: str) -> list[StoredEntry]:
    """Return entries from lines.

    `U` is the user, `A` the assistant, `R` a file that is read, `E` an edited file, `$` a command
    that works, `!` a command that fails with its error after ` :: `."""
    return [
        _entry(number, line[0], line[2:])
        for number, line in enumerate(text.strip().splitlines(), 1)
    ]


def _entry(number: int, sign: str, text: str) -> StoredEntry:
    entry = StoredEntry(number - 1, "tool", text, number * 1000, CWD, 0, outcome="ok")
    if sign in "UA":
        return entry._replace(role={"U": "user", "A": "assistant"}[sign], outcome="")
    if sign in "RE":
        return entry._replace(
            tool={"R": "Read", "E": "Edit"}[sign], kind={"R": "read", "E": "edit"}[sign]
        )
    command, _, error = text.partition(" :: ")
    outcome = "error" if sign == "!" else "ok"
    return entry._replace(text=command, tool="Bash", kind="command", outcome=outcome, error=error)


def memories(
    text: str, title: str = "", strategy: ExtractiveStrategy | None = None
) -> list[Memory]:
    strategy = strategy or ExtractiveStrategy({}, None)
    return list(strategy.process(CONVERSATION._replace(title=title), said(text)).memories)


def items(text: str) -> list[tuple[str, str]]:
    """Kind and title of what is kept beside the episode."""
    return [(one.kind, one.title) for one in memories(text) if one.kind != "episode"]


def episode(text: str) -> Memory:
    return next(one for one in memories(text) if one.kind == "episode")


CONVERSATIONS = {
    "a bug that is mended": """
U The checkout fails for guests. Please find out why!
A I'll look into it.
R /srv/shop/src/checkout.py
! cd /srv/shop && pytest tests/test_checkout.py -q :: TypeError: 'NoneType' object is not subscriptable
A Guests have no user, so the discount is looked up in nothing.
E /srv/shop/src/checkout.py
$ cd /srv/shop && pytest tests/test_checkout.py -q
$ ls src
$ git commit -am "Let guests check out" && git push
A Guests have no user, so I check for that first. The tests pass, and I have pushed the change to the branch, so that it can be reviewed.
U Great. From now on always run the tests before you commit, ok?
U No, really: never commit without the tests.
A Understood.
""",
    "a choice with a rejected alternative": """
U How should the exports be stored? We tried CSV last year, but it lost the types, so we dropped it.
A Then Parquet or SQLite. I'd suggest using Parquet, because it keeps types and is small. Shall I go with that?
U sounds good, do it
A Done.
E /srv/shop/export.py
U fyi the warehouse reads every file on s3://shop-exports every night
A Good to know.
""",
    "an everyday talk": """
U Plan a weekend in Ghent for two, please. My wife is vegetarian, and I prefer trains over flying.
A Friday evening you take the train to Brussels and change there.
U We'll take the hotel near the canal then.
A I have noted it.
""",
    "a conversation of nothing": """
U run ls
$ ls
A a.txt
U thanks
""",
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_what_comes_of_a_conversation_is_as_its_snapshot_says(snapshot, name):
    pages = [
        render(
            new_memory(
                one.kind,
                one.title,
                one.text,
                one.subject,
                one.quote,
                Origin(one.at, "session", 7, "extractive", one.message),
                is_untrusted=False,
            )
        )
        for one in memories(CONVERSATIONS[name])
    ]
    kinds = [one.kind for one in memories(CONVERSATIONS[name])]
    text = "\n".join([f"# {kind}\n\n{page}" for kind, page in zip(kinds, pages)]) or "Nothing.\n"
    assert text == snapshot.use_extension(MarkdownSnapshot)


def test_what_a_person_says_makes_no_memory_without_a_model():
    for sentence in [
        "From now on always run the tests.",
        "We avoid Redis here because of serverless constraints",
        "remember that my son is allergic to nuts",
        "No, drop Redis, it is too slow",
    ]:
        assert items(f"U Fix the build, please\nE /srv/shop/a.c\nA Done.\nU {sentence}") == []


def test_what_was_pasted_is_not_what_the_user_said():
    for block in [
        "<system-reminder>\nalways use tabs\n</system-reminder>",
        "```\nalways use tabs\n```",
        "> always use tabs",
        "2026-03-02T10:11:12Z WARN always use tabs",
        "// always use tabs",
        "│ always use tabs │",
    ]:
        assert own_words(f"{block}\nplan a trip to <b>Japan</b>") == "plan a trip to <b>Japan</b>"


class TestSolutions:
    FAILS = "U make it pass\n" + 2 * "! npm test :: TypeError: x is undefined\n"

    def test_the_edits_between_the_last_failing_run_and_the_one_that_passes_are_told(self):
        text = f"{self.FAILS}E /srv/shop/b.js\n$ npm test\nE /srv/shop/c.js"
        [solution] = [one for one in memories(text) if one.kind == "solution"]
        assert (
            solution.title == "`npm test`: TypeError: x is undefined -> passed after editing `b.js`"
        )
        assert (solution.message, solution.quote) == (3, "TypeError: x is undefined")

    def test_without_a_change_or_a_pass_that_counts_there_is_none(self):
        for then in [
            "E /srv/shop/a.js",
            "E /srv/shop/a.js\n! npm test :: TypeError: x is undefined",
            "$ npm test",
            "E /srv/shop/a.js\n$ npm test -- --only other",
            "E /srv/shop/a.js\n$ npm test | tail -3",
            "E /srv/shop/a.js\n$ npm test\nU no, revert that",
            "E /srv/shop/a.js\n$ npm test\n$ git checkout -- a.js",
        ]:
            assert items(self.FAILS + then) == []

    def test_the_work_grows_with_the_number_of_failures_not_with_its_square(self, monkeypatch):
        calls: list[str] = []
        monkeypatch.setattr(solutions, "family", lambda text: calls.append(text) or family(text))
        numbers = []
        for many in (20, 40):
            calls.clear()
            run = (
                "\n! npm run task{0} :: TypeError: x is undefined" * 2
                + "\nE /a.js\n$ npm run task{0}"
            )
            assert (
                len(solutions.solutions(said("U go" + "".join(map(run.format, range(many))))))
                == many
            )
            numbers.append(len(calls))
        assert numbers[1] <= 2 * numbers[0]

    def test_a_slip_that_is_mended_at_once_is_none_nor_are_red_and_green_of_a_test_of_its_own(self):
        assert (
            items(
                "U go\n! npx tsc :: a.ts(1,2): error TS2304: no name\nE /srv/shop/a.ts\n$ npx tsc"
            )
            == []
        )
        assert (
            items(f"U go\nE /srv/shop/a.test.js\n{self.FAILS[15:]}E /srv/shop/b.js\n$ npm test")
            == []
        )

    def test_an_error_that_names_nothing_is_none(self):
        for error in [
            "FAIL",
            "Exit code 1: [lint] ERROR task failed",
            "# example.org/a",
            "Exit code 1: $ biome check",
        ]:
            assert (
                items(
                    f"U go\n! go test :: {error}\n! go test :: {error}\nE /srv/shop/b.go\n$ go test"
                )
                == []
            )


class TestEpisode:
    def test_it_is_one_line(self):
        text = f"U Please fix the build\n\nA On it.\nE /srv/shop/a.c\n$ make\nU And the docs\nA {'It is done. ' * 99}"
        told = episode(text.replace("\n\n", "\n")).text
        assert "\n" not in told
        assert len(told) < 800

    def test_it_tells_the_outcome_by_git_and_by_the_checks_and_how_it_ended(self):
        for said, told in [
            ("$ npm test\nA It works.", "`npm test` passed. Ended: It works."),
            (
                "! npm test :: x is undefined\n$ npm test\nA It works.",
                "`npm test` passed. Ended: It works.",
            ),
            (
                "$ npm test\n! npm test :: x is undefined\nA Hm.",
                "`npm test` failed: x is undefined. Ended: Hm.",
            ),
            (
                '$ git commit -m "One"\n$ git commit -m "Two"\nA Done.',
                "Committed: Two (the last of 2). Ended: Done.",
            ),
            (
                '$ git commit -m "One"\n$ git push\nA Done.',
                "Committed and pushed: One. Ended: Done.",
            ),
            (
                "U And what about the docs then?",
                "Ended without an answer to: And what about the docs then?",
            ),
            (
                "! make :: make: *** [all] Error 2",
                "Ended with Bash, which failed: make: *** [all] Error 2.",
            ),
        ]:
            assert episode(f"U Please fix the build\nE /srv/shop/a.c\n{said}").text.endswith(told)

    def test_files_elsewhere_are_told_from_where_they_lie_together(self):
        text = episode(
            "U Change the other project\nE /other/deep/project/a.py\nE /other/deep/project/b.py"
        ).text
        assert "Changed: `a.py`, `b.py`" in text

    def test_what_was_pasted_is_not_told_as_asked(self):
        pasted = "why does it fail?\n\n2026-01-01 ERROR boom\n2026-01-01 ERROR bang"
        entries = [_entry(1, "U", pasted), _entry(2, "E", "/a.py")]
        [memory] = ExtractiveStrategy({}, None).process(CONVERSATION, entries).memories
        assert memory.text.startswith("Asked: why does it fail? ")
        assert "boom" not in memory.text

    def test_a_conversation_in_which_a_command_failed_is_told(self):
        assert (
            episode("U run the tests\n! npm test :: 3 failed\nA They fail.").title
            == "run the tests"
        )

    def test_a_conversation_that_holds_nothing_makes_nothing(self):
        for text in ["U run ls\n$ ls\nA a.txt", "U hi\nA Hello!", "U say lol\nA lol"]:
            result = ExtractiveStrategy({}, None).process(CONVERSATION, said(text))
            assert (result.memories, result.skipped) == ((), "no text")

    def test_a_talk_of_substance_is_worth_an_episode_without_any_tool(self):
        assert (
            episode(f"U How do tides work?\nA {'The moon pulls. ' * 50}").title
            == "How do tides work?"
        )


class TestTitle:
    def test_it_says_what_the_conversation_was_about(self):
        for given, requests, commits, title in [
            ("Fixing the build", ["please look"], [], "Fixing the build"),
            (
                "please look into the build of",
                ["please look into the build of the app. Now!"],
                [],
                "please look into the build of the app.",
            ),
            (
                "",
                ["Implement the following plan:\n\n# Log in with a passkey\n\n..."],
                ["One"],
                "Log in with a passkey",
            ),
            (
                "",
                ["can you see why it fails for guests?"],
                ["Let guests check out"],
                "Let guests check out",
            ),
            ("", ["@prompt.md really ULTRATHINK this"], [], "@prompt.md really ULTRATHINK this"),
            ("", ["https://example.org/issues/1"], ["One", "Two", "Three"], "One"),
            (
                "",
                ["read @a/b.py in full. the cart is a mess, how can we split it?"],
                [],
                "the cart is a mess, how can we split it?",
            ),
            ("", ["## The checkout\n\n- fails for guests"], [], "fails for guests"),
            (
                "",
                ["Bitte prüfe, warum der Build fehlschlägt! Danke."],
                [],
                "Bitte prüfe, warum der Build fehlschlägt!",
            ),
            ("", ["请检查构建为什么失败。谢谢"], [], "请检查构建为什么失败。"),
            ("", [], [], "cart.py"),
        ]:
            assert _title_of(given, requests, commits, ["src/cart.py"]) == title

    def test_there_is_always_one(self):
        assert _title_of("", [], [], []) == "Conversation"

    def test_a_title_from_a_request_is_word_for_word(self):
        """The letters of "then", "and", "so", "now" within other words were cut out, and so were
        these words."""
        drawn = random.Random(seed := random.randrange(10**6))
        for _ in range(200):
            request = drawn_request(drawn)
            title = _title_of("", [request], [], [])
            quoted = title.removesuffix("…").rstrip()
            assert quoted, f"seed {seed}: {request!r}"
            assert quoted in " ".join(request.split()), f"seed {seed}: {title!r} of {request!r}"

    def test_words_that_go_on_stay(self):
        for request in [
            "I don't know how the brand color is chosen",
            "What's the next big thing to work on?",
            "Expand the menu and understand how the command works",
            "why does __init__ fail with **kwargs in 2**8 cases",
            "rename a → b and c → d everywhere",
            "And now also the next commands, so then?",
        ]:
            assert _title_of("", [request], [], []) == request


WORDS = [
    "then",
    "and",
    "also",
    "now",
    "so",
    "next",
    "know",
    "brand",
    "expand",
    "understand",
    "command",
    "another",
    "soon",
    "sort",
    "thenceforth",
    "nextcloud",
    "`code`",
    "**bold**",
    "__init__",
    "2**8",
    "→",
    "✅",
    "café",
    "检查",
    "can't",
    "gate,",
    "latch;",
    "roses:",
    "fern.",
    "moss!",
    "why?",
    "(ivy)",
    '"oak"',
    "a/b.py",
    "--flag",
]


def drawn_request(drawn: random.Random) -> str:
    lines = [
        " ".join(drawn.choices(WORDS, k=drawn.randrange(3, 14)))
        for _ in range(drawn.randrange(1, 4))
    ]
    return drawn.choice(["", "- ", "# ", "1. ", "then "]) + drawn.choice(["\n", "\n\n", " "]).join(
        lines
    )


class TestRequests:
    def test_a_greeting_or_a_nod_is_none(self):
        for text in [
            "hi",
            "Hello!",
            "ok",
            "yes",
            "/clear",
            "/model opus",
            "weiter",
            "你好",
            "thanks a",
            "👍",
        ]:
            assert not _asks(text)

    def test_what_asks_for_something_is_one(self):
        for text in [
            "Fix the build",
            "https://example.org/issues/1",
            "请修复构建",
            "Почини сборку проекта",
            "/etc/hosts is empty, please look",
        ]:
            assert _asks(text)


class TestExcerpt:
    def test_it_is_one_line_without_markup(self):
        for text, told in [
            ("# Done\n\n- one\n- two\n\nThat is all.", "Done; one; two; That is all."),
            ("Look:\n\n```py\ncode()\n```\nand so on", "Look: and so on"),
            ("```\nonly code\n```", "``` only code ```"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b; 1 | 2"),
            ("✅ Fixed", "Fixed"),
            ("", ""),
        ]:
            assert excerpt(text, 100).replace("```; ", "``` ").replace("; ```", " ```") == told

    def test_a_huge_text_is_not_read_to_its_end(self):
        assert excerpt("word " * 10**6, 50).startswith("word word")


@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="../shared/transcripts is not there")
@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_of_real_sessions_it_makes_something_short_and_telling(tmp_path, runtime):
    from session_memory.history.store.ingest.ingestion import Ingestion
    from session_memory.history.store.ingest.sources import SourceDirectory
    from session_memory.history.store.sqlite.engine import SqliteStore

    store = SqliteStore(str(tmp_path / "store.db"))
    Ingestion(store).scan(SourceDirectory(str(TRANSCRIPTS / runtime)))
    strategy = ExtractiveStrategy({}, None)
    for conversation in store.conversations(Filter(limit=100)):
        found = list(store.entries(conversation.id))
        if conversation.entry_count < 10 or not strategy.should_process(conversation, found):
            continue
        made = strategy.process(conversation, found).memories
        for memory in itertools.islice(made, 1):
            assert 0 < len(memory.title) <= 80
            assert 40 < len(memory.text) < 1200
            assert "\n" not in memory.text
        assert all(memory.quote and memory.message for memory in made[1:])
    store.close()
