"""Markdown and diffs on a terminal: nothing is lost, nothing is cut, and nothing can be smuggled in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_memory.common.system._rendering import code_lines, markdown_lines
from session_memory.common.system._wrapping import width_of, words_wrapped
from session_memory.common.system.plain_output import plain_text
from session_memory.common.text.sanitize import plain

STYLE = re.compile("\x1b\\[(?:0|1|2|3|4|31|32|33|34|36)m")
PATH = "/srv/" + "/".join(["directory"] * 12) + "/file.py"


def shown(text: str, width: int = 60) -> list[str]:
    """The lines that a terminal prints, without styles."""
    return [STYLE.sub("", plain_text(line)) for line in markdown_lines(text, width)]


def test_blocks_read_as_their_snapshot() -> None:
    text = (
        "# The cart\nIt has **two** parts,\nand `code`:\n\n- one\n- two\n  1. inner\n\n"
        "> quoted\n\n| Name | Lines |\n|---|--:|\n| 日本 | 3 |\n| b | 12 |\n\n```py\nreturn 1\n```\n---\n"
    )
    assert shown(text) == [
        "The cart",
        "",
        "It has two parts,",
        "and code:",
        "",
        "- one",
        "- two",
        "  1. inner",
        "",
        "| quoted",
        "",
        "Name  Lines",
        "日本      3",
        "b        12",
        "",
        "    return 1",
        "",
        "-" * 40,
    ]


def test_styles_are_those_that_the_output_prints() -> None:
    [line] = markdown_lines("**bold** `code` _it_ ~~no~~ [name](https://a.example)", 80)
    assert plain_text(line) == (
        "\x1b[1mbold\x1b[0m \x1b[36mcode\x1b[0m \x1b[3mit\x1b[0m \x1b[2mno\x1b[0m "
        "name\x1b[2m (https://a.example)\x1b[0m"
    )
    assert [plain_text(line) for line in code_lines("@@ -1 +1 @@\n-old\n+new\n same", "diff")] == [
        "\x1b[36m@@ -1 +1 @@\x1b[0m",
        "\x1b[31m-old\x1b[0m",
        "\x1b[32m+new\x1b[0m",
        " same",
    ]


def test_text_that_a_browser_would_hide_is_shown() -> None:
    for text in (
        "a <!-- comment --> b",
        "<script>x</script>",
        "![alt](picture.png)",
        "[label]: https://a.example",
        "&#27;[31m &lt;",
        "__init__",
    ):
        for part in re.findall(r"[\w.#&;-]+", text):
            assert part in "".join(shown(text)), text


def test_no_word_is_cut_and_long_words_stay_whole() -> None:
    words = "some words before the end of the line " * 5
    text = f"- {words} {PATH}\n\n> {words} {PATH}\n\n{words} {PATH}"
    lines = shown(text)
    assert sum(PATH in line for line in lines) == 3
    assert max(len(line) for line in lines if PATH not in line) <= 60
    assert set(" ".join(lines).split()) == {*words.split(), PATH, "-", "|"}


def test_wide_characters_take_two_columns() -> None:
    assert width_of("日本語x") == 7
    lines = words_wrapped("日本語の文章です。" * 20, 31)
    assert {width_of(line) for line in lines[:-1]} <= {28, 29, 30, 31}
    assert "".join(lines) == "日本語の文章です。" * 20
    assert not [line for line in lines if line.startswith("。")]


def test_a_style_goes_on_behind_a_break() -> None:
    first, second = markdown_lines("**" + "bold " * 9 + "end**", 30)
    for line in (first, second):
        assert plain_text(line).startswith("\x1b[1m")
        assert plain_text(line).endswith("\x1b[0m")


def test_escapes_and_references_to_them_stay_harmless() -> None:
    for evil in (
        "\x1b]52;c;QUFB\x07",
        "\x9b35m",
        "&#27;]0;x&#7;",
        "&#x202e;",
        "\u202e",
        "\x1b[35m",
    ):
        for text in (
            evil,
            f"`{evil}`",
            f"[a]({evil})",
            f"```{evil}\n{evil}\n```",
            f"| {evil} |\n|-|\n| {evil} |",
        ):
            for line in markdown_lines(text, 40):
                left = STYLE.sub("", plain_text(line))
                assert plain(left) == left, ascii(text)


@pytest.mark.parametrize("cell", ["c", "3", "✗", "+"])
def test_a_table_whose_rows_are_longer_than_its_head_stays_as_it_is(cell: str) -> None:
    text = f"| a |\n|---|\n| b | {cell} |"
    assert shown(text) == text.split("\n")


def test_a_table_with_marks_in_its_cells_is_rendered() -> None:
    text = "| *a* | [b](c.d) |\n|:--|--:|\n| `1` | \\| 2% |"
    assert shown(text) == ["a  b (c.d)", "1     | 2%"]


def test_text_in_many_levels_stays_as_it_is() -> None:
    for text in (">" * 40 + "a", "\n".join("  " * level + "- a" for level in range(40))):
        assert shown(text) == text.split("\n")


def test_what_a_fence_says_besides_its_language_is_shown() -> None:
    for info in ("12:15:cart.py", "py title=cart.py", "cart.py"):
        assert shown(f"```{info}\nx = 1\n```") == [f"    {info}", "    x = 1"]
    for language in ("py", "c++", "objective-c", ""):
        assert shown(f"```{language}\nx\n```") == ["    x"]


def test_an_address_is_shown_unless_it_is_the_whole_text_of_its_link() -> None:
    assert shown("[a.example/b.example](b.example)") == ["a.example/b.example (b.example)"]
    assert shown("[b.example](b.example)") == ["b.example"]


def test_a_long_line_of_code_is_not_highlighted() -> None:
    """A lexer takes quadratic time for it."""
    line = "x = 1 " * 1000
    assert code_lines(f"x = 1\n{line}", "py") == ["x = 1", line]
    assert code_lines("x = 1", "py") != ["x = 1"]


@given(st.text(alphabet="ab *_`#->|[]()<>&1.\n\t日:", max_size=80))
def test_no_letter_is_lost(text: str) -> None:
    """Except for the language of a fence."""
    text = text.replace("```", "`")
    wanted = [letter for letter in text if letter in "ab日"]
    assert sorted(wanted) == sorted(letter for letter in "".join(shown(text)) if letter in "ab日")
