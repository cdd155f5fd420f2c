"""Search in a store: the hits, their order, their form, and what is never found."""

from __future__ import annotations

import os
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records import assistant, exchange, lines, record, user
from share import some
from store_scene import EVERYTHING, Scene

from session_memory.awareness.activity.update_text import HEADER
from session_memory.history.search import postings as postings_module
from session_memory.history.store.values import Filter, Hit, Hits

START = 1_780_000_000
DAY = 86_400


@pytest.fixture
def scene(usual_scene: Scene) -> Scene:
    """What is done above the engines; what an engine does itself has `each_scene`."""
    return usual_scene


def sessions(scene: Scene, **texts: str) -> None:
    """A session for each text, said by the user, a day apart."""
    for number, (name, text) in enumerate(texts.items()):
        scene.write(name, *exchange(text, "All right.", at=START + number * DAY))
    scene.ingest()


def search(scene: Scene, query: str, **wanted: object) -> Hits:
    return scene.told.search(query, Filter(**wanted))


def found(scene: Scene, query: str, **wanted: object) -> list[str]:
    """The sessions, the best first."""
    return [hit.conversation.session_id for hit in search(scene, query, **wanted)]


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.marks]


def test_a_question_finds_what_it_is_about_in_whatever_form_the_words_stand(scene):
    sessions(
        scene,
        trip="We booked flights to Kyoto for April.",
        cat="The cat is ill.",
        book="I read a book about cats.",
    )
    assert found(scene, "When did we book the flight to Kyoto?")[0] == "trip"
    assert found(scene, "booking KYOTO flights") == ["trip", "book"]
    assert found(scene, "kyōto") == ["trip"], "diacritics do not matter"


def test_what_has_more_and_rarer_words_of_the_query_comes_first(scene):
    sessions(
        scene,
        a="the server is slow",
        b="the server is slow since the certificate expired",
        c="a certificate for swimming",
        d="the server room",
        e="server, server, server",
    )
    assert found(scene, "server certificate expired")[:2] == ["b", "c"]


def test_a_phrase_is_found_behind_thousands_of_newer_entries_with_its_words(scene):
    sessions(scene, old="The plum jam is in the cellar.")
    scene.write(
        "new",
        *[
            user(f"jam number {number} and a plum", at=START + DAY + number)
            for number in range(3_000)
        ],
    )
    scene.ingest()
    assert found(scene, '"plum jam"') == ["old"]


def test_a_conversation_that_is_about_the_words_comes_before_one_that_mentions_them(scene):
    scene.write(
        "mention",
        *exchange("By the way, the harbour was nice.", "Good."),
        *exchange("Now to taxes.", "Yes."),
    )
    scene.write(
        "about",
        *exchange("Tell me of the harbour.", "The harbour is old."),
        *exchange("Whose harbour?", "The town's harbour."),
    )
    scene.ingest()
    assert found(scene, "harbour")[0] == "about"


def test_of_equals_the_latest_comes_first(scene):
    sessions(scene, old="buy oat milk", new="buy oat milk today")
    sessions(scene, first="water the plants", second="water the plants")
    assert found(scene, "water plants")[0] == "second"


def test_stop_words_count_only_where_there_are_no_others(scene):
    sessions(scene, a="to be or not to be", b="the garden")
    assert found(scene, "what about the garden then") == ["b"]
    assert found(scene, "to be or not to be")[0] == "a"


def test_there_is_one_hit_for_a_conversation_unless_there_are_few(scene):
    for number in range(7):
        scene.write(f"s{number}", *exchange("a tent", "another tent", at=START + number * DAY))
    scene.ingest()
    assert sorted(found(scene, "tent")) == [f"s{number}" for number in range(7)]
    assert len(found(scene, "tent", limit=3)) == 3
    scene.write("alone", *exchange("a canoe", "the canoe", at=START + 9 * DAY))
    scene.ingest()
    assert {hit.entry.text for hit in search(scene, "canoe")} == {"a canoe", "the canoe"}
    assert len(search(scene, "canoe", limit=1)) == 1


