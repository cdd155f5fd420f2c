"""How texts lie in a store: smaller than they are, and whole again when they are read, or else the store is corrupt."""

from __future__ import annotations

from pathlib import Path
from random import Random

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_scene import EVERYTHING, Scene, put, said, state, tool

from session_memory.store.sqlite.repair import recut
from session_memory.store.sqlite.texts import (
    LEARNT_FROM_BYTES,
    LEAST_BYTES,
    LEAST_TEXTS,
    Texts,
    dictionary_of,
    size_of,
)
from session_memory.store.values import ToolOutcome
from session_memory.system.sqlite import CorruptDatabaseError

LONG = "Please look into why the deployment of the billing service fails since yesterday evening. " * 3
PATHS = [f"cat /srv/agent/projects/billing-service/src/handlers/invoice_{number}.py | head" for number in range(3000)]


def texts(dictionary: bytes = b"") -> Texts:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE memory_dictionaries (number INTEGER PRIMARY KEY, content BLOB NOT NULL)")
    if dictionary:
        connection.execute("INSERT INTO memory_dictionaries VALUES (1, ?)", (dictionary,))
    return Texts(connection)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def kept_texts(scene: Scene) -> list[str | bytes]:
    return [kept for (kept,) in scene.store.connection.execute("SELECT text FROM memory_texts ORDER BY id")]


@pytest.mark.parametrize("dictionary", [b"", dictionary_of(PATHS)], ids=["alone", "with a dictionary"])
@given(st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(PATHS), st.integers(0, 300))
@settings(max_examples=200, deadline=None)
def test_a_text_is_read_as_it_was_kept(dictionary, text, characters):
    known = texts(dictionary)
    for one in (text, text * 40):
        kept = known.kept(one)
        assert known.whole(kept) == one
        assert known.beginning(kept, characters) == (one[:characters], len(one.encode()))
        assert size_of(kept) == len(one.encode())


def test_what_is_short_or_would_not_get_smaller_lies_as_it_is():
    noise = "".join(Random(1).sample([chr(code) for code in range(33, 127)], 80))
    assert texts().kept("a" * (LEAST_BYTES - 1)) == "a" * (LEAST_BYTES - 1)
    assert texts().kept(noise) == noise
    assert len(texts().kept(LONG)) < len(LONG) / 2


def test_a_dictionary_makes_short_texts_smaller():
    path = "cat /srv/agent/projects/billing-service/src/handlers/refund.py | tail -n 20"
    alone, together = texts().kept(path), texts(dictionary_of(PATHS)).kept(path)
    assert len(together) < len(path) / 2 < len(alone)


