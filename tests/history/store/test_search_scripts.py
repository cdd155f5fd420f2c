"""Search in the world's scripts: words with vowel signs and points are words, with both engines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from zlib import crc32

import pytest
from records import assistant, exchange, user
from store_scene import Scene
from team_scene import TeamScene, memory

from session_memory.common.system.sqlite import open_file
from session_memory.common.text.letters import Aligned, compatible
from session_memory.common.text.marks import folded
from session_memory.extras.team.postgres.memories import push_memories, pushed_memories
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.history.search.index import spaced
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.redaction import rule_set
from session_memory.history.store.values import Filter, Hits
from session_memory.memory.memory_index import IndexedMemory, MemoryFilter, MemoryIndex

START = 1_780_000_000
DAY = 86_400
# Words of the same letters that differ in their signs, by script; the first is looked for.
ALIKE = {
    "Hindi": ("दिन", "दान", "दीन"),
    "Tamil": ("பல்", "பால்", "பில்"),
    "Bengali": ("দিন", "দান", "দীন"),
    "Telugu": ("కల", "కాల", "కీల"),
    "Sinhala": ("ගල", "ගාල", "ගිල"),
    "Thaana": ("ބަސް", "ބިސް", "ބުސް"),
    "Thai": ("วัน", "วิน", "วุน"),
    "Khmer": ("កុក", "កូក", "កិក"),
    "Myanmar": ("ကား", "ကူး", "ကီး"),
}
# How a word is typed, and how it may stand in a text.
SAME = {
    "Hebrew": ("שלום", "שָׁלוֹם"),
    "Arabic": ("العربية", "العَرَبِيَّة"),
    "Arabic stretched": ("محمد", "محـــمد"),
    "Arabic composed": ("أخبار", "أخبار"),
    "Hindi with dots": ("ज़मीन", "जमीन"),
    "Bengali composed": ("বাড়ি", "বাড়ি"),
    "Sinhala with a joiner": ("ශ්රී", "ශ්‍රී"),
    "full width": ("Cache42", "Ｃａｃｈｅ４２"),
    "Latin": ("Zürich", "Zu\u0308rich"),
    "stroke": ("plum", "pl\u0336u\u0336m"),
    "ligature": ("workflow", "work\ufb02ow"),
    "sharp s": ("strasse", "Straße"),
    "capital sharp s": ("GROSS", "GROẞ"),
    "half-width kana": ("ガラス", "ｶﾞﾗｽ"),
    "kana with a mark apart": ("ギター", "キ\u3099ター"),
    "jamo": ("서울", "\u1109\u1165\u110b\u116e\u11af"),
    "radical": ("人々", "\u2f08々"),
    "power": ("x2", "x²"),
    "bold": ("Merge", "𝐌𝐞𝐫𝐠𝐞"),
    "Arabic forms": ("سلام", "\ufeb3\ufefc\ufee1"),
    "digraph": ("ijsje", "\u0133sje"),
    "Korean": ("한국어", "한국어"),
    "Chinese": ("旅行", "京都旅行"),
    "Japanese": ("カメラ", "カメラ"),
}


def sessions(scene: Scene, **texts: str) -> None:
    """A session for each text, said by the user, a day apart."""
    for number, (name, text) in enumerate(texts.items()):
        scene.write(name, *exchange(text, "All right.", at=START + number * DAY))
    scene.ingest()


def search(scene: Scene, query: str) -> Hits:
    return scene.told.search(query, Filter())


def found(scene: Scene, query: str) -> dict[str, list[str]]:
    """The sessions, each with the marked texts of its hit."""
    return {
        hit.conversation.session_id: [hit.snippet[start:end] for start, end in hit.marks]
        for hit in search(scene, query)
    }


def test_words_that_differ_in_a_vowel_sign_are_different_words(each_scene):
    texts = {
        f"{script} {number}": f"1 {word} 2"
        for script, words in ALIKE.items()
        for number, word in enumerate(words)
    }
    sessions(each_scene, **texts)
    for script, words in ALIKE.items():
        for number, word in enumerate(words):
            hits = found(each_scene, word)
            assert list(hits) == [f"{script} {number}"]
            assert "".join(hits[f"{script} {number}"]) == word, "the whole word is marked"
            assert list(found(each_scene, f'"{word}"')) == [f"{script} {number}"]


def test_a_word_is_found_with_and_without_the_marks_that_many_leave_out(each_scene):
    sessions(
        each_scene,
        **{
            f"{script} {form}": text
            for script, forms in SAME.items()
            for form, text in enumerate(forms)
        },
    )
    for script, forms in SAME.items():
        for word in forms[:1] if script == "Chinese" else forms:
            hits = found(each_scene, word)
            assert sorted(hits) == [f"{script} 0", f"{script} 1"], script
            shown = {"".join(marks) for marks in hits.values()}
            assert shown <= {*forms}, hits


def test_a_phrase_is_found_and_marked_whatever_form_its_letters_have(each_scene):
    sessions(
        each_scene,
        ligature="then the \ufb01rst work\ufb02ow ran, said \ufb01ne Straße 12, and ended",
        plain="then the first workflow ran, said fine strasse 12, and ended",
        other="the workflow that ran first",
        kana="この ｶﾞﾗｽの ﾌﾟﾗｸﾞｲﾝ を使う",
    )
    for typed in ('"first workflow"', '"\ufb01rst work\ufb02ow"'):
        hits = found(each_scene, typed)
        assert sorted(hits) == ["ligature", "plain"]
        assert hits["ligature"] == ["\ufb01rst", "work\ufb02ow"]
        assert hits["plain"] == ["first", "workflow"]
    assert found(each_scene, "strasse -workflow") == {}
    assert found(each_scene, '"fine STRASSE 12"')["ligature"] == ["\ufb01ne", "Straße", "12"]
    assert found(each_scene, '"プラグイン"') == {"kana": ["ﾌﾟﾗｸﾞｲﾝ"]}
    assert found(each_scene, "プ") == {"kana": ["ﾌﾟ"]}, (
        "a single character is the beginning of a word"
    )
    assert found(each_scene, "then the first workflow ran said fine")["ligature"], (
        "a sentence, without quotes"
    )


def test_a_symbol_beside_a_word_is_no_part_of_it(each_scene):
    sessions(each_scene, brand="Plum™ costs 1½ ℃ and 20％…", other="a plumtm and 112")
    assert found(each_scene, "plum") == {"brand": ["Plum"]}
    assert list(found(each_scene, "112")) == ["other"]


def test_a_sign_without_a_letter_is_no_word(each_scene):
    sessions(each_scene, warned="⚠️ the plum is ripe ❤️", other="🎉 a plum")
    assert list(found(each_scene, "⚠️ ripe")) == ["warned"]
    assert found(each_scene, "ripe")["warned"] == ["ripe"]


def with_marks(text: str) -> str:
    """The form of texts in the index of version 0.4: with their marks as they were."""
    return spaced(text)


def with_every_letter(text: str) -> str:
    """The form that followed, with each letter as it was typed."""
    return folded(spaced(text))


def index_as_before(store: str, form: Callable[[str], str], *migrations: str) -> None:
    """Make the index of an earlier version, which got texts in this form and had not run these
    migrations."""
    connection = open_file(store)
    connection.execute("INSERT INTO memory_search (memory_search) VALUES ('delete-all')")
    for table, column in (
        ("memory_transcript_entries", "content"),
        ("memory_tool_uses", "argument"),
    ):
        for item, text in connection.execute(
            f"SELECT id, {column} FROM {table} WHERE {column} != ''"
        ).fetchall():
            connection.execute(
                "INSERT INTO memory_search (rowid, text) VALUES (?, ?)", (item, form(text))
            )
    for number, *texts in connection.execute(
        "SELECT number, title, subject, content, quote FROM memories"
    ).fetchall():
        connection.execute(
            "UPDATE memories_search SET title = ?, subject = ?, content = ?, quote = ? WHERE rowid = ?",
            (*map(form, texts), number),
        )
    for name in migrations:
        connection.execute("DELETE FROM migrations WHERE name = ?", (name,))
    connection.close()


LETTERS = "index_one_form_of_letters"


@pytest.mark.parametrize(
    ("form", "migrations"),
    [(with_marks, ("index_words_whole", LETTERS)), (with_every_letter, (LETTERS,))],
)
def test_a_store_of_an_earlier_version_finds_words_whole_once_it_is_opened(
    tmp_path, form, migrations
):
    scene = Scene(tmp_path)
    words = {
        "Hindi": "दिन",
        "other": "दान",
        "Hebrew": "שָׁלוֹם",
        "Thai": "วัน",
        "ASCII": "plum",
        "Latin": "Zürich",
    }
    words |= {"ligature": "\ufb01sh", "kana": "ｶﾞﾗｽ", "sharp s": "Gruß"}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo দিন"}}
    for number, (name, text) in enumerate(words.items()):
        scene.write(name, *exchange(text, "All right.", at=START + number * DAY))
    scene.write("tool", user("Run it", at=START + 9 * DAY), assistant(call, at=START + 9 * DAY))
    scene.ingest()
    new = IndexedMemory("", "a.md", "m1", "fact", "दिन", "Tea at noon")
    index = MemoryIndex(str(scene.database))
    index.replace("", {"a.md": ("1", [new, new._replace(id="m2", title="दान")])}, ())
    index.close()
    expected = terms_in(str(scene.database))
    scene.store.close()
    index_as_before(str(scene.database), form, *migrations)
    assert terms_in(str(scene.database)) != expected
    store = SqliteStore(str(scene.database))
    hits = {
        word: [hit.conversation.session_id for hit in store.search(word, Filter())]
        for word in words.values()
    }
    assert hits == {word: [name] for name, word in words.items()}
    assert [hit.conversation.session_id for hit in store.search("দিন", Filter())] == ["tool"]
    for typed, name in {
        "שלום": "Hebrew",
        "fish": "ligature",
        "ガラス": "kana",
        "gruss": "sharp s",
    }.items():
        assert [hit.conversation.session_id for hit in store.search(typed, Filter())] == [name]
    store.close()
    index = MemoryIndex(str(scene.database))
    assert [memory.id for memory in index.search("दिन", MemoryFilter())] == ["m1"]
    index.close()
    assert terms_in(str(scene.database)) == expected, "as if it had been made now"


def test_a_team_gets_again_what_an_earlier_version_shared(tmp_path, team):
    scene = TeamScene(tmp_path, team)
    sessions(scene, day="दिन", gift="दान")
    assert list(found(scene, "दिन")) == ["day"]
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        push_memories(pushing, [memory("दिन", "m1")], ())
        before = pushed_memories(pushing)["", "m1"].mark
    team.rows("DELETE FROM posting")  # that version made other terms, and did not say which
    team.rows("UPDATE session SET rules = %s", rule_set())
    assert team.push(scene).withdrawn == 2
    assert [hit.conversation.session_id for hit in scene.reader.search("दिन", Filter())] == ["day"]
    assert team.push(scene).withdrawn == 0
    assert before == memory("दिन", "m1").mark != crc32(json.dumps(memory("दिन", "m1")).encode())


def test_every_character_has_one_form_and_keeps_its_place():
    for character in map(chr, range(0x80, sys.maxunicode + 1)):
        if not character.isalnum():
            continue
        text = f"\ufb01 {character} x"
        aligned = Aligned(text)
        start, end = len("fi "), len(aligned.form) - len(" x")
        assert (
            aligned.form[start:end]
            == compatible(character)
            == compatible(compatible(character))
            != ""
        )
        assert aligned.span(start, end) == (2, 3)
        assert aligned.span(end + 1, end + 2) == (4, 5)


def terms_in(store: str) -> list[tuple[str, str, int]]:
    """The terms of both indexes, each with an item that has it."""
    connection = open_file(store)
    found = []
    for index in ("memory_search", "memories_search"):
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, {index}, instance)"
        )
        found += [
            (index, term, item)
            for term, item in connection.execute("SELECT term, doc FROM terms ORDER BY 1, 2")
        ]
        connection.execute("DROP TABLE temp.terms")
    connection.close()
    return found