def test_a_quoted_phrase_must_be_there_as_it_stands(scene):
    sessions(scene, a="the support group meets", b="a group that gives support", c="support groups")
    assert sorted(found(scene, '"support group"')) == ["a", "c"]
    assert found(scene, '"support group" meets')[0] == "a"
    assert found(scene, "“the support group”") == ["a"], (
        "stop words in it count, other quotation marks do"
    )


def test_where_nothing_has_the_phrase_its_words_are_looked_for(scene):
    sessions(scene, a="a group that gives support", b="nothing")
    assert found(scene, '"support group"') == ["a"]


def test_a_sentence_as_it_stands_comes_first_however_often_its_words_stand_elsewhere(scene):
    sentence = "it was then that we took the ferry"
    sessions(
        scene,
        said=f"Well. {'And so on. ' * 400} It was THEN that we\ntook the ferry, not the train.",
        other="took the ferry, the ferry took us",
        more="we took it, and the ferry took it then",
    )
    assert found(scene, sentence)[0] == "said"
    assert found(scene, "that was -then we took the ferry")[0] == "other", (
        "a minus still means what it says"
    )


def test_a_flag_in_a_line_that_somebody_ran_takes_nothing_out(scene):
    sessions(scene, ran="then run pytest -x tests/history/store again", other="run tests again")
    assert found(scene, "run pytest -x tests/history/store again")[0] == "ran"


def test_words_beside_punctuation_are_words_of_their_own(scene):
    sessions(scene, shell="the shell has a new prompt", other="a feature")
    assert found(scene, "feat(shell): prompt")[0] == "shell"


def test_what_stands_together_in_the_question_is_better_together(scene):
    sessions(scene, together="the green door opens", apart="the green house has a door that opens")
    sessions(scene, last="the door of the green house")
    assert found(scene, "green door")[0] == "together"


def test_a_time_in_a_question_lifts_what_was_said_then(scene):
    day = datetime.fromtimestamp(START + 3 * DAY)
    sessions(scene, **{f"s{number}": "we went swimming in the lake" for number in range(8)})
    assert found(scene, "swimming")[0] == "s7"
    assert found(scene, f"where did we go swimming on {day:%d %B %Y}?")[0] in ("s3", "s4"), (
        "it is told a little later"
    )
    assert len(found(scene, f"swimming on {day:%Y-%m-%d}")) == 8, "the others are found too"


def test_a_word_with_a_minus_must_not_be_there(scene):
    sessions(
        scene, a="jaguar in the zoo", b="jaguar, the car", c="a jaguar of the car dealer's wife"
    )
    assert found(scene, "jaguar -car") == ["a"]
    assert set(found(scene, 'jaguar -"car dealer"')) == {"a", "b"}
    assert found(scene, "-car") == []
    assert found(scene, "e-mail jaguar -zoo -car") == []


def test_where_only_what_is_unwanted_has_all_of_a_word_its_parts_are_looked_for(scene):
    sessions(scene, a="edit package.json of the car dealer", b="a package", c="nothing")
    assert found(scene, 'package.json -"car dealer"') == ["b"]


def test_a_text_of_nothing_but_minuses_is_found_as_it_stands(scene):
    sessions(
        scene, a='we search for -"green door" -"blue window"', b="a green door", c="a blue window"
    )
    assert found(scene, '-"green door" -"blue window"') == ["a"]


def test_what_is_written_as_one_word_belongs_together(scene):
    sessions(
        scene,
        a="edit package.json",
        b="the json of a package",
        c="snake_case names",
        d="cases of snakes",
    )
    assert found(scene, "package.json")[0] == "a"
    assert found(scene, "snake_case")[0] == "c"
    assert found(scene, "snake-names-nowhere") != [], (
        "where nothing has all of them, each by itself"
    )


