"""What matters for a prompt comes first, even if it was told or had no room before; the rest of an
earlier update does not come in the middle of a task."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from collision_scene import Pair
from hooks_scene import PlainUser, told
from records import append, assistant, exchange, tool_result, user

from bench.clones import Clone
from session_memory.awareness.activity._relevance import (
    _COMMON,
    SHORTEST_STEM,
    STEM_CHARACTERS,
    PromptWords,
    stems_of,
)


def edited(plain: PlainUser, request: str, *names: str, minutes: float = 1, **fields: str) -> Path:
    """A session that edited files of the project, the last one last, so many minutes ago."""
    then = time.time() - 60 * minutes
    fields = {"cwd": "/srv/agent", **fields}
    records = [user(request, at=then, **fields)]
    for name in names:
        call = ("Edit", {"file_path": f"/srv/agent/{name}", "old_string": "1", "new_string": "2"})
        records += [assistant(call, at=then, **fields), tool_result("ok", at=then)]
    return plain.session(*records, assistant("Done.", at=then, **fields))


def crowd(plain: PlainUser, number: int) -> list[Path]:
    """Sessions that edited a file each, just now."""
    return [
        edited(plain, f"mend the fence of bed {at}", f"beds/{at}/fence.py", minutes=0.1)
        for at in range(number)
    ]


def lines(output: bytes) -> list[str]:
    """The lines of an update about sessions; none if nothing was told."""
    return [line for line in told(output).split("\n") if line[:2] == "- "] if output else []


class TestAFileThatThePromptNames:
    def test_is_found_in_a_part_that_was_not_read(self, plain: PlainUser) -> None:
        path = edited(plain, "make the shed larger, and the roof", "src/shed.py", minutes=9)
        for _ in range(30):
            append(path, assistant(("Bash", {"command": "make"})), tool_result("x" * 100_000))
        append(path, *exchange("go on", "It stands."))
        crowd(plain, 6)
        first = lines(plain.run(prompt="look at src/shed.py"))[0]
        assert first.startswith('- "make the shed larger, and the roof"')
        assert "edited src/shed.py" in first

    def test_is_told_again_if_an_update_did_not_name_it(self, plain: PlainUser) -> None:
        edited(plain, "paint the shed and its door", *[f"src/{at}.py" for at in range(9)])
        assert "src/2.py" not in told(plain.run())
        (line,) = lines(plain.run(prompt="what is wrong in src/2.py?"))
        assert "edited src/2.py" in line
        assert plain.run(prompt="and in src/2.py now?") == b""

    @pytest.mark.parametrize("is_read", [False, True])
    def test_is_not_told_again_if_it_was_read_since(self, tmp_path: Path, is_read: bool) -> None:
        pair = Pair(Clone(tmp_path))
        for number in range(9):
            pair.discord.edit(f"src/{number}.py", "x\n")
        pair.discord.say("Done.")
        assert "src/2.py" not in pair.main.prompt()
        pair.later()
        pair.main.read("src/2.py" if is_read else "src/ui/main.ts")
        text = pair.main.prompt("what is wrong in src/2.py?")
        assert ("edited src/2.py" in text) != is_read

    def test_of_another_directory_is_another_file(self, plain: PlainUser) -> None:
        edited(plain, "paint the shed and its door", *[f"src/{at}.py" for at in range(9)])
        plain.run()
        assert plain.run(prompt="what is wrong in lib/2.py?") == b""

    @pytest.mark.parametrize("prompt", ["look at src/shed.py", "look at the shed"])
    def test_of_an_excluded_session_is_not_told(self, plain: PlainUser, prompt: str) -> None:
        path = edited(plain, "make the shed larger, and the roof", "src/shed.py", minutes=9)
        plain.config(f"sessions:\n  {path.stem}: ignore\n")
        assert plain.run(prompt=prompt) == b""


class TestSessionsWithoutRoom:
    def test_are_not_told_with_the_next_prompt(self, plain: PlainUser) -> None:
        crowd(plain, 8)
        assert told(plain.run(prompt="tidy up")).endswith("+5 more")
        assert plain.run(prompt="yes") == b""

    def test_are_told_if_the_next_prompt_names_their_file(self, plain: PlainUser) -> None:
        edited(plain, "make the shed larger, and the roof", "src/shed.py", minutes=9)
        crowd(plain, 8)
        assert "shed" not in told(plain.run(prompt="tidy up"))
        (line,) = lines(plain.run(prompt="look at shed.py"))
        assert "edited src/shed.py" in line

    def test_are_told_if_the_next_prompt_is_about_their_subject(self, plain: PlainUser) -> None:
        edited(plain, "make the tulips bloom earlier", "src/flowers.py", minutes=9)
        crowd(plain, 8)
        assert "tulips" not in told(plain.run(prompt="tidy up"))
        (line,) = lines(plain.run(prompt="why do my tulips not bloom?"))
        assert line.startswith('- "make the tulips bloom earlier"')

    def test_are_told_if_they_go_on(self, plain: PlainUser) -> None:
        paths = crowd(plain, 8)
        first = told(plain.run(prompt="tidy up"))
        path = next(path for at, path in enumerate(paths) if f"bed {at}" not in first)
        append(path, *exchange("and paint it green, please", "It is green."))
        (line,) = lines(plain.run(prompt="yes"))
        assert "It is green." in line

    def test_come_first_at_once_if_the_prompt_is_about_their_subject(
        self, plain: PlainUser
    ) -> None:
        edited(plain, "make the tulips bloom earlier", "src/flowers.py", minutes=50)
        crowd(plain, 12)
        assert lines(plain.run(prompt="why do my tulips not bloom?"))[0].startswith(
            '- "make the tulips bloom earlier"'
        )


class TestALine:
    def test_names_the_file_edited_most_often_and_the_last_ones(self, plain: PlainUser) -> None:
        names = ("a.py", "b.py", "a.py", "c.py", "d.py", "e.py")
        edited(plain, "paint the shed and its door", *names)
        (line,) = lines(plain.run())
        assert line.count(": edited a.py, e.py, d.py and 2 more")

    def test_names_files_that_the_line_above_does_not_name(self, plain: PlainUser) -> None:
        for minutes, request in ((1, "paint the shed and its door"), (2, "oil the garden gate")):
            edited(plain, request, "a.py", "b.py", "c.py", "log.md", "log.md", minutes=minutes)
        first, second = lines(plain.run())
        assert first.count("edited log.md, c.py, b.py and 1 more")
        assert second.count("edited a.py, log.md, c.py and 1 more")

    def test_begins_with_the_first_request_and_the_last_one(self, plain: PlainUser) -> None:
        path = edited(plain, "Show me how the cart works.", "cart.py")
        append(path, *exchange("yes", "Done."))
        append(path, *exchange("A factor for large orders", "It is in."))
        (line,) = lines(plain.run())
        assert line.startswith('- "Show me how the cart works. → A factor for large orders" (')

    def test_quotes_the_request_that_led_to_the_edits(self, plain: PlainUser) -> None:
        path = edited(plain, "Give large orders a factor.", "cart.py")
        append(path, {"type": "ai-title", "aiTitle": "Work on the shop"})
        append(path, *exchange("Push an empty commit to wrap up the day.", "Pushed."))
        (line,) = lines(plain.run())
        assert line.count('"Work on the shop"') == 1
        assert '"Give large orders a factor." -> edited cart.py' in line

    @pytest.mark.parametrize("calls", [(), ("shops.md",)])
    def test_marks_an_answer_that_came_before_the_last_request(
        self, plain: PlainUser, calls: tuple[str, ...]
    ) -> None:
        path = edited(plain, "Which shop has the best seeds?")
        append(path, *exchange("And the best bulbs?", "The one at the mill."))
        append(path, user("Put its address into the list."))
        for name in calls:
            call = ("Write", {"file_path": f"/srv/agent/{name}", "content": "Mill Lane 3"})
            append(path, assistant(call, cwd="/srv/agent"), tool_result("ok"))
        (line,) = lines(plain.run())
        assert "Put its address into the" in line
        assert ('earlier: "The one at the mill."' in line, "last:" in line) == (True, False)

    def test_about_a_single_prompt_to_try_an_agent_is_not_told(self, plain: PlainUser) -> None:
        plain.session(*exchange("echo hello", "hello"))
        plain.session(*exchange("test", "It works."))
        assert plain.run() == b""

    def test_about_a_program_s_single_prompt_is_told_once(self, plain: PlainUser) -> None:
        for number in range(3):
            request = f"You are dreaming about the beds of garden {number}."
            plain.session(*exchange(request, "I dreamt of roses.", entrypoint="sdk-cli"))
        edited(plain, "You are painting the garden gate today", "gate.py", entrypoint="sdk-cli")
        assert [("dreaming" in line, "gate.py" in line) for line in lines(plain.run())].count(
            (True, False)
        ) == 1
        assert plain.run() == b""


class TestOnlyCollisions:
    def test_are_told_if_the_person_wants_that(self, plain: PlainUser) -> None:
        plain.config("updates: collisions\n")
        crowd(plain, 8)
        assert plain.run() == b""
        request = "Read docs/plans/mail-plan.md and implement the first task"
        plain.session(*exchange(request, "I will.", cwd="/srv/agent", at=time.time() - 60))
        (line,) = told(plain.run(prompt=request)).split("\n")[2:]
        assert line.startswith(f'! "{request[:30]}')
        assert line.endswith("in this directory; it has edited nothing yet")


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("Mend the Garden fence", 2),
        ('"garden" (fence): done', 2),
        ("gardeners fenced it in", 2),
        ("offence in a rosegarden, then a garden", 1),
        ("pregarden unfence", 0),
        ("", 0),
    ],
)
def test_a_word_counts_where_it_begins_whatever_sign_is_before_it(text: str, shared: int) -> None:
    assert PromptWords("the garden, and its fence").shared_words([text]) == [shared]


@pytest.mark.parametrize(
    ("prompt", "directories"),
    [
        ("look in src/. now", []),
        ("look in src/", []),
        ("look in /src/!", []),
        ("look in src/api/.", ["/src/api/"]),
        ('the "packages/web/" folder', ["/packages/web/"]),
        ("open src/api/a.py", []),
    ],
)
def test_a_directory_has_at_least_two_parts(prompt: str, directories: list[str]) -> None:
    assert PromptWords(prompt).directories == directories


@pytest.mark.parametrize(
    ("prompt", "tells"),
    [("yes, and/or go on w/o it, 1/2", False), ("yes, packages/web", True), ("go on", False)],
)
def test_a_slash_between_short_words_tells_nothing(prompt: str, tells: bool) -> None:
    assert PromptWords(prompt).tell is tells


def test_common_words_are_as_long_as_stems() -> None:
    text = " ".join(_COMMON)
    assert {word for word in _COMMON if not SHORTEST_STEM <= len(word) <= STEM_CHARACTERS} == set()
    assert stems_of(text) == []
