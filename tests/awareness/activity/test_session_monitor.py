"""What a session is told of the others, look after look."""

from __future__ import annotations

import json
import os
import time

import pytest
from records import NamedHome, append, assistant, exchange, line, new_id, record, user, write

from session_memory.awareness.activity import _new_entries as new_entries
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.updates import open_update
from session_memory.session_monitor import (
    get_session_updates,
    resolve_agent_sdk_jsonl,
)
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import Home
from session_memory.sessions.transcripts.entries import Session


@pytest.fixture
def home(tmp_path):
    return NamedHome(tmp_path / "home")


@pytest.fixture
def ask(home, tmp_path):
    def ask(current="main"):
        return get_session_updates(
            current_session=current,
            sessions_dir=home.sessions_dir,
            cursor_file=tmp_path / "cursors.json",
            jsonl_resolver=home.resolve,
            format="agent-sdk",
        )

    return ask


def told_to_main(sessions, tmp_path, *, rules="", own_path=""):
    """What `main` is told of `sessions`, which then counts as told."""
    with deliver_to_main(sessions, tmp_path, rules=rules, own_path=own_path) as update:
        return update.text


def deliver_to_main(sessions, tmp_path, *, rules="", own_path=""):
    home = Home(str(tmp_path), str(tmp_path), str(tmp_path))
    (tmp_path / "config.yaml").write_text(rules and f"sessions: {rules}\n")
    own = OwnSession("main", runtime("agent-sdk"), str(tmp_path / "c.json"), own_path, home=home)
    settings = home.settings()
    return open_update(Observation(own, sessions, settings), now=time.time(), limit=500)


def cursors(tmp_path):
    return json.loads((tmp_path / "cursors.json").read_text())


def test_another_session_is_told_once(home, ask):
    home.session("discord", *exchange("how do I deploy this?", "Like this."))
    assert (
        ask()
        == '[Session Activity]\n- discord (just now, 2 messages): "how do I deploy this?"; last: "Like this."'
    )
    assert ask() is None


def test_a_resolver_that_raises_costs_only_its_session(home, tmp_path):
    home.session("discord", *exchange("hello", "hi"))
    home.session("email", *exchange("any news?", "none"))

    def resolve(name):
        if name == "email":
            raise OSError("no such mount")
        return home.resolve(name)

    told = get_session_updates(
        current_session="main",
        sessions_dir=home.sessions_dir,
        cursor_file=tmp_path / "c.json",
        jsonl_resolver=resolve,
        format="agent-sdk",
    )
    assert "hello" in told
    assert "any news?" not in told


def test_sessions_that_are_just_being_made_are_left_out(home, ask):
    home.session("new-17", *exchange("hello", "hi"))
    assert ask() is None


def test_a_cursor_file_with_offsets_only_is_read(home, ask, tmp_path):
    path = home.session("discord", *exchange("old", "one"))
    (tmp_path / "cursors.json").write_text(
        json.dumps({"main": {"discord": {"offset": path.stat().st_size}}})
    )
    append(path, *exchange("fresh", "two"))
    told = ask()
    assert "fresh" in told
    assert "old" not in told


def test_an_offset_in_the_middle_of_a_line_reads_that_line_whole(home, ask, tmp_path):
    path = home.session("discord", user("first"), user("second"))
    (tmp_path / "cursors.json").write_text(
        json.dumps({"main": {"discord": {"offset": path.stat().st_size - 10}}})
    )
    assert '"second"' in ask()


CORRUPT = [
    "{",
    "[]",
    '{"main": {"discord": 7}}',
    '{"main": []}',
    "\x00\x00",
    '{"main": {"d": {"offset": "x"}}}',
]


@pytest.mark.parametrize("content", CORRUPT)
def test_a_corrupt_state_is_renamed_and_nothing_old_is_told(home, tmp_path, content):
    path = home.session("discord", *exchange("old", "one"))
    sessions = [Session("discord", str(path), "discord")]
    (tmp_path / "c.json").write_text(content)
    assert told_to_main(sessions, tmp_path) is None
    assert (tmp_path / "c.json.corrupt").read_text() == content
    append(path, *exchange("fresh", "two"))
    assert '"fresh"' in told_to_main(sessions, tmp_path)


