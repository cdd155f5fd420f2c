"""The archive of a truncated or rewritten transcript gets each new message, and none twice."""

from __future__ import annotations

from archives_scene import MONDAY, archive, messages
from records import append, assistant, user, write


def texts(path):
    return [text for speaker, text, *_ in messages(path) if speaker]


def test_messages_of_the_millisecond_of_the_last_one_are_added(tmp_path):
    burst = [user(f"number {number} of many", at=MONDAY + 5) for number in range(6)]
    path = write(tmp_path / "t.jsonl", user("the first of all", at=MONDAY), *burst[:3])
    folder = tmp_path / "conversations"
    archive(path, folder)
    write(path, *burst[1:])  # without the first, so that the archive keeps what it has
    found = archive(path, folder)
    assert sorted(texts(found)) == sorted(
        ["the first of all", *[f"number {number} of many" for number in range(6)]]
    )
    assert texts(archive(path, folder)) == texts(found)


def test_a_message_of_a_clock_that_went_back_is_added_once(tmp_path):
    first, second = user("before", at=MONDAY), user("the question", at=MONDAY + 100)
    path = write(tmp_path / "t.jsonl", first, second)
    folder = tmp_path / "conversations"
    archive(path, folder)
    write(path, second)
    append(path, assistant("an answer from the past", at=MONDAY + 50))
    for _ in range(2):
        found = archive(path, folder)
        assert texts(found) == ["before", "the question", "an answer from the past"]


def test_parts_of_one_message_and_short_repeated_words_are_told_apart(tmp_path):
    records = [
        user("go on", at=MONDAY),
        assistant("Let me look.", at=MONDAY + 1, message_id="m1"),
        assistant("It is done.", at=MONDAY + 9, message_id="m1"),
        user("ok", at=MONDAY + 20),
        user("ok, and now?", at=MONDAY + 30),
    ]
    path = write(tmp_path / "t.jsonl", *records)
    folder = tmp_path / "conversations"
    before = texts(archive(path, folder))
    write(path, *records[1:])
    append(path, user("ok", at=MONDAY + 30.5))
    assert texts(archive(path, folder)) == [*before, "ok"]