def test_a_store_makes_one_dictionary_as_soon_as_it_holds_enough_text(scene):
    few, enough = PATHS[:300], PATHS[300 : 300 + LEARNT_FROM_BYTES // 60]
    put(scene, None, state("a"), said("", tools=tuple(map(tool, few))))
    assert not any(isinstance(kept, bytes) and kept[0] for kept in kept_texts(scene))
    put(scene, None, state("b"), said("b", tools=tuple(map(tool, enough))))
    put(scene, None, state("c"), said("c", tools=tuple(map(tool, PATHS[2000:]))))
    numbers = [kept[0] for kept in kept_texts(scene) if isinstance(kept, bytes)]
    assert numbers[-len(PATHS[2000:]) :] == [1] * len(PATHS[2000:])
    assert scene.store.connection.execute("SELECT number FROM memory_dictionaries").fetchall() == [(1,)]
    assert scene.texts() == [f"Bash {path}" for path in few] + [
        one for first, paths in (("b", enough), ("c", PATHS[2000:])) for one in (first, *[f"Bash {p}" for p in paths])
    ]


def test_the_dictionary_is_made_of_what_came_bit_by_bit_too(scene):
    for number in range(12):
        part = PATHS[100 * number : 100 * (number + 1)]
        put(scene, None, state(str(number)), said(str(number), tools=tuple(map(tool, part))))
    [(made,)] = scene.store.connection.execute("SELECT content FROM memory_dictionaries").fetchall()
    assert b"/srv/agent/projects/billing-service/src/handlers/ " in made


def test_a_dictionary_holds_nothing_that_is_said_only_once_or_twice():
    common = [f"common-word and-{number}" for number in range(LEAST_TEXTS)]
    rare = ["a-rare-word /home/ann/diary.md", "a-rare-word again"] * (LEAST_TEXTS // 2)
    assert (
        dictionary_of([*common, *rare, "common-word common-word lonely-word lonely-word lonely-word"])
        == b"common-word "
    )


def test_a_dictionary_that_was_undone_with_its_batch_is_made_again(scene):
    paths = tuple(map(tool, PATHS[:2000]))
    with pytest.raises(Exception, match="CHECK"):
        put(scene, None, state("a"), said("a", tools=paths), said("x", role="nobody"))
    put(scene, None, state("a"), said("a", tools=paths))
    assert scene.texts()[1:] == [f"Bash {path}" for path in PATHS[:2000]]


def test_all_that_is_told_of_a_long_text_is_told_of_a_packed_one(scene):
    ended = ToolOutcome("error", f"Error: {LONG}"[:300], 900, 9)
    put(scene, None, state(), said(f"{LONG} 🎉 kumquat"), said("", 1, "assistant", tools=(tool(LONG * 2, ended),)))
    assert all(isinstance(kept, bytes) for kept in kept_texts(scene))
    [conversation] = scene.conversations()
    assert conversation.title == LONG[:80]
    first, use = scene.items(conversation)
    assert (first.text, use.text, use.error) == (f"{LONG} 🎉 kumquat", LONG * 2, ended.error)
    for query in ("kumquat", "🎉", '"billing service" kumquat'):
        hit = scene.store.search(query, EVERYTHING)[0]
        assert (hit.entry.text, hit.conversation.title) == (first.text, LONG[:80])


def test_an_error_that_comes_later_is_packed_too(scene):
    first = put(scene, None, state(), said("", tools=(tool("ls", call="1"),)))
    use = tool("ls", call="1")
    put(scene, first, first._replace(offset=5), outcomes=[(use.call, ToolOutcome("error", LONG[:250], 300, 3))])
    [item] = scene.items(scene.conversations()[0])
    assert item.error == LONG[:250]
    assert isinstance(scene.store.connection.execute("SELECT error FROM memory_tool_uses").get, bytes)


def test_packed_texts_count_in_conversations_as_long_as_they_are(scene):
    put(scene, None, state(), said(LONG), said(f"{LONG} again", 5))
    before = scene.store.counts().text_bytes
    assert before == 2 * len(LONG) + len(" again")
    assert recut(scene.store, 2)
    assert len(scene.conversations()) == 2
    assert scene.store.counts().text_bytes == before


def test_a_forgotten_original_leaves_its_keys_to_the_fork(scene):
    both = (said(LONG, tools=(tool("ls -l"),)),)
    put(scene, None, state("a"), *both, said("mine", 1))
    put(scene, None, state("b"), *both, said("other way", 2))
    scene.store.forget("", "-srv-agent/a.jsonl")
    put(scene, None, state("c"), *both, said("mine", 3))
    assert scene.store.counts().entries == 3
    assert scene.store.counts().tool_uses == 1
    assert [len(scene.items(one)) for one in scene.conversations()] == [3, 3]
    for name in ("b", "c"):
        scene.store.forget("", f"-srv-agent/{name}.jsonl")
    assert scene.store.connection.execute("SELECT count(*) FROM memory_item_keys").get == 0
    assert scene.store.search("deployment", EVERYTHING) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda kept: kept[:-3],
        lambda kept: kept[:1] + bytes([kept[1] - 1]) + kept[2:],
        lambda kept: bytes([9]) + kept[1:],
        lambda kept: kept[:1] + bytes([kept[1] + 1]) + kept[2:],
        lambda kept: kept[:1],
        lambda kept: b"",
        lambda kept: b"\0" + b"\xff" * 40,
        lambda kept: kept[:3] + b"\xff" * 10,
    ],
    ids=["cut off", "too long", "no such dictionary", "too short", "no size", "empty", "endless size", "no deflate"],
)
def test_a_text_that_cannot_be_read_makes_the_store_corrupt(scene, broken):
    put(scene, None, state(), said(LONG))
    [(kept,)] = scene.store.connection.execute("SELECT content FROM memory_transcript_entries").fetchall()
    scene.store.connection.execute("UPDATE memory_transcript_entries SET content = ?", (broken(kept),))
    with pytest.raises(CorruptDatabaseError, match="a text cannot be read"):
        next(scene.store.entries(1))
    with pytest.raises(CorruptDatabaseError):
        scene.store.search("deployment", EVERYTHING)