def test_a_corrupt_state_costs_nothing_of_what_happened_since_it_was_written(home, tmp_path):
    paths = [home.session(name, *exchange(f"old {name}", "one")) for name in ("discord", "email")]
    sessions = [Session(name, str(path), name) for name, path in zip(("discord", "email"), paths)]
    told_to_main(sessions, tmp_path)
    (tmp_path / "c.json").write_text("{")
    time.sleep(0.02)  # more than the grain of the file system's clock
    append(paths[0], *exchange("fresh", "two"))
    told = told_to_main(sessions, tmp_path)
    assert told == '[Session Activity]\n- discord (just now, 2 messages): "fresh"; last: "two"'
    assert told_to_main(sessions, tmp_path) is None
    append(paths[1], *exchange("later", "three"))
    told = told_to_main(sessions, tmp_path)
    assert told == '[Session Activity]\n- email (just now, 2 messages): "later"; last: "three"'


def test_what_does_not_fit_after_a_corrupt_state_is_counted_and_nothing_old_is_told(home, tmp_path):
    names = [f"session-{number}" for number in range(12)]
    paths = [home.session(name, *exchange("old", "one")) for name in names]
    sessions = [Session(name, str(path), name) for name, path in zip(names, paths)]
    told_to_main(sessions, tmp_path)
    told_to_main(sessions, tmp_path)
    (tmp_path / "c.json").write_text("{")
    time.sleep(0.02)
    for number, path in enumerate(paths):
        append(path, *exchange(f"fresh {number}", "two"))
    told = told_to_main(sessions, tmp_path)
    assert told.count('"fresh ') == 3
    assert told.endswith("+9 more")
    assert "old" not in told
    assert told_to_main(sessions, tmp_path) is None


def test_a_missing_transcript_is_skipped_until_it_is_there(home, ask):
    path = home.session("discord")
    path.unlink()
    assert ask() is None
    write(path, *exchange("hello", "hi"))
    assert "hello" in ask()


def test_a_truncated_transcript_is_read_again_without_repeating(home, ask):
    first, second, third = user("first"), user("second"), user("third")
    path = home.session("discord", first, second)
    ask()
    write(path, first, third)
    told = ask()
    assert "third" in told
    assert "first" not in told


def test_a_transcript_rewritten_with_the_same_entries_tells_nothing(home, ask):
    records = exchange("hello", "hi")
    path = home.session("discord", *records)
    ask()
    path.unlink()
    write(path, {"type": "mode", "mode": "normal"}, *records)
    assert ask() is None


