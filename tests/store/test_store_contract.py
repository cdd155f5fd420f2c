"""What every engine of the store does: contract.Store, whatever database is behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_scene import EVERYTHING, MINUTE, START, Scene, put, said, state, tool

from session_memory.store.ingest.extract import key_of
from session_memory.store.values import Batch, Filter, ToolOutcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_is_written_is_read_back_in_order_and_whole(scene):
    ended = ToolOutcome("error", "Exit code 1: no such file", 25, 2)
    put(
        scene,
        None,
        state(),
        said("hello"),
        said("", 1, "assistant", tools=(tool("ls x", ended),)),
        said("done", 2, "assistant"),
    )
    [conversation] = scene.conversations()
    first, use, last = scene.items(conversation)
    assert (first.role, first.text, first.cwd, first.timestamp) == ("user", "hello", "/srv/agent", START)
    assert (use.role, use.tool, use.text, use.kind) == ("tool", "Bash", "ls x", "command")
    assert (use.outcome, use.error, use.result_size, use.result_lines) == ended
    assert (last.role, last.text) == ("assistant", "done")


def test_the_state_of_a_file_is_kept_as_it_was_written_with_its_id_and_the_next_ordinal(scene):
    written = put(
        scene, None, state(offset=7, file_size=9, inode=3, head=4, tail=5, title="T", title_rank=2), said("hello")
    )
    assert written.id > 0
    assert written.next_ordinal == 1
    assert scene.store.file_states("") == {"-srv-agent/a.jsonl": written}


def test_a_batch_is_not_stored_if_somebody_else_has_read_the_file_on(scene):
    put(scene, None, state(offset=10), said("hello"))
    assert scene.store.write([Batch(None, state(offset=20), [said("again", key="other")], [])]) == [None]
    assert scene.texts() == ["hello"]


def test_batches_are_stored_all_or_none(scene):
    with pytest.raises(Exception, match="CHECK"):
        scene.store.write(
            [Batch(None, state(), [said("hello")], []), Batch(None, state("b"), [said("x", role="nobody")], [])]
        )
    assert scene.store.file_states("") == {}
    assert scene.conversations() == []


def test_an_entry_that_is_known_is_stored_once_and_shows_in_both_files(scene):
    put(scene, None, state("a"), said("hello"), said("answer", 1, "assistant"))
    put(scene, None, state("b"), said("hello"), said("answer", 1, "assistant"), said("other way", 2))
    assert scene.store.counts().entries == 3
    assert [len(scene.items(one)) for one in scene.conversations()] == [2, 3]
    assert scene.texts(session="b") == ["hello", "answer", "other way"]


def test_what_a_fork_shares_stays_when_the_original_is_forgotten(scene):
    put(scene, None, state("a"), said("hello", tools=(tool("ls"),)), said("mine", 1))
    put(scene, None, state("b"), said("hello", tools=(tool("ls"),)), said("other way", 2))
    scene.store.forget("", "-srv-agent/a.jsonl")
    assert scene.texts() == ["hello", "Bash ls", "other way"]
    assert [hit.conversation.session_id for hit in scene.store.search("hello", EVERYTHING)] == ["b"]


def test_a_forgotten_file_leaves_nothing(scene):
    put(scene, None, state("a"), said("hello", tools=(tool("ls"),)))
    scene.store.forget("", "-srv-agent/a.jsonl")
    counts = scene.store.counts()
    assert (counts.files, counts.entries, counts.tool_uses, counts.conversations) == (0, 0, 0, {})
    assert scene.store.search("hello", EVERYTHING) == []


def test_the_result_of_a_tool_use_may_come_later(scene):
    first = put(scene, None, state(), said("", tools=(tool("ls"),)))
    put(scene, first, first._replace(offset=5), outcomes=[(key_of("ls"), ToolOutcome("ok", "", 10, 2))])
    [use] = scene.items(scene.conversations()[0])
    assert (use.outcome, use.result_size) == ("ok", 10)


def test_a_result_counts_for_a_tool_use_of_its_own_file_alone(scene):
    put(scene, None, state("a"), said("", tools=(tool("ls", call="1"),)))
    other = put(scene, None, state("b"), said("", tools=(tool("pwd", call="1"),)))
    put(scene, other, other._replace(offset=5), outcomes=[(key_of("1"), ToolOutcome("ok", "", 10, 2))])
    assert [item.outcome for one in scene.conversations() for item in scene.items(one)] == ["", "ok"]


def test_a_silence_longer_than_the_gap_begins_a_conversation(scene):
    put(scene, None, state(), said("a"), said("b", 60), said("c", 121), said("d", 122))
    assert [one.entry_count for one in scene.conversations()] == [2, 2]
    assert [scene.texts(since=START + 100 * MINUTE)] == [["c", "d"]]


def test_a_clock_that_goes_back_and_a_missing_time_cut_nothing(scene):
    put(scene, None, state(), said("a", 100), said("b", 10), said("c", timestamp=None), said("d", 130))
    [conversation] = scene.conversations()
    assert (conversation.entry_count, conversation.last_message_at) == (4, START + 130 * MINUTE)


def test_the_records_of_one_message_count_once(scene):
    put(
        scene,
        None,
        state(),
        said("a"),
        said("b", 1, "assistant", message=7),
        said("c", 1, "assistant", message=7),
        said("d", 2),
    )
    [conversation] = scene.conversations()
    assert conversation.entry_count == 3
    assert len({item.message for item in scene.items(conversation)}) == 3


def test_what_is_appended_grows_the_last_conversation_which_keeps_its_id(scene):
    first = put(scene, None, state(), said("a"), said("b", 90))
    ids = [one.id for one in scene.conversations()]
    put(scene, first, first._replace(offset=5), said("c", 100), said("d", 200))
    assert [one.id for one in scene.conversations()][:2] == ids
    assert [one.entry_count for one in scene.conversations()] == [1, 2, 1]


def test_a_silent_conversation_becomes_ready_or_is_skipped_as_too_short(scene):
    put(scene, None, state("a"), *[said(f"a{n}", n) for n in range(5)])
    put(scene, None, state("b"), *[said(f"b{n}", n) for n in range(4)])
    assert scene.store.mark_ready(START + 64 * MINUTE) == 1
    assert scene.store.mark_ready(START + 70 * MINUTE) == 1
    assert {one.session_id: (one.status, one.reason) for one in scene.conversations()} == {
        "a": ("ready", ""),
        "b": ("skipped", "too short"),
    }


def test_a_conversation_that_grows_is_active_again_and_the_others_keep_their_status(scene):
    first = put(
        scene, None, state(), *[said(f"a{n}", n) for n in range(5)], *[said(f"b{n}", 100 + n) for n in range(5)]
    )
    scene.store.mark_ready(START + 1000 * MINUTE)
    put(scene, first, first._replace(offset=5), said("b5", 110))
    assert [one.status for one in scene.conversations()] == ["ready", "active"]


def test_a_status_is_not_set_over_messages_that_were_not_seen(scene):
    first = put(scene, None, state(), said("a"))
    [conversation] = scene.conversations()
    put(scene, first, first._replace(offset=5), said("b", 1))
    assert not scene.store.set_status(conversation.id, "archived", seen_until=conversation.last_message_at)
    assert scene.store.set_status(conversation.id, "archived", "done", seen_until=START + MINUTE)
    assert [(one.status, one.reason) for one in scene.conversations()] == [("archived", "done")]


def test_a_group_sees_its_own_alone_and_shares_no_row_with_another(scene):
    put(scene, None, state("a", home="red"), said("secret plan", key="red a"))
    put(scene, None, state("a", home="blue"), said("secret plan", key="blue a"))
    [red] = scene.conversations(homes=("red",))
    assert scene.store.conversation(red.id, ("blue",)) is None
    assert scene.store.conversation(red.id, ("red",)) == red
    assert [hit.conversation.home for hit in scene.store.search("plan", Filter(homes=("blue",)))] == ["blue"]
    assert scene.store.counts(("red",)).entries == 1
    assert len(scene.conversations(homes=None)) == 2
    assert scene.conversations(homes=()) == []


def test_filters_choose_by_project_session_status_and_time(scene):
    put(scene, None, state("abc", cwd="/srv/Alpha"), said("a", 0))
    put(scene, None, state("def", cwd="/srv/beta"), said("b", 1000))
    assert [one.session_id for one in scene.conversations(project="alpha")] == ["abc"]
    assert [one.session_id for one in scene.conversations(directories=("/srv/Alpha", "/x"))] == ["abc"]
    assert [one.session_id for one in scene.conversations(directories=("/srv",))] == ["abc", "def"]
    assert scene.conversations(directories=("/srv/be",)) == []
    found = scene.store.search("a", Filter(directories=("/srv/beta",)))
    assert [hit.conversation.session_id for hit in found] == []
    assert [one.session_id for one in scene.conversations(session="de")] == ["def"]
    assert [one.session_id for one in scene.conversations(until=START + 5)] == ["abc"]
    assert [one.session_id for one in scene.conversations(since=START + 5)] == ["def"]
    assert scene.conversations(status="ready") == []


def test_a_conversation_is_called_by_its_title_else_by_what_the_user_said_first(scene):
    put(scene, None, state("a", title="Trip", title_rank=2), said("a"))
    put(scene, None, state("b"), said("I am here", 1, "assistant"), said("plan a trip", 2))
    assert [one.title for one in scene.conversations()] == ["Trip", "plan a trip"]


def test_a_file_that_is_gone_keeps_its_entries(scene):
    put(scene, None, state(), said("hello"))
    scene.store.mark_gone("", ["-srv-agent/a.jsonl"])
    assert scene.store.file_states("")["-srv-agent/a.jsonl"].status == "gone"
    assert scene.texts() == ["hello"]


def test_two_stores_over_one_database_see_what_the_other_writes(scene):
    other = scene.open()
    put(scene, None, state(), said("hello"))
    [conversation] = other.conversations(EVERYTHING)
    assert [item.text for item in other.entries(conversation.id)] == ["hello"]
    other.close()
