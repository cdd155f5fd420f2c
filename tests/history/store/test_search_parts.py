"""The parts of a query, the snippet of a text, and the questions for measuring recall."""

from __future__ import annotations

import json
from datetime import datetime

import apsw
import pytest

from bench.research.recall.__main__ import OWN_SETS, ask
from bench.research.recall.sets import SetError, read_set
from session_memory.history.search._dates import times_in
from session_memory.history.search.index import ConversationTable, Expression, Terms, indexable
from session_memory.history.search.query import (
    MOST_PARTS,
    STOP_WORDS,
    Query,
    contains,
    parse,
    relaxed,
)
from session_memory.history.search.ranking import (
    closeness,
    conversation_scores,
    entry_score,
    idf,
    length_norms,
)
from session_memory.history.search.search import SNIPPET_CHARACTERS, _merged, _snippet
from session_memory.history.store.sqlite.search_index import match_of, terms_of


@pytest.fixture(scope="module")
def terms() -> Terms:
    return terms_of(apsw.Connection(":memory:"))


def matches(query: Query) -> list[str]:
    return [match_of(Expression((part.words,)))[1:-1] for part in query.parts]


def test_a_query_becomes_what_the_index_is_asked_for(terms):
    expected = {
        "When did Caroline go to the support group?": [
            '"Caroline"',
            '"go"',
            '"support"',
            '"group"',
        ],
        "what is it": ['"what"', '"is"', '"it"'],
        "Tom's dog": ['"Tom"', '"dog"'],
        "run running runs": ['"runs"'],
        "package.json": ['"package" AND "json"'],
        "to-do": ['"to" AND "do"'],
        'say "hello there"': ['"say"', '"hello" AND "there"'],
        "「京都」": ['"京都"'],
        "京都旅行": ['"京都"', '"都旅"', '"旅行"'],
        "猫": ['"猫" *'],
        "--force": ['"force"'],
        'unclosed "quote here': ['"unclosed"', '"quote"'],
    }
    assert {text: matches(parse(text, terms)) for text in expected} == expected


def test_what_is_unwanted_is_told_apart_from_what_is_looked_for(terms):
    query = parse('jaguar -car -"big cat" e-mail', terms)
    assert matches(query) == ['"jaguar"', '"e" AND "mail"']
    assert (
        match_of(Expression((query.parts[1].words,), (), query.unwanted))
        == '(("e" AND "mail")) NOT ("car")'
    )
    assert query.unwanted_phrases == (("big", "cat"),)


def test_a_phrase_is_required_until_it_is_relaxed(terms):
    query = parse('"support group" kyoto', terms)
    assert [(part.terms, part.is_required) for part in query.parts] == [
        (("kyoto",), False),
        (("support", "group"), True),
    ]
    assert [(part.terms, part.is_required) for part in relaxed(query).parts] == [
        (("kyoto",), False),
        (("support",), False),
        (("group",), False),
    ]


def test_a_very_long_query_has_a_limited_number_of_parts(terms):
    assert len(parse(" ".join(f"word{number}" for number in range(500)), terms).parts) == MOST_PARTS


def test_a_phrase_is_whole_terms_one_after_the_other():
    assert contains(["the", "support", "group"], ("support", "group"))
    assert not contains(["support", "groups"], ("support", "group"))
    assert not contains(["support", "a", "group"], ("support", "group"))


def test_text_with_spaces_is_indexed_as_it_is():
    for text in ("plain", "naïve — café 🎉", ""):
        assert indexable(text) is text
    for _ in range(2):  # the second time, its characters are known
        assert indexable("go to 京都市!").split() == ["go", "to", "京都", "都市", "市", "!"]
        assert indexable("naïve 京都").split() == ["naïve", "京都", "都"]


def test_letters_that_join_are_indexed_joined_even_after_texts_with_one_of_them():
    for text in ("a \u1112", "a \u1161", "a \u11ab", "a \u3099"):
        indexable(text)
    assert indexable("a \u1112\u1161\u11ab").split() == ["a", "한"]
    indexable("a \u304b")
    assert indexable("a \u304b\u3099").split() == ["a", "が"]


def test_terms_stand_where_they_are_said_to(terms):
    for text in (
        "plain text",
        "naïve café — 🎉 bücher",
        "🎉 a “quoted” word",
        "in 京都市 zu Fuß",
        "e\u0301t\u00e9 x",
    ):
        spans = terms.spans(text)
        assert {term for _, _, term in spans} == set(terms.of(text))
        for start, end, term in spans:
            assert terms.of(text[start:end])[0] == term


def test_stop_words_are_lower_case_words():
    assert all(word.islower() and word.isalpha() for word in STOP_WORDS)