def test_a_record_behind_one_that_was_torn_anywhere_is_told(home, ask):
    path = home.session("discord", *exchange("hello", "hi"))
    ask()
    torn = line(assistant("torn", ("Bash", {"command": "ls"})))
    for cut in (1, 20, len(torn) // 2, len(torn) - 30, len(torn) - 2):
        with path.open("ab") as file:
            file.write(torn[:cut] + line(user(f"whole {cut}")))
        assert f"whole {cut}" in ask()


def test_what_is_older_than_a_day_is_not_told_at_first_sight(home, ask):
    old = time.time() - 30 * 3600
    path = home.session("discord", *exchange("ancient", "one", at=old), *exchange("recent", "two"))
    told = ask()
    assert "recent" in told
    assert "2 messages" in told
    assert "ancient" not in told
    os.utime(path)
    assert ask() is None


def test_a_session_that_slept_for_a_day_is_not_told_but_heard_when_it_wakes(home, ask):
    old = time.time() - 30 * 3600
    path = home.session("discord", *exchange("ancient", "one", at=old))
    os.utime(path, (old, old))
    assert ask() is None
    append(path, *exchange("awake", "two"))
    assert "awake" in ask()


def test_records_that_say_nothing_move_the_cursor_silently(home, ask, tmp_path):
    path = home.session("discord", *exchange("hello", "hi"))
    ask()
    append(path, record("system", subtype="turn_duration"))
    assert ask() is None
    assert cursors(tmp_path)["main"]["discord"]["offset"] == path.stat().st_size


def test_what_did_not_fit_is_counted_and_told_the_next_time(home, ask):
    names = [f"session-{number}" for number in range(9)]
    for name in names:
        home.session(
            name,
            *exchange(
                f"{name} asks something that takes a while to tell",
                "An answer of some length. " * 9,
            ),
        )
    first, second = ask(), ask()
    told = [name for name in names if f"- {name} (" in first]
    assert len(told) == 5
    assert first.splitlines()[-1] == "+4 more"
    assert sorted(name for name in names if f"- {name} (" in second) == sorted(
        set(names) - set(told)
    )
    assert ask() is None


def test_more_sessions_than_a_prompt_reads_are_all_told_in_the_end(home, ask):
    names = {f"s{number:02}" for number in range(40)}
    for name in names:
        home.session(name, *exchange(f"request of {name}", "ok"))
    told = set()
    for _ in range(12):
        text = ask() or ""
        told |= {name for name in names if f"- {name} (" in text}
    assert told == names


def test_a_session_larger_than_the_window_is_read_from_its_end(home, ask):
    path = home.session("discord", user("at the very beginning"))
    with path.open("ab") as file:
        for _ in range(64):
            file.write(
                line(user([{"tool_use_id": "t", "type": "tool_result", "content": "x" * 65536}]))
            )
    append(path, *exchange("at the end", "done"))
    told = ask()
    assert "at the end" in told
    assert "at the very beginning" not in told
    assert "2+ messages" in told


def test_records_between_that_say_nothing_do_not_shorten_what_is_told_at_first_sight(home, ask):
    """Claude Code 2.1 repeats its system prompt in a record of 57 KB at every turn."""
    snapshot = record(
        "attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["x" * 57_000]}
    )
    home.session(
        "discord",
        user("write the notes"),
        snapshot,
        *exchange("and then?", "done"),
        snapshot,
        user("more"),
    )
    told = ask()
    assert '4 messages): "write the notes"' in told


def test_a_line_longer_than_is_read_is_not_read_and_what_follows_it_is(home, ask, monkeypatch):
    monkeypatch.setattr(new_entries, "SKIPPED_BYTES", 1024 * 1024)
    path = home.session("discord", *exchange("hello", "hi"))
    ask()
    with path.open("ab") as file:
        file.truncate(2 * 1024 * 1024)
    assert ask() is None
    with path.open("ab") as file:
        file.write(b"\n")
    append(path, *exchange("after", "it"))
    assert "after" in ask()


def test_a_cursor_does_not_move_before_the_text_was_handed_over(home, tmp_path):
    path = home.session("discord", *exchange("hello", "hi"))
    discord = [Session("discord", str(path), "discord")]

    def fail():
        with deliver_to_main(discord, tmp_path) as update:
            assert "hello" in update.text
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        fail()
    assert "hello" in told_to_main(discord, tmp_path)
    assert told_to_main(discord, tmp_path) is None


class TestForks:
    def test_entries_that_a_fork_copied_are_told_once(self, home, ask):
        shared = exchange("shared question", "shared answer")
        home.session("main-line", *shared)
        ask()
        home.session("fork", *shared, *exchange("only in the fork", "yes"))
        told = ask()
        assert "only in the fork" in told
        assert "shared" not in told
        assert "2 messages" in told

    def test_a_fork_and_its_parent_seen_at_once_share_their_copies(self, home, ask):
        shared = exchange("shared question", "shared answer")
        parent = home.session("parent", *shared, *exchange("parent goes on", "a"))
        os.utime(parent, (time.time() - 60, time.time() - 60))
        home.session("fork", *shared, *exchange("fork goes on", "b"))
        told = ask()
        assert told.count("shared question") == 1
        assert "fork goes on" in told

    def test_a_parent_that_went_on_after_the_fork_was_told_does_not_repeat_through_it(
        self, home, ask
    ):
        shared = exchange("shared question", "shared answer")
        parent = home.session("parent", *shared)
        ask()
        append(parent, *[one for number in range(9) for one in exchange(f"parent {number}", "a")])
        ask()
        home.session("fork", *shared, *exchange("fork goes on", "b"))
        told = ask()
        assert "fork goes on" in told
        assert "shared" not in told

    def test_a_fork_of_the_current_session_tells_only_what_is_its_own(self, home, tmp_path):
        shared = exchange("my own words", "my own answer")
        own = home.session("main", *shared)
        fork = home.session("fork", *shared, *exchange("the fork's words", "b"))
        told = told_to_main([Session("fork", str(fork), "fork")], tmp_path, own_path=str(own))
        assert "the fork's words" in told
        assert "my own" not in told

    def test_forks_with_nothing_but_copies_keep_no_news_waiting(self, home, ask):
        shared = exchange("shared question", "shared answer")
        home.session("main-line", *shared)
        ask()
        speaker = home.session("speaker", *exchange("the news", "yes"))
        os.utime(speaker, (time.time() - 60, time.time() - 60))
        for number in range(12):
            home.session(f"fork-{number}", *shared)
        told = ask()
        assert "the news" in told
        assert "shared" not in told


def test_sessions_with_nothing_to_say_keep_no_news_waiting(home, tmp_path):
    idle = [home.session(f"idle-{number}", *exchange("go on", "yes")) for number in range(12)]
    speaker = home.session("speaker", *exchange("the news", "yes"))
    os.utime(speaker, (time.time() - 60, time.time() - 60))
    sessions = [Session(path.stem, str(path)) for path in [*idle, speaker]]
    assert "the news" in told_to_main(sessions, tmp_path)


class TestRules:
    def told(self, home, rules, tmp_path):
        sessions = [
            Session(name, str(home.resolve(name)), name)
            for name in runtime("agent-sdk").session_names(str(home.sessions_dir))
        ]
        return told_to_main(sessions, tmp_path, rules=rules)

    def test_an_ignored_session_is_never_mentioned(self, home, tmp_path):
        home.session("scratch", *exchange("hello", "hi"))
        assert self.told(home, "{scratch: {ignore: true}}", tmp_path) is None

    def test_a_session_without_text_shows_who_when_and_how_much(self, home, tmp_path):
        home.session(
            "public-chat", user("my secret"), assistant(("Edit", {"file_path": "/x/secret"}), "ok")
        )
        told = self.told(home, '{"public-*": {text: false}}', tmp_path)
        assert told == "[Session Activity]\n- public-chat (just now, 2 messages)"

    def test_a_rule_for_a_title_reaches_a_session_that_only_its_transcript_names(self, tmp_path):
        path = write(
            tmp_path / f"{new_id()}.jsonl",
            *exchange("hello", "hi"),
            {"type": "custom-title", "customTitle": "diary"},
        )
        assert (
            told_to_main([Session(path.stem, str(path))], tmp_path, rules="{diary: {ignore: true}}")
            is None
        )


class TestResolvers:
    def test_a_named_session_resolves_to_its_transcript(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        (tmp_path / "sessions").mkdir()
        (tmp_path / "sessions" / "discord.json").write_text('{"sessionId": "abc-1"}')
        path = tmp_path / "claude/projects/-srv-agent/abc-1.jsonl"
        assert resolve_agent_sdk_jsonl(tmp_path / "sessions", "discord", "/srv/agent") == path
        assert resolve_agent_sdk_jsonl(tmp_path / "sessions", "email", "/srv/agent") is None

    @pytest.mark.parametrize(
        "content", ["{}", "{", "[]", '{"sessionId": "../../etc/passwd"}', '{"sessionId": 7}']
    )
    def test_a_pointer_that_points_nowhere_safe_resolves_to_nothing(self, tmp_path, content):
        (tmp_path / "discord.json").write_text(content)
        assert resolve_agent_sdk_jsonl(tmp_path, "discord", "/srv/agent") is None


def test_the_rules_of_the_home_hold_for_whoever_asks_for_updates(home, ask):
    home.session("mail", *exchange("my diagnosis", "I see."))
    home.session("discord", *exchange("hello", "hi"))
    (home.root / ".session-memory" / "config.yaml").write_text("sessions: {mail: {ignore: true}}\n")
    told = ask()
    assert "hello" in told
    assert "mail" not in told
