"""Columns are aligned on a terminal, whatever the width of characters; no short cell is cut."""

from __future__ import annotations

import io
from functools import partial

import pytest

from session_memory.common.system._wrapping import width_of
from session_memory.common.system.plain_output import plain_text
from session_memory.common.system.tables import AlignedRows, HeadedRows, fitted
from session_memory.common.system.terminal import Terminal

ROWS = [
    ("ID", "LINES", "TITLE"),
    ("1", "3", "日本語 of the cart and the mail"),
    ("22", "12,000", "plain"),
]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_all_words_and_a_column_for_each_character() -> None:
    assert HeadedRows(ROWS, [1]).lines(None) == [
        "ID   LINES  TITLE",
        "1        3  日本語 of the cart and the mail",
        "22  12,000  plain",
    ]


def test_columns_begin_in_the_same_place() -> None:
    rows = [("A", "B"), ("日本語", "x"), ("abc", "y")]
    assert HeadedRows(rows).lines(80) == ["A       B", "日本語  x", "abc     y"]


def test_the_widest_cells_end_after_a_word_until_a_row_fits() -> None:
    for room in range(25, 44):
        head, first, second = HeadedRows(ROWS, [1]).lines(room)
        assert max(map(width_of, (head, first, second))) <= room
        assert f"1        3  {ROWS[1][2]} ".startswith(f"{first.rstrip('…')} ")
        assert second == "22  12,000  plain"


def test_ids_numbers_and_short_cells_stay_whole() -> None:
    rows = [
        ("ID", "PROJECT", "LINES", "AGE", "TITLE"),
        ("x" * 36, "y" * 30, "9" * 13, "just now", "Show me how the cart works"),
    ]
    [head, row] = HeadedRows(rows, [2]).lines(90)
    assert row == f"{'x' * 36}  {'y' * 12}…  {'9' * 13}  just now  Show me how…"
    assert width_of(head) <= 90


def test_the_end_of_a_long_path_is_left() -> None:
    rows = [("ID", "PATH"), ("1", "/srv/" + "long/" * 30 + "shop"), ("2", "~/shop")]
    assert HeadedRows(rows).lines(20) == ["ID  PATH", "1   …/long/long/shop", "2   ~/shop"]


@pytest.mark.parametrize("shares", [[1.0, 0.5], [0.001, 0.0]])
def test_bars_end_the_rows_on_a_terminal_and_nowhere_else(shares: list[float]) -> None:
    rows = [("DAY", "DOLLARS"), ("mon", "2"), ("tue", "1"), ("all", "3")]
    screen, pipe = Screen(), io.StringIO()
    for out in (screen, pipe):
        Terminal({"NO_COLOR": "1"}, out=out).table(rows, [1], shares)
    assert pipe.getvalue().splitlines() == [
        "DAY  DOLLARS",
        "mon        2",
        "tue        1",
        "all        3",
    ]
    lengths = [line.count("━") for line in screen.getvalue().splitlines()]
    assert lengths == [0, *[max(round(share * 24), share > 0) for share in shares], 0]
    assert screen.getvalue().replace("━", "").replace("  \n", "\n") == pipe.getvalue()


def test_without_room_there_are_no_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "16")
    screen = Screen()
    terminal = Terminal({}, out=screen)
    terminal.table([("NAME", "TEXT"), ("a", "word " * 9)], [], [1.0])
    assert "━" not in screen.getvalue()
    monkeypatch.setenv("COLUMNS", "80")
    [bar] = terminal.with_bars([terminal.paint("bold", "name")], [1.0])
    assert plain_text(bar) == f"\x1b[1mname\x1b[0m  \x1b[34m{'━' * 24}\x1b[0m"


def test_a_part_of_both_is_left_of_two_texts_in_a_cell() -> None:
    rows = [("TITLE",), ("Show me how the cart works → Add a factor for large orders",)]
    for room in range(30, 58):
        _, line = HeadedRows(rows).lines(room)
        first, then = line.split(" → ")
        assert width_of(line) <= room
        assert rows[1][0].startswith(first.rstrip("…"))
        assert f"→ {then.rstrip('…')}" in rows[1][0]


@pytest.mark.parametrize("text", ["Show the cart", "日本語の要求を見せてください", "x" * 40])
def test_a_text_fits_into_its_columns(text: str) -> None:
    for room in range(1, 60):
        shown = fitted(text, room)
        assert width_of(shown) <= max(room, 2)
        assert text.startswith(shown.rstrip("…"))


def test_rows_have_their_last_cells_in_the_columns_that_are_left() -> None:
    rows = [
        (("日本語", "", "9"), "店の時間を直す"),
        (("shop", "", "10"), "Fix the hours of the shop"),
    ]
    lines = AlignedRows([(cells, partial(fitted, text)) for cells, text in rows], [2]).lines(24)
    assert lines == ["日本語   9  店の時間を…", "shop    10  Fix the…"]


def test_in_little_room_only_the_later_of_two_texts_is_shown() -> None:
    assert fitted("Show me the cart → Add a factor for orders", 24) == "Add a factor for orders"