def test_rarer_is_worth_more_and_never_less_than_nothing():
    assert idf(1000, 2) > idf(1000, 400) > idf(1000, 1000) >= 0


def test_more_often_is_better_and_longer_is_worse():
    assert (
        entry_score([(1.0, 2)], 50, 50)
        > entry_score([(1.0, 1)], 50, 50)
        > entry_score([(1.0, 1)], 500, 50)
        > 0
    )


@pytest.mark.parametrize("others", [0, 500], ids=["most conversations have it", "few have it"])
def test_a_conversation_with_more_of_it_is_better_and_a_longer_one_worse(others):
    starts = [10, 20, 30, 40, *range(100, 100 + 10 * others, 10)]
    sizes = [100, 100, 900, 100] + [100] * others
    table = ConversationTable(starts, [5] * len(starts), [0] * len(starts), length_norms(sizes))
    twice, once, once_in_a_long_one, never, *_ = conversation_scores(
        table, [[11, 14, 20, 34]], [2.0]
    )
    assert twice > once > once_in_a_long_one > never == 0


NOW = 1_790_000_000  # 2026-09-21


def test_what_was_said_at_the_time_that_a_question_names_is_near():
    for question, day, other in (
        ("What did she do on 7 May 2023?", "2023-05-08", "2023-05-20"),
        ("what happened on May 7th, 2023", "2023-05-07", "2023-04-20"),
        ("the meeting of the 7th of May", "2025-05-07", "2025-06-07"),
        ("where was he in June 2023?", "2023-06-30", "2023-09-01"),
        ("the trip last summer", "2026-07-15", "2026-02-01"),
        ("decided on 2026-03-04", "2026-03-04", "2026-03-14"),
        ("what did we do yesterday", "2026-09-20", "2026-09-10"),
        ("what broke last week", "2026-09-14", "2026-08-14"),
        ("what broke two weeks ago", "2026-09-07", "2026-08-01"),
        ("what we said on Friday", "2026-09-18", "2026-09-09"),
        ("all that broke in 2023", "2023-11-11", "2024-11-11"),
    ):
        times = times_in(question, NOW)
        moment, another = (
            round(datetime.fromisoformat(one + "T12:00").timestamp() * 1000) for one in (day, other)
        )
        assert closeness(moment, times) == 1.0, question
        assert closeness(another, times) < 0.8, question


def test_what_names_no_time_is_none():
    texts = (
        "may I march on?",
        "version 2026 of it",
        "the 7 dwarfs",
        "1.2.3",
        "31 February",
        "ago",
        "last",
        "99999999 days ago",
        "was war am 7. Mai?",
        "letzte Woche",
        "vor drei Tagen",
        "am 4.3.2026",
        "on",
    )
    assert [text for text in texts if times_in(text, NOW)] == []


def test_a_snippet_is_where_most_of_the_words_are(terms):
    text = (
        "A cat. "
        + "Nothing here at all. " * 30
        + "The cat sat on a mat <with> another\ncat. "
        + "Then nothing. " * 30
    )
    weights = {"cat": 2.0, "mat": 3.0}
    shown, marks = _snippet(text, weights, terms.spans)
    assert [shown[start:end] for start, end in marks] == ["cat", "mat", "cat"]
    assert "‹with› another cat" in shown
    assert len(shown) <= SNIPPET_CHARACTERS + 2


def test_a_short_text_is_its_own_snippet(terms):
    assert _snippet("Feed the cat.", {"cat": 1.0}, terms.spans) == ("Feed the cat.", ((9, 12),))


def test_marks_that_overlap_are_one():
    assert _merged([(0, 2), (1, 3), (5, 6)]) == ((0, 3), (5, 6))


def test_the_shipped_questions_find_their_sessions():
    for path in OWN_SETS:
        answers = list(ask(read_set(path)))
        assert len(answers) >= 60
        assert sum(answer.is_found_within(1) for answer in answers) / len(answers) >= 0.67
        assert sum(answer.is_found_within(5) for answer in answers) / len(answers) >= 0.88
        assert sum(answer.is_found_within(10) for answer in answers) / len(answers) >= 0.94


def test_a_set_whose_evidence_is_not_there_is_refused(tmp_path):
    path = tmp_path / "set.json"
    session = {
        "id": "s",
        "date": "2026-01-01T10:00:00Z",
        "messages": [{"role": "user", "text": "hello"}],
    }
    path.write_text(
        json.dumps(
            {
                "groups": [
                    {"sessions": [session], "questions": [{"question": "x", "evidence": ["t"]}]}
                ]
            }
        )
    )
    with pytest.raises(SetError, match="no such evidence"):
        read_set(path)
    path.write_text("[]")
    with pytest.raises(SetError):
        read_set(path)