def test_chinese_japanese_and_thai_are_found_within_their_sentences(each_scene):
    sessions(
        each_scene,
        zh="我们决定把数据库迁移到新的服务器",
        ja="来年の春に京都へ旅行に行きたいです",
        th="เราจะไปเที่ยวทะเลกัน",
        ko="다음 주에 학교에 갑니다",
        en="nothing of that",
    )
    assert found(each_scene, "数据库迁移")[0] == "zh"
    assert found(each_scene, "京都 旅行")[0] == "ja"
    assert found(each_scene, "春") == ["ja"], "a single character, within"
    assert found(each_scene, "器") == ["zh"], "and at the end"
    assert found(each_scene, "ทะเล")[0] == "th"
    assert found(each_scene, "학교")[0] == "ko"
    assert found(each_scene, '"新的服务器"') == ["zh"]
    [hit] = search(each_scene, "京都")
    assert marked(hit) == ["京都"]


def test_removing_a_file_takes_text_without_spaces_out_of_the_index(scene):
    sessions(scene, ja="京都へ行きたい", other="京都タワー")
    scene.store.forget("", "-srv-agent/ja.jsonl")
    assert found(scene, "京都") == ["other"]
    scene.store.connection.execute(
        "INSERT INTO memory_search (memory_search) VALUES ('integrity-check')"
    )


def test_what_has_no_words_is_found_as_it_stands(each_scene):
    sessions(each_scene, a="We did it 🎉 at last", b="We did it")
    [hit] = search(each_scene, "🎉")
    assert hit.conversation.session_id == "a"
    assert marked(hit) == ["🎉"]


ODD_QUERIES = [
    "",
    " ",
    '"',
    '""',
    "'",
    "-",
    "--",
    "*",
    "AND",
    "NOT x",
    "a AND b",
    "NEAR(a b)",
    "{text}: x",
    "x^2",
    "(((",
    "col:x",
    "a\x00b",
    "\ud83d",
    "\udc00 x",
    "🎉" * 50,
    "x " * 5000,
    "x" * 10_000,
    '"' * 10_000,
    "- " * 5000,
    "'; DROP TABLE x",
    '-"',
    '"a" OR "b',
    "京",
    "。",
    "\u0301",
    "\u202e",
    '-"\u0301"',
    "ัั",
    '"京" -都',
]


def test_any_text_is_a_query(each_scene):
    sessions(each_scene, a="a text with x and b, 京都 too", b="another")
    for query in ODD_QUERIES:
        assert {hit.conversation.session_id for hit in search(each_scene, query)} <= {"a", "b"}


