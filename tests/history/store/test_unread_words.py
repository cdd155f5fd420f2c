"""A store of an earlier version gets a person's words that this version had left out."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from unittest.mock import patch

import pytest
from records import assistant, new_id, user, write
from store_scene import MONDAY, StoreUser

from session_memory.app.upkeep.runner import do_upkeep

SKILL = (
    "<command-message>plan-work</command-message>\n<command-name>/plan-work</command-name>\n"
    "<command-args>make the marigold parser accept umlauts</command-args>"
)
WORDS = "/plan-work make the marigold parser accept umlauts"


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user whose earlier version ingested three sessions: one that began with a skill, a plain
    one, and one whose transcript is gone."""
    machine = StoreUser(tmp_path)
    machine.session("a", user(SKILL, at=MONDAY), assistant("It accepts them.", at=MONDAY + 1))
    machine.session("b", user("Water the beans", at=MONDAY), assistant("Done.", at=MONDAY + 1))
    gone = machine.session(
        new_id(),
        user(SKILL.replace("marigold", "tulip"), at=MONDAY),
        assistant("Planned.", at=MONDAY),
    )
    machine.run("ingest")
    forget_the_words(machine)
    gone.unlink()
    return machine


def forget_the_words(machine: StoreUser) -> None:
    """Turn the store into one of version 0.4.2.

    It lacks the words after commands, and the new table."""
    connection = sqlite3.connect(machine.database)
    words = "FROM memory_transcript_entries WHERE content LIKE '/plan-work %'"
    connection.execute(f"DELETE FROM memory_item_keys WHERE id IN (SELECT id {words})")
    connection.execute(f"DELETE {words}")
    connection.execute("DROP TABLE memory_unread_words")
    connection.execute("DELETE FROM migrations WHERE name = 'add_unread_words'")
    connection.commit()
    connection.close()


def texts(machine: StoreUser) -> list[str]:
    connection = sqlite3.connect(machine.database)
    rows = connection.execute(
        "SELECT content FROM memory_transcript_entries ORDER BY id"
    ).fetchall()
    connection.close()
    return [text for (text,) in rows]


def test_the_next_ingest_takes_the_words_in_where_the_transcript_is_there(machine):
    assert WORDS not in texts(machine)
    machine.run("ingest")
    assert WORDS in texts(machine)
    assert sorted(texts(machine)) == sorted(
        [WORDS, "It accepts them.", "Water the beans", "Done.", "Planned."]
    )
    assert [row["title"] for row in machine.result("conversations")["conversations"]].count(
        WORDS
    ) == 1


def test_a_session_that_lacks_nothing_is_not_read_again(machine):
    machine.run("ingest")
    connection = sqlite3.connect(machine.database)
    before = connection.execute(
        "SELECT id FROM memory_file_states WHERE file_path LIKE '%b.jsonl'"
    ).fetchall()
    assert connection.execute("SELECT count(*) FROM memory_unread_words").fetchone() == (0,)
    connection.close()
    machine.run("ingest")
    connection = sqlite3.connect(machine.database)
    assert (
        connection.execute(
            "SELECT id FROM memory_file_states WHERE file_path LIKE '%b.jsonl'"
        ).fetchall()
        == before
    )
    connection.close()


def test_a_block_of_a_program_leaves_a_stored_message(machine):
    machine.session(
        "c", user("<system_instruction>\nBe kind.\n</system_instruction>\n\nMend it", at=MONDAY)
    )
    machine.run("ingest")
    connection = sqlite3.connect(machine.database)
    stored = "<system_instruction>\nBe kind.\n</system_instruction>\n\nMend it"
    connection.execute(
        "UPDATE memory_transcript_entries SET content = ? WHERE content = 'Mend it'", (stored,)
    )
    connection.execute("INSERT INTO memory_unread_words SELECT id FROM memory_file_states")
    connection.commit()
    connection.close()
    machine.run("ingest")
    assert "Mend it" in texts(machine)
    assert stored not in texts(machine)


def test_a_transcript_outside_the_watched_directories_is_not_forgotten(machine, tmp_path):
    backup = tmp_path / "backup" / "projects" / "-srv-agent" / f"{new_id()}.jsonl"
    write(
        backup,
        user("Prune the hedge", at=MONDAY),
        user(SKILL.replace("marigold", "fern"), at=MONDAY),
    )
    machine.run("ingest", "--dir", tmp_path / "backup")
    forget_the_words(machine)
    machine.run("ingest")
    assert "Prune the hedge" in texts(machine)


def test_upkeep_takes_the_words_in(machine):
    with patch.dict(os.environ):
        do_upkeep(str(machine.database.parents[1]), machine.environment)
    assert WORDS in texts(machine)
