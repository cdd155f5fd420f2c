"""The contract of every engine for reading: SqliteStore's reading methods, on any database.

test_store_ingest.py has the methods that write.
"""

from __future__ import annotations

from store_scene import MINUTE, START, put, said, state, tool

from session_memory.history.store.ingest.values import ToolOutcome
from session_memory.history.store.values import Filter, key_of


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
    assert (first.role, first.text, first.cwd, first.timestamp) == (
        "user",
        "hello",
        "/srv/agent",
        START,
    )
    assert (use.role, use.tool, use.text, use.kind) == ("tool", "Bash", "ls x", "command")
    assert (use.outcome, use.error, use.result_size, use.result_lines) == ended
    assert (last.role, last.text) == ("assistant", "done")


def test_the_result_of_a_tool_use_may_come_later(scene):
    first = put(scene, None, state(), said("", tools=(tool("ls"),)))
    put(
        scene,
        first,
        first._replace(offset=5),
        outcomes=[(key_of("ls"), ToolOutcome("ok", "", 10, 2))],
    )
    [use] = scene.items(scene.conversations()[0])
    assert (use.outcome, use.result_size) == ("ok", 10)


def test_a_result_counts_for_a_tool_use_of_its_own_file_alone(scene):
    put(scene, None, state("a"), said("", tools=(tool("ls", call="1"),)))
    other = put(scene, None, state("b"), said("", tools=(tool("pwd", call="1"),)))
    put(
        scene,
        other,
        other._replace(offset=5),
        outcomes=[(key_of("1"), ToolOutcome("ok", "", 10, 2))],
    )
    assert [item.outcome for one in scene.conversations() for item in scene.items(one)] == [
        "",
        "ok",
    ]


def test_a_silence_longer_than_the_gap_begins_a_conversation(scene):
    put(scene, None, state(), said("a"), said("b", 60), said("c", 121), said("d", 122))
    assert [one.entry_count for one in scene.conversations()] == [2, 2]
    assert [scene.texts(since=START + 100 * MINUTE)] == [["c", "d"]]


def test_a_clock_that_goes_back_and_a_missing_time_cut_nothing(scene):
    put(
        scene,
        None,
        state(),
        said("a", 100),
        said("b", 10),
        said("c", timestamp=None),
        said("d", 130),
    )
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


def test_a_group_sees_its_own_alone_and_shares_no_row_with_another(scene):
    put(scene, None, state("a", home="red"), said("secret plan", key="red a"))
    put(scene, None, state("a", home="blue"), said("secret plan", key="blue a"))
    with scene.seen_by("red"):
        [red] = scene.conversations()
        assert scene.told.conversation(red.id) == red
        assert scene.told.counts().entries == 1
    with scene.seen_by("blue"):
        assert scene.told.conversation(red.id) is None
        [hit] = scene.told.search("plan", Filter())
        assert hit.conversation.home == "blue"
    assert len(scene.conversations()) == 2
    with scene.seen_by():
        assert scene.conversations() == []


def test_filters_choose_by_project_session_status_and_time(scene):
    put(scene, None, state("abc", cwd="/srv/Alpha"), said("a", 0))
    put(scene, None, state("def", cwd="/srv/beta"), said("b", 1000))
    assert [one.session_id for one in scene.conversations(project="alpha")] == ["abc"]
    assert [one.session_id for one in scene.conversations(directories=("/srv/Alpha", "/x"))] == [
        "abc"
    ]
    assert [one.session_id for one in scene.conversations(directories=("/srv",))] == ["abc", "def"]
    assert scene.conversations(directories=("/srv/be",)) == []
    found = scene.told.search("a", Filter(directories=("/srv/beta",)))
    assert [hit.conversation.session_id for hit in found] == []
    assert [one.session_id for one in scene.conversations(session="de")] == ["def"]
    assert [one.session_id for one in scene.conversations(until=START + 5)] == ["abc"]
    assert [one.session_id for one in scene.conversations(since=START + 5)] == ["def"]
    assert scene.conversations(status="ready") == []


def test_filters_choose_by_runtime_and_a_search_by_the_kind_of_a_tool_use(scene):
    put(
        scene,
        None,
        state("abc"),
        said("bake bread"),
        said("", 1, "assistant", tools=(tool("bake bread"),)),
    )
    put(scene, None, state("def", source="codex"), said("bake rolls", 2))
    assert [one.session_id for one in scene.conversations(runtime="codex")] == ["def"]

    def found(**wanted: str) -> list[tuple[str, str]]:
        hits = scene.told.search("bake", Filter(**wanted))
        return sorted((hit.conversation.session_id, hit.entry.role) for hit in hits)

    assert found() == [("abc", "tool"), ("abc", "user"), ("def", "user")]
    assert found(runtime="codex") == [("def", "user")]
    assert found(kind="command") == [("abc", "tool")]
    assert found(kind="edit") == found(kind="command", role="user") == []


def test_a_conversation_is_called_by_its_title_else_by_what_the_user_said_first(scene):
    put(scene, None, state("a", title="Trip", title_rank=2), said("a"))
    put(scene, None, state("b"), said("I am here", 1, "assistant"), said("plan a trip", 2))
    assert [one.title for one in scene.conversations()] == ["Trip", "plan a trip"]
