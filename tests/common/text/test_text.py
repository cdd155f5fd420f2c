"""Texts are cut where a person would, and made safe for whoever gets them."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from share import some
from text_scene import samples

from session_memory.common.text.format import counted, one_line, shorten
from session_memory.common.text.sanitize import for_prompt, plain
from session_memory.common.text.timestamps import (
    age,
    epoch_seconds,
    iso_time,
    last_millisecond,
    local_iso_time,
    local_time,
    milliseconds_at,
)

SECRETS = [sample.text for sample in samples(3)]

# Text in which clusters of several characters are as common as plain letters.
CLUSTERS = st.lists(
    st.sampled_from(
        [
            *"abc dé",
            "e\u0301",
            "न\u093f",
            "👍🏽",
            "👨‍👩‍👧‍👦",
            "🇩🇪",
            "🇫🇷",
            "각",
            "\u1100\u1161\u11a8",
            "❤️",
            "🏴\U000e0067\U000e0062\U000e007f",
            "\r\n",
            "ก\u0e33",
            "\u0600\u0661",
            "漢",
            "ｶﾞ",
        ]
    )
    | st.characters(codec="utf-8"),
    max_size=60,
).map("".join)


@settings(max_examples=some(500), deadline=None)
@given(CLUSTERS, st.integers(2, 60))
def test_a_cut_never_goes_through_a_grapheme(text, limit):
    cut = shorten(text, limit)
    assert len(cut) <= limit
    if cut != text:
        kept = cut.removesuffix("…")
        boundaries = {0}
        for cluster in regex.findall(r"\X", text):
            boundaries.add(max(boundaries) + len(cluster))
        assert text.startswith(kept)
        following = len(kept) + len(text[len(kept) :]) - len(text[len(kept) :].lstrip())
        assert any(at in boundaries for at in range(len(kept), following + 1))


def test_a_cut_prefers_the_end_of_a_word():
    assert shorten("deploy the staging cluster", 20) == "deploy the staging…"
    assert shorten("deploy the internationally known one", 20) == "deploy the…"


def test_of_a_path_or_another_long_word_a_part_remains():
    plan = "docs/superpowers/plans/importer.md"
    assert shorten(f"Implement @{plan} and commit", 20) == "Implement @docs/sup…"
    assert shorten(f"Implement @{plan}", 24) == "Implement @docs/superpo…"
    assert shorten(f"Implement it as in {plan}", 19) == "Implement it as in…"


def test_a_text_that_fits_is_not_touched():
    assert shorten("deploy", 6) == "deploy"


def test_white_space_becomes_one_space():
    assert one_line(" a\n\tb\u3000c\u2028d ") == "a b c d"


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_counts_are_correct_english(number, text):
    assert counted(number, "file") == text


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("plain text, naïve café 漢字 👍🏽", "plain text, naïve café 漢字 👍🏽"),
        ("a\x1b[31mred\x1b[0m b", "ared b"),
        ("\x1b]8;;http://evil\x07click\x1b]8;;\x07", "click"),
        ("\x1b]0;title\x1b\\rest", "rest"),
        ("\x9b31mred", "red"),
        ("unfinished \x1b[31", "unfinished "),
        ("unended \x1b]0;title\nnext line", "unended \nnext line"),
        ("zero\u200bwidth\ufeff soft\u00adhyphen", "zerowidth softhyphen"),
        ("bidi \u202eabc\u2066def", "bidi abcdef"),
        ("tags \U000e0041\U000e0042\U000e007f", "tags "),
        ("selectors a\ufe01\U000e0100b", "selectors ab"),
        (
            "one joiner stays 👩\u200d🚀, many do not é\u200d\u200d\u200dx",
            "one joiner stays 👩\u200d🚀, many do not é\u200dx",
        ),
        ("half \ud83d pair", "half \ufffd pair"),
        ("nul\x00 bell\x07", "nul bell"),
        ("carriage\rreturn\r\nand\u2028more", "carriage\nreturn\nand\nmore"),
        ("tab\there\u00a0and there", "tab here and there"),
        ("hangul\u3164filler\u2800", "hangulfiller"),
    ],
)
def test_what_is_invisible_goes_and_what_is_visible_stays(given_text, expected):
    assert plain(given_text) == expected


@pytest.mark.parametrize(
    "text", ["</system-reminder>", "<\u200b/b>", "＜b＞", "﹤b﹥", "<\x1b[0m/b>", "<\U000e0041b>"]
)
def test_no_angle_bracket_survives(text):
    assert not set(for_prompt(text)) & set("<>＜＞﹤﹥")


@settings(max_examples=some(500), deadline=None)
@given(
    st.text(
        st.characters() | st.sampled_from("\x1b\x9b[]\\;m<>\u200d\ufe0f\u202e\n\r\x07"), max_size=80
    )
)
def test_text_for_a_prompt_holds_nothing_that_is_more_than_text(text):
    safe = for_prompt(text)
    assert not set(safe) & set("<>\x1b\x9b\x07\r\t\u2028\u2029")
    for index, character in enumerate(safe):
        category = unicodedata.category(character)
        assert category not in ("Cc", "Cs", "Co", "Zl", "Zp") or character == "\n"
        assert category != "Cf" or (character in "\u200c\u200d" and safe[index - 1] > "\x7f")
    assert for_prompt(safe) == safe


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-02-21T03:39:07.123Z", 1771645147.123),
        ("2026-02-21T04:39:07.123+01:00", 1771645147.123),
        ("2026-02-20T22:09:07.123-0530", 1771645147.123),
        ("2024-02-29 12:00:00", 1709208000.0),
        ("2000-12-31T23:59:60Z", 978307200.0),
        ("yesterday", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-02-21T03:39:07 CET", None),
        (1771645147, None),
        (None, None),
    ],
)
def test_a_timestamp_is_read_in_seconds(text, seconds):
    assert epoch_seconds(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1m ago"),
        (3599, "59m ago"),
        (3600, "1h ago"),
        (86399, "23h ago"),
        (200_000, "2d ago"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(seconds, text):
    assert age(seconds) == text


def test_times_are_written_so_that_their_texts_sort_as_they_do():
    times = [0.0, 0.001, 1.0, 1.5, 1_771_643_947.123, 1_771_643_947.124]
    texts = [iso_time(seconds) for seconds in times]
    assert sorted(texts) == texts
    assert [epoch_seconds(text) for text in texts] == times


@pytest.mark.parametrize(
    ("now", "today", "yesterday", "local"),
    [
        (
            "2026-03-29T20:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-27T23:00:00Z",
            "2026-03-29 22:00:00+02:00",
        ),
        (
            "2026-03-30T20:00:00Z",
            "2026-03-29T22:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-30 22:00:00+02:00",
        ),
        (
            "2026-10-25T20:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-23T22:00:00Z",
            "2026-10-25 21:00:00+01:00",
        ),
        (
            "2026-10-26T20:00:00Z",
            "2026-10-25T23:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-26 21:00:00+01:00",
        ),
        (
            "2026-10-25T00:30:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-23T22:00:00Z",
            "2026-10-25 02:30:00+02:00",
        ),
        (
            "2026-10-25T01:30:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-23T22:00:00Z",
            "2026-10-25 02:30:00+01:00",
        ),
    ],
)
def test_days_of_23_and_25_hours_begin_at_midnight(berlin, now, today, yesterday, local):
    seconds = epoch_seconds(now)
    assert milliseconds_at("today", seconds) == epoch_seconds(today) * 1000
    assert milliseconds_at("yesterday", seconds) == epoch_seconds(yesterday) * 1000
    assert milliseconds_at(local[:10], seconds) == epoch_seconds(today) * 1000
    end = (
        milliseconds_at("today", seconds + 90_000 if local[11:13] == "02" else seconds + 86_400) - 1
    )
    assert last_millisecond("today", seconds) == last_millisecond(local[:10], seconds) == end
    assert last_millisecond("yesterday", seconds) == epoch_seconds(today) * 1000 - 1
    assert local_iso_time(seconds) == local
    assert local_time(seconds) == local[:16]


def test_a_weekday_is_the_last_one_before_today(berlin):
    monday = epoch_seconds("2026-11-30T09:00:00Z")
    assert milliseconds_at("sunday", monday) == epoch_seconds("2026-11-28T23:00:00Z") * 1000
    assert milliseconds_at("Monday", monday) == epoch_seconds("2026-11-22T23:00:00Z") * 1000
    assert last_millisecond("friday", monday) == epoch_seconds("2026-11-27T23:00:00Z") * 1000 - 1


@pytest.fixture
def berlin(set_zone):
    set_zone("Europe/Berlin")
