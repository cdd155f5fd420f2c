"""Secrets are out before anything is cut: wherever a token stands, no piece of it is kept or shown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from archives_scene import archive, titled
from records import assistant, user, write
from store_scene import Scene
from text_scene import fill

from session_memory.activity.changes import OwnSession
from session_memory.activity.delivery import open_update
from session_memory.runtimes import runtime
from session_memory.settings.compiled import Settings
from session_memory.store.ingest import error_lines, extract
from session_memory.store.search.snippet import excerpts
from session_memory.text.sanitize import beginning, for_people, shortened
from session_memory.transcripts.entries import Session
from session_memory.transcripts.log import last_entries, render
from session_memory.transcripts.sessions import title_of

RANDOM = random.Random(11)
PIECE = 8  # so many characters of a token together are a piece of it
ERROR_CUTS = (error_lines.ERROR_CHARACTERS, 1000, error_lines.LOOKED_AT_CHARACTERS)
TITLE_CUTS = (24, 40, 50, 60, 80, 100, 200)
TEXT_CUTS = (64, 100, 200, 464, 500, 600, 1000, extract.ARGUMENT_CHARACTERS)
NOW = 1_790_000_000.0


class Planted:
    """Texts with tokens, each with one of its own; and whether a piece of any of them is in something."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    def text(self, offset: int, word: str = "word ") -> str:
        """A text with a token behind `offset` characters."""
        token = fill("hex", 64, RANDOM)
        self.tokens.append(token)
        before = (word * (offset // len(word) + 1))[: max(0, offset - 7)]
        return f"{before} token={token} and so on " + word * 40

    def around(self, cut: int, step: int = 5, word: str = "word ") -> list[str]:
        """Texts with a token at every offset around a cut."""
        return [self.text(offset, word) for offset in range(max(8, cut - 72), cut + 6, step)]

    def pieces_in(self, content: str) -> list[str]:
        pieces = (token[at : at + PIECE] for token in self.tokens for at in range(0, len(token) - PIECE + 1))
        return [piece for piece in pieces if piece in content]


def content_of(directory: Path) -> str:
    """The names and the bytes of all files below `directory`."""
    return "\n".join(
        f"{path.name} {path.read_bytes().decode('latin-1')}" for path in directory.rglob("*") if path.is_file()
    )


def failed(call: str, text: str) -> dict[str, object]:
    return user([{"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}])


def use(call: str, name: str = "Bash", command: str = "make") -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": {"command": command}}


def test_the_store_keeps_no_piece_of_a_token_of_texts_arguments_errors_titles_directories_and_tools(tmp_path):
    scene, planted = Scene(tmp_path), Planted()
    records = [user(text) for cut in TEXT_CUTS for text in planted.around(cut, 9)]
    commands = [text for cut in TEXT_CUTS for text in planted.around(cut)]
    errors = [f"Error: {text}" for cut in ERROR_CUTS for text in planted.around(cut)]
    errors += [f"{'x ' * 200}\n" * 9 + f"Error: {text}" for text in planted.around(300)]
    records += [assistant(use(f"c{n}", command=command)) for n, command in enumerate(commands)]
    for number, error in enumerate(errors):
        records += [assistant(use(f"e{number}")), failed(f"e{number}", error)]
    records += [assistant(use("n", name=planted.text(8)))]
    records += [user("elsewhere", cwd=f"/srv/{planted.text(8)}"), titled(planted.text(50))]
    scene.write("one", *records)
    for number, text in enumerate(text for cut in TITLE_CUTS for text in planted.around(cut, 9)):
        scene.write(f"titled{number}", user("hello"), titled(text))
    scene.ingest()
    scene.store.close()
    kept = content_of(scene.database.parent)
    assert "[redacted: token]" in kept
    assert planted.pieces_in(kept) == []


def test_an_archive_has_no_piece_of_a_token_in_its_name_its_title_or_its_text(tmp_path):
    planted = Planted()
    for number, text in enumerate(text for cut in TITLE_CUTS for text in planted.around(cut, 9)):
        first = write(tmp_path / "t" / f"{number}.jsonl", user(text), assistant("yes"))
        archive(first, tmp_path / "archives", session=f"{number:08}-451e-4af5-86d1-3e839200d98d")
        second = write(tmp_path / "t" / f"b{number}.jsonl", user("hi"), assistant(use("c", command=text)), titled(text))
        archive(second, tmp_path / "archives", session=f"{number + 500:08}-451e-4af5-86d1-3e839200d98d")
    kept = content_of(tmp_path / "archives")
    assert "redacted" in kept
    assert planted.pieces_in(kept) == []


def test_neither_an_update_nor_the_cursors_have_a_piece_of_a_token(tmp_path):
    planted, told = Planted(), ""
    for number, text in enumerate(text for cut in TEXT_CUTS for text in planted.around(cut, 11)):
        folder = tmp_path / str(number)
        edit = {"type": "tool_use", "id": "c", "name": "Edit", "input": {"file_path": text}}
        records = [user(text, at=NOW - 50), assistant(text, edit, at=NOW - 40, cwd=f"/srv/{text}")]
        path = write(folder / "one.jsonl", *records, *([titled(text)] if number % 2 else []))
        own = OwnSession("main", runtime("agent-sdk"), str(folder / "cursors.json"))
        sessions = [Session("one", str(path), is_elsewhere=True)]
        update = open_update(own, sessions, settings=Settings({}, ()), now=NOW, limit=2000)
        with update as delivery:
            told += delivery.text
    assert "word" in told
    assert planted.pieces_in(told) == []
    assert planted.pieces_in("".join(path.read_text() for path in tmp_path.rglob("cursors.json"))) == []


def test_titles_logs_errors_and_snippets_show_no_piece_of_a_token(tmp_path):
    planted, shown = Planted(), []
    for text in [text for cut in (*TITLE_CUTS, *TEXT_CUTS) for text in planted.around(cut, 9)]:
        path = write(tmp_path / "one.jsonl", user(text), assistant(use("c", command=text)))
        shown.append(title_of(runtime("agent-sdk"), str(path)))
        shown.append(render(*last_entries(runtime("agent-sdk"), str(path), 9)))
        shown += [excerpt.text for excerpt in excerpts([text], {}, lambda _: [])]
        shown += [shortened(text, cut) for cut in TITLE_CUTS]
    for text in [text for cut in ERROR_CUTS for text in planted.around(cut, 3)]:
        shown += [error_lines.error_line(f"Error: {text}"), error_lines.error_line(text * 20)]
    assert planted.pieces_in("\n".join(shown)) == []


class TestBeginning:
    @pytest.mark.parametrize("blank", [" ", "\n", "\t"])
    def test_it_ends_behind_a_word(self, blank):
        assert beginning(f"one two{blank}three", 5) == "one two"
        assert beginning("one two", 5) == "one two"
        assert beginning("one", 5) == "one"

    def test_a_word_without_an_end_is_left_out(self):
        assert beginning("one " + "x" * 100_000, 50) == "one "

    def test_no_piece_of_a_token_is_left_at_any_offset(self):
        planted = Planted()
        for text in planted.around(300, 1):
            assert planted.pieces_in(for_people(beginning(text, 300))) == []