@settings(
    max_examples=some(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.text(
        alphabet=st.one_of(st.sampled_from('"-* ()ab京都:^+\x00'), st.characters()), max_size=60
    )
)
def test_any_text_at_all_is_a_query(scene, query):
    if not scene.store.file_states(""):
        sessions(scene, a="a b 京都 text")
    assert all(hit.snippet for hit in search(scene, query))


def test_a_group_finds_only_its_own(each_scene, tmp_path):
    for home in ("red", "blue"):
        root = tmp_path / home / "-srv-agent"
        root.mkdir(parents=True)
        for number in range(20):
            said = exchange(
                f"the plan of {home} number {number} 计划 🎉", "Noted.", at=START + number * DAY
            )
            (root / f"{home}-{number}.jsonl").write_bytes(lines(*said))
        each_scene.ingest(tmp_path / home, home)
    for query in (
        "plan",
        '"the plan"',
        "计划",
        "计",
        "🎉",
        "plan -blue",
        "red blue plan",
        "plan number 7",
    ):
        for home, other in (("red", "blue"), ("blue", "red")):
            with each_scene.seen_by(home):
                hits = search(each_scene, query, limit=100)
            assert {hit.conversation.home for hit in hits} <= {home}
            assert all(other not in hit.snippet for hit in hits)
    with each_scene.seen_by("red"):
        assert len(found(each_scene, "plan", limit=100)) == 20
    assert {hit.conversation.home for hit in search(each_scene, "plan", limit=200)} == {
        "red",
        "blue",
    }
    for homes in (("green",), ()):
        with each_scene.seen_by(*homes):
            assert found(each_scene, "plan") == []


def test_filters_limit_what_is_found(each_scene):
    each_scene.write(
        "one",
        user("a boat", at=START),
        assistant("the boat", ("Bash", {"command": "ls boat"}), at=START + 5),
    )
    each_scene.write("two", *exchange("my boat", "your boat", at=START + 10 * DAY))
    each_scene.ingest()
    assert found(each_scene, "boat", session="tw") == ["two"] * 2
    assert set(found(each_scene, "boat", since=(START + DAY) * 1000)) == {"two"}
    assert set(found(each_scene, "boat", until=(START + DAY) * 1000)) == {"one"}
    assert (
        found(each_scene, "boat", since=(START + DAY) * 1000, until=(START + 2 * DAY) * 1000) == []
    )
    assert {hit.entry.role for hit in search(each_scene, "boat", role="user")} == {"user"}
    assert {hit.entry.role for hit in search(each_scene, "boat", role="assistant")} == {"assistant"}
    [hit] = search(each_scene, "boat", role="tool")
    assert (hit.entry.tool, hit.entry.text) == ("Bash", "ls boat")
    assert found(each_scene, "boat", project="elsewhere") == []
    assert len(found(each_scene, "boat", project="/srv/agent")) == len(found(each_scene, "boat"))


def test_a_filter_may_leave_files_in_very_many_places(each_scene):
    for number in range(120):
        project = ("odd", "even")[number % 2]
        said = exchange(f"a plum {number:03}", "ok", at=START + number * DAY, cwd=f"/srv/{project}")
        each_scene.write(f"{project}-{number:03}", *said)
        os.utime(each_scene.file(f"{project}-{number:03}"), (START + number, START + number))
    each_scene.ingest()
    assert len(found(each_scene, "plum", project="/srv/odd", limit=100)) == 60
    assert all(
        name.startswith("even")
        for name in found(each_scene, "plum", project="/srv/even", limit=100)
    )
    assert found(each_scene, "plum", project="/srv/even")[0] == "even-119"


def test_a_time_limit_holds_within_a_conversation(each_scene):
    each_scene.write(
        "s", *exchange("early kite", "yes", at=START), *exchange("late kite", "yes", at=START + 600)
    )
    each_scene.ingest()
    assert [hit.entry.text for hit in search(each_scene, "kite", since=(START + 300) * 1000)] == [
        "late kite"
    ]
    assert [hit.entry.text for hit in search(each_scene, "kite", until=(START + 300) * 1000)] == [
        "early kite"
    ]


def test_a_snippet_shows_the_words_in_the_middle_of_a_long_text_on_one_line(scene):
    text = (
        "once upon a time " * 300
        + "there was\n\na lighthouse <b>keeper</b> who kept lighthouses "
        + "and so on " * 300
    )
    sessions(scene, s=text)
    [hit] = search(scene, "lighthouse keepers")
    assert len(hit.snippet) <= 210
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert marked(hit) == ["lighthouse", "keeper", "lighthouses"]
    assert "\n" not in hit.snippet
    assert "<" not in hit.snippet
    assert hit.entry.text == text.strip()


def test_the_entry_that_fits_best_is_the_one_that_is_shown(scene):
    scene.write(
        "s",
        *exchange("a ferry", "When?"),
        *exchange("the night ferry to the island", "It leaves at nine."),
    )
    scene.ingest()
    assert search(scene, "night ferry island")[0].entry.text == "the night ferry to the island"


def test_common_words_beside_a_rare_one_are_counted_in_old_conversations_too(scene):
    scene.write("old", *exchange("deploy deploy the zeppelin", "deploy it", at=START))
    scene.write("older", *exchange("the zeppelin lands", "well", at=START - DAY))
    scene.write(
        "new",
        *[one for n in range(900) for one in exchange(f"deploy {n}", "ok", at=START + DAY + n)],
    )
    scene.ingest()
    assert found(scene, "deploy zeppelin")[0] == "old"


def test_a_search_for_a_phrase_says_how_many_older_entries_were_not_read_for_it(scene, monkeypatch):
    sessions(
        scene,
        old="plum jam in the cellar",
        **{f"s{number}": f"jam {number}, and a plum" for number in range(6)},
    )
    assert (found(scene, '"plum jam"'), search(scene, '"plum jam"').unchecked) == (["old"], 0)
    monkeypatch.setattr(postings_module, "MOST_CHECKED", 4)
    hits = search(scene, '"plum jam"')
    assert len(hits) > 1, "none of those that were read has it, and its words are looked for"
    assert hits.notice.startswith("3 older entries may contain the quoted phrase but were not read")
    assert search(scene, '"plum jam"', until=(START + DAY) * 1000).notice == ""
    assert search(scene, "plum jam").notice == ""


def test_of_two_common_words_what_has_both_is_found_however_old(scene):
    scene.write("old", *exchange("blue moon", "ok", at=START - DAY))
    scene.ingest()
    scene.write(
        "new", *[one for n in range(800) for one in exchange("blue", "moon", at=START + DAY + n)]
    )
    scene.ingest()
    assert search(scene, "blue moon")[0].entry.text == "blue moon"


def test_what_was_injected_by_us_is_never_found(scene):
    block = f'{HEADER}\n- discord (3m ago, 4 messages): "zebra"'
    scene.write(
        "s",
        user("hello"),
        record("attachment", attachment={"type": "hook_additional_context", "content": [block]}),
        user(
            f"<system-reminder>\nUserPromptSubmit hook additional context: "
            f"{block}\n</system-reminder>",
            isMeta=True,
        ),
        assistant("hi"),
    )
    scene.ingest()
    assert found(scene, "zebra") == []
    assert found(scene, "Session Activity") == []
    assert len(found(scene, "hello")) == 1


def test_secrets_are_neither_found_nor_shown(scene):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    sessions(scene, s=f"the giraffe token is {token} ok")
    [hit] = search(scene, "giraffe")
    assert token not in hit.snippet
    assert all(token not in hit.snippet + hit.entry.text for hit in search(scene, token))


def test_nothing_is_found_in_an_empty_store(each_scene):
    assert search(each_scene, "anything") == []
    assert each_scene.told.search("", EVERYTHING) == []


def test_a_project_is_found_in_either_case_and_unicode_form(each_scene):
    for name, cwd in (
        ("one", "/srv/\u00dcber[x]"),
        ("two", "/srv/u\u0308ber[x]"),
        ("three", "/srv/uber[x]"),
    ):
        each_scene.write(name, *exchange("oat milk", "All right.", cwd=cwd))
    each_scene.ingest()
    for project in ("\u00fcber[", "U\u0308BER["):
        assert sorted(found(each_scene, "milk", project=project)) == ["one", "two"]
    assert found(each_scene, "milk", project="ber*x") == []


def test_a_time_beyond_all_sessions_is_no_time(scene):
    sessions(scene, one="oat milk")
    for time in (
        "0001-01-01",
        "1.1.0001",
        "9999-12-31",
        "9999 years ago",
        "in 1900",
        "vor 9999 Jahren",
    ):
        assert found(scene, f"milk {time}") == ["one"], time


def test_a_phrase_may_mix_scripts(scene):
    sessions(scene, one="京都旅行 harbour plan", two="京都 harbour", three="harbour 京都")
    assert sorted(found(scene, '"旅行 harbour"')) == ["one"]
    assert sorted(found(scene, '"harbour 京都"')) == ["three"]
