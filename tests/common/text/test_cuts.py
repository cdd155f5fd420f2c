"""Secrets are redacted before anything is cut, so no piece of a token is stored or shown."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from archives_scene import archive, titled
from memories_scene import MemoryDirectory, conversation
from records import assistant, user, write
from store_scene import Scene, StoreUser
from text_scene import fill

from session_memory.awareness.activity.call_log import EDITED
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.collisions._lines import lines_of
from session_memory.awareness.activity.collisions.facts import HEAD, TAKEN, Fact
from session_memory.awareness.activity.report import Report, SessionSummary
from session_memory.awareness.activity.updates import open_update
from session_memory.awareness.activity.viewpoint import Viewpoint
from session_memory.awareness.events.log import HookLog
from session_memory.common.text.sanitize import beginning, for_people, shortened
from session_memory.extras.host import _log as host_log
from session_memory.extras.host._log import HostLog
from session_memory.history.search.search import _snippet
from session_memory.history.store.ingest import extract
from session_memory.memory import format, prompt_index
from session_memory.memory.strategy import Memory
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.transcripts.entries import Session
from session_memory.sessions.transcripts.gate import describe
from session_memory.sessions.transcripts.log import last_entries, render

RANDOM = random.Random(11)
PIECE = 8  # so many characters of a token together are a piece of it
ERROR_CUTS = (extract.ERROR_CHARACTERS, 1000, extract.LOOKED_AT_CHARACTERS)
TITLE_CUTS = (24, 40, 50, 60, 80, 100, 200)
TEXT_CUTS = (64, 100, 200, 464, 500, 600, 1000, extract.ARGUMENT_CHARACTERS)
PAGE_CUTS = (100, format.TITLE_CHARACTERS, prompt_index.TEXT_CHARACTERS)
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
        pieces = {
            token[at : at + PIECE]
            for token in self.tokens
            for at in range(0, len(token) - PIECE + 1)
        }
        runs = re.findall(f"[0-9A-Fa-f]{{{PIECE},}}", content)  # of which the tokens are
        found = (run[at : at + PIECE] for run in runs for at in range(len(run) - PIECE + 1))
        return [piece for piece in found if piece in pieces]


def content_of(directory: Path) -> str:
    """The names and the bytes of all files below `directory`."""
    return "\n".join(
        f"{path.name} {path.read_bytes().decode('latin-1')}"
        for path in directory.rglob("*")
        if path.is_file()
    )


def failed(call: str, text: str) -> dict[str, object]:
    return user([{"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}])


def use(call: str, name: str = "Bash", command: str = "make") -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": {"command": command}}


def test_the_store_keeps_no_piece_of_a_token_of_texts_arguments_errors_titles_directories_and_tools(
    tmp_path,
):
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
        second = write(
            tmp_path / "t" / f"b{number}.jsonl",
            user("hi"),
            assistant(use("c", command=text)),
            titled(text),
        )
        archive(
            second, tmp_path / "archives", session=f"{number + 500:08}-451e-4af5-86d1-3e839200d98d"
        )
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
        settings = Settings({}, ())
        observed = Observation(own, [Session("one", str(path), is_elsewhere=True)], settings)
        update = open_update(observed, now=NOW, limit=2000)
        with update as delivery:
            told += delivery.text
    assert "word" in told
    assert planted.pieces_in(told) == []
    assert (
        planted.pieces_in("".join(path.read_text() for path in tmp_path.rglob("cursors.json")))
        == []
    )


def test_titles_logs_errors_and_snippets_show_no_piece_of_a_token(tmp_path):
    planted, shown = Planted(), []
    for text in [text for cut in (*TITLE_CUTS, *TEXT_CUTS) for text in planted.around(cut, 9)]:
        path = write(tmp_path / "one.jsonl", user(text), assistant(use("c", command=text)))
        shown.append(describe(runtime("agent-sdk"), str(path)).title)
        shown.append(render(*last_entries(runtime("agent-sdk"), str(path), 9, None)))
        shown.append(_snippet(text, {}, lambda _: [])[0])
        shown += [shortened(text, cut) for cut in TITLE_CUTS]
    for text in [text for cut in ERROR_CUTS for text in planted.around(cut, 3)]:
        shown += [
            extract._error_line(for_people(extract._error_text(output)))
            for output in (f"Error: {text}", text * 20)
        ]
    assert planted.pieces_in("\n".join(shown)) == []


def test_no_place_branch_command_or_name_in_an_update_shows_a_piece_of_a_token(tmp_path):
    planted, told = Planted(), ""
    texts = [
        text.partition(" and ")[0].replace(" ", "-")
        for cut in (24, 40, 60)
        for text in planted.around(cut, 3)
    ]
    for number, text in enumerate(texts):
        path = write(tmp_path / f"{number}.jsonl", user("hello", at=NOW - 50, cwd=f"/srv/{text}"))
        own = OwnSession("main", runtime("agent-sdk"), str(tmp_path / "cursors" / f"{number}.json"))
        for session in (
            Session("one", str(path), is_elsewhere=True),
            Session("two", str(path), worktree=text),
        ):
            settings = Settings({}, ())
            with open_update(
                Observation(own, [session], settings), now=NOW, limit=2000
            ) as delivery:
                told += delivery.text or ""
    facts = [
        Fact(
            kind,
            str(number),
            NOW,
            path=f"/srv/{text}",
            heads=(text, text),
            words=("checkout", text),
        )
        for number, text in enumerate(texts)
        for kind in (HEAD, TAKEN, EDITED)
    ]
    others = {
        str(number): Report(text, SessionSummary(), last_active=NOW)
        for number, text in enumerate(texts)
    }
    for other in others.values():
        other.may_quote = True
    lines, _ = lines_of(facts, others, Viewpoint("/srv", ""), NOW, 1_000_000)
    assert len(lines) == len(facts)
    assert told.count(", in worktree w") == told.count('"hello" in w') == len(texts)
    assert planted.pieces_in(told + "\n".join(lines)) == []


def test_neither_pages_of_memories_nor_their_index_have_a_piece_of_a_token(tmp_path):
    planted, memories = Planted(), MemoryDirectory(tmp_path)
    texts = [
        text for cut in (*PAGE_CUTS, format.TEXT_CHARACTERS) for text in planted.around(cut, 9)
    ]
    made = [Memory("fact", text, text, text, text) for text in texts] + [
        Memory("fact", "", text) for text in texts
    ]
    made += [Memory("project", f"p{number}", "", text) for number, text in enumerate(texts)]
    memories.keep(*made, of=conversation()._replace(cwd=f"/srv/{planted.text(8)}"))
    memories.refresh()
    memories.close()
    assert "[redacted: token]" in memories.page("facts.md").read_text()
    assert planted.pieces_in(content_of(tmp_path)) == []


def test_neither_memories_made_without_a_model_nor_patterns_nor_errors_show_a_piece_of_a_token(
    tmp_path,
):
    home, planted = StoreUser(tmp_path), Planted()
    for number, cut in enumerate((*TITLE_CUTS, *ERROR_CUTS[:2])):
        records = [user("Make the garden grow, please", at=NOW)]
        for at, text in enumerate(planted.around(cut, 9)):
            calls = [use(f"{number}-{at}-{again}", command=f"make {text}") for again in range(3)]
            for call in calls[:2]:
                records += [assistant(call, at=NOW + at), failed(str(call["id"]), f"Error: {text}")]
            path = {
                "type": "tool_use",
                "id": f"e{number}-{at}",
                "name": "Edit",
                "input": {"file_path": f"/srv/{text}"},
            }
            records += [assistant(calls[2], path, at=NOW + at), user(text, at=NOW + at)]
            records += [
                user(
                    [{"type": "tool_result", "tool_use_id": calls[2]["id"], "content": "done"}],
                    at=NOW + at,
                )
            ]
        home.session(f"s{number}", *records, titled(planted.text(cut - 20)))
    assert home.run("process").returncode == 0
    shown = (
        home.run("patterns", "--limit", 1000).stdout
        + home.run("patterns", "--json", "--limit", 1000).stdout
    )
    shown += (
        home.run("errors", "word", "--limit", 1000).stdout
        + home.run("memories", "--limit", 1000).stdout
    )
    kept = content_of(tmp_path / ".session-memory")
    assert "make word" in shown
    assert "redacted" in shown
    assert "Make the garden grow" in kept
    assert planted.pieces_in(shown + kept) == []


def test_no_line_of_a_log_has_a_piece_of_a_token(tmp_path):
    planted, shown = Planted(), []
    log = HostLog(str(tmp_path / "host.log"), lambda line, is_fault: shown.append(line))
    hook_log = HookLog(person_home({"HOME": str(tmp_path)}))
    for text in planted.around(host_log.LINE_CHARACTERS, 1):
        log.event(text)
        log.fault(text)
        hook_log.write_fault("prompt", ValueError(text))
    assert len(shown) > 100
    assert "word" in (tmp_path / ".session-memory" / "state" / "hook.log").read_text()
    assert planted.pieces_in("\n".join(shown) + content_of(tmp_path)) == []


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
