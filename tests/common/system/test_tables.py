"""Columns are aligned on a terminal, whatever the width of characters; no word is cut."""

from __future__ import annotations

import io

import pytest

from session_memory.common.system._tables import table_lines
from session_memory.common.system._wrapping import width_of
from session_memory.common.system.plain_output import plain_text
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
    assert table_lines(ROWS, [1], None) == [
        "ID   LINES  TITLE",
        "1        3  日本語 of the cart and the mail",
        "22  12,000  plain",
    ]


def test_columns_begin_in_the_same_place() -> None:
    rows = [("A", "B"), ("日本語", "x"), ("abc", "y")]
    assert table_lines(rows, [], 80) == ["A       B", "日本語  x", "abc     y"]


def test_the_widest_cells_end_after_a_word_until_a_row_fits() -> None:
    for room in range(25, 44):
        head, first, second = table_lines(ROWS, [1], room)
        assert max(map(width_of, (head, first, second))) <= room
        assert f"1        3  {ROWS[1][2]} ".startswith(f"{first.rstrip('…')} ")
        assert second == "22  12,000  plain"


def test_what_cannot_be_broken_stays_whole() -> None:
    rows = [("ID", "PATH"), ("1", "/srv/" + "long" * 30)]
    assert table_lines(rows, [], 40) == ["ID  PATH", "1   /srv/" + "long" * 30]


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
