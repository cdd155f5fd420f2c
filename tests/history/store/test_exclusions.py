"""Excluded parts of a store, below the commands: sessions, forks, groups, queue, readers and writers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hermes_scene import HermesDatabase
from hooks_scene import PlainUser
from records import append, codex_exchange, codex_line, exchange, write
from store_scene import EVERYTHING, MONDAY, START, Scene, StoreUser, put, said, state, tool

from session_memory.history.archives.format import render_trailer
from session_memory.history.archives.writer import open_sessions
from session_memory.history.store.rules import ReadRules
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.exclusions import is_behind
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.sqlite.tool_uses import work_hours, work_places
from session_memory.history.store.values import RuleSubject
from session_memory.sessions.settings.homes import Home, home_at, person_home
from session_memory.sessions.settings.host_layout import Layout
from session_memory.sessions.settings.rules import Rule

AGENT, PRIVATE = "/srv/agent", "/srv/private"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A person's store."""
    return scene_in(tmp_path)


def scene_in(tmp_path: Path, *, is_of_host: bool = False) -> Scene:
    environ = {"HOME": str(tmp_path / "home")}

    def home_for(group: str) -> object:
        host = f"{tmp_path}/host"
        if group:
            return home_at(f"{host}/groups/{group}", environ, host=host)
        return home_at(host, environ) if is_of_host else person_home(environ)

    return Scene(tmp_path, rules=partial(ReadRules, home_for, environ))  # type: ignore[arg-type]


def rules(scene: Scene, text: str, place: str = "home") -> None:
    path = scene.path / place / ".session-memory" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(scene: Scene, query: str) -> list[str]:
    return sorted(hit.entry.text for hit in scene.store.search(query, EVERYTHING))


def test_what_a_copy_says_is_excluded_although_its_session_is_read_later(scene: Scene) -> None:
    rules(scene, f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    copied = said("plum of the other", origin="a")
    put(scene, None, state("copy"), copied, said("plum of its own", 1))
    put(scene, None, state("a", cwd=PRIVATE), said("plum of the other session", 2))
    assert found(scene, "plum") == ["plum of its own"]


def test_what_a_copy_says_is_shown_again_once_its_session_has_a_name_that_no_rule_fits(
    scene: Scene,
) -> None:
    rules(scene, "sessions: {secret*: {ignore: true}}\n")
    put(
        scene,
        None,
        state("copy"),
        said("plum of the other", origin="a"),
        said("plum of its own", 1),
    )
    named = state("a", title="secret plums", title_rank=3)
    before = put(scene, None, named, said("plum of the other session", 2))
    assert found(scene, "plum") == ["plum of its own"]
    renamed = put(scene, before, before._replace(title="plums"), said("plum as renamed", 3))
    assert len(found(scene, "plum")) == 4
    put(scene, renamed, renamed._replace(title="secret plums"), said("plum of today", 4))
    assert found(scene, "plum") == ["plum of its own"]


def test_a_transcript_that_another_process_removes_while_rules_are_applied_ends_no_search(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(scene, None, state("gone"), said("plum of the removed"))
    put(scene, None, state("a"), said("plum of the other", 1))
    judge = ReadRules.rule

    def rule(self: ReadRules, file: RuleSubject) -> Rule:
        with closing(sqlite3.connect(scene.store.path)) as other:
            other.execute("DELETE FROM memory_file_states WHERE session_id = 'gone'")
            other.commit()
        return judge(self, file)

    monkeypatch.setattr(ReadRules, "rule", rule)
    rules(scene, f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    assert "plum of the other" in found(scene, "plum")


def test_what_is_said_while_in_an_excluded_directory_is_excluded_and_no_more(scene: Scene) -> None:
    there = said("plum there", 1, cwd=PRIVATE, tools=(tool("cat plum"),))
    put(scene, None, state(), said("plum before"), there, said("plum after", 2))
    rules(scene, f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    assert found(scene, "plum") == ["plum after", "plum before"]
    assert scene.texts() == ["plum before", "plum after"]
    assert [one.entry_count for one in scene.conversations()] == [2]
    assert [(one.conversations, one.messages) for one in work_hours(scene.store, EVERYTHING)] == [
        (1, 2)
    ]
    rules(scene, f"projects: {{{PRIVATE}: {{text: false}}}}\n")
    assert [one.entry_count for one in scene.conversations()] == [4]  # tool uses count, too
    assert [place.directory for place in work_places(scene.store)] == [AGENT]
    rules(scene, f"projects: {{{AGENT}: {{text: false}}}}\n")
    assert [place.directory for place in work_places(scene.store)] == [""]
    rules(scene, f"projects: {{{AGENT}: {{ignore: true}}}}\n")
    assert work_places(scene.store) == work_hours(scene.store, EVERYTHING) == []
    rules(scene, "")
    assert scene.texts() == ["plum before", "plum there", "Bash cat plum", "plum after"]
    assert "cat plum" in found(scene, "plum")


def test_a_conversation_that_was_all_there_is_not_listed(scene: Scene) -> None:
    put(scene, None, state(), said("plum before"), said("plum there", 500, cwd=PRIVATE))
    rules(scene, f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    assert [one.title for one in scene.conversations()] == ["plum before"]
    rules(scene, f"projects: {{{PRIVATE}: {{text: false}}}}\n")
    assert [one.title for one in scene.conversations()] == ["plum before", ""]


@pytest.mark.parametrize("first", ["original", "fork"])
def test_what_a_fork_copied_of_an_excluded_session_is_excluded_there_too(
    scene: Scene, first: str
) -> None:
    shared = [said("plum shared", key="k")]
    for name in (first, "fork" if first == "original" else "original"):
        put(scene, None, state(name), *shared, said(f"plum of the {name}", 1))
    rules(scene, "sessions: {original: {ignore: true}}\n")
    assert found(scene, "plum") == ["plum of the fork"]
    assert scene.texts() == ["plum of the fork"]


@pytest.mark.parametrize(
    "rule", ["sessions: {original: {ignore: true}}", f"projects: {{{PRIVATE}: {{ignore: true}}}}"]
)
def test_what_a_fork_copied_of_an_excluded_session_stays_excluded_when_the_store_drops_that(
    scene: Scene, rule: str
) -> None:
    for name, cwd in (("original", PRIVATE), ("fork", AGENT)):
        own = said(f"plum of the {name}", 1, cwd=cwd)
        put(scene, None, state(name, cwd=cwd), said("plum shared", key="k", cwd=PRIVATE), own)
    rules(scene, rule)
    # as with `keep: none`, once its transcript is gone
    scene.store.forget("", "-srv-agent/original.jsonl")
    assert found(scene, "plum") == ["plum of the fork"]
    rules(scene, "")
    assert found(scene, "plum") == ["plum of the fork", "plum shared"]


def test_a_rule_that_is_written_while_the_rules_are_read_is_read_next(
    scene: Scene, tmp_path: Path
) -> None:
    put(scene, None, state("a"), said("plum"))
    rules(scene, "sessions: {b: {ignore: true}}\n")
    environ = {"HOME": str(tmp_path / "home")}
    asked: list[str] = []

    def home_for(group: str) -> Home:
        asked.append(group)
        if len(asked) == 2:  # the rules have been read, and a session's names are looked up
            rules(scene, "sessions: {a: {ignore: true}}\n")
        return person_home(environ)

    with closing(
        SqliteStore(str(scene.database), rules=partial(ReadRules, home_for, environ))
    ) as store:
        store.apply_rules()
    assert found(scene, "plum") == []


def test_a_group_s_rules_are_for_the_group_and_its_host_s_for_all(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, is_of_host=True)
    for group in ("one", "two"):
        put(scene, None, state("a", group), said(f"plum of {group}", key=group))
    of_the_group = scene.path / "host/.session-memory/groups/one.yaml"
    of_the_group.parent.mkdir(parents=True)
    of_the_group.write_text("sessions: {a: {ignore: true}}\n")
    assert found(scene, "plum") == ["plum of two"]
    of_the_group.write_text("sessions: {a: {ignore: false}}\n")
    rules(scene, "sessions: {one: {ignore: true}}\n", "host")
    assert found(scene, "plum") == ["plum of two"]


def test_a_session_that_was_put_by_under_a_name_keeps_it_for_the_rules(tmp_path: Path) -> None:
    scene = scene_in(tmp_path, is_of_host=True)
    put(scene, None, state("a", "one"), said("plum"))
    layout = Layout(scene.path / "host")
    layout.make()
    layout.group("one").make()
    with closing(open_sessions(layout)) as sessions:
        sessions.set("one", "a")
        sessions.archive("one", "the diary")
    rules(scene, 'sessions: {"the diary": {ignore: true}}\n', "host")
    assert found(scene, "plum") == []


def test_a_session_keeps_the_name_that_it_was_archived_with(scene: Scene) -> None:
    put(scene, None, state(), said("plum"))
    folder = scene.path / "home" / ".session-memory" / "conversations"
    folder.mkdir(parents=True)
    rules(scene, "sessions: {mail: {ignore: true}}\n")
    assert found(scene, "plum") == ["plum"]
    (folder / "one.md").write_text(
        render_trailer({"session": "a", "name": "mail", "title": "Plums"})
    )
    assert found(scene, "plum") == []


def test_a_conversation_waits_in_the_queue_as_long_as_anything_of_it_is_excluded(
    scene: Scene,
) -> None:
    put(scene, None, state(), said("plum"), said("there", 1, cwd=PRIVATE))
    put(scene, None, state("b"), said("pear"))
    scene.store.connection.execute("UPDATE memory_conversations SET status = 'ready'")
    rules(scene, f"projects: {{{PRIVATE}: {{text: false}}}}\n")
    with closing(StoredQueue(str(scene.database), scene.options["rules"])) as queue:
        assert [part.conversation.session_id for part in queue.waiting("x", START * 2)] == ["b"]
        rules(scene, "")
        assert [part.conversation.session_id for part in queue.waiting("x", START * 2)] == [
            "b",
            "a",
        ]


def test_what_is_taken_in_under_a_rule_is_excluded_with_the_same_transaction(scene: Scene) -> None:
    rules(scene, "sessions: {a: {ignore: true}}\n")
    put(scene, None, state(), said("plum"))
    with closing(SqliteStore(str(scene.database))) as without_rules:
        assert without_rules.search("plum", EVERYTHING) == []
    assert not is_behind(scene.store.connection)


def test_whoever_only_reads_follows_the_rules_while_another_process_writes(scene: Scene) -> None:
    put(scene, None, state(), said("plum"))
    with closing(scene.open()) as writer:
        writer.connection.execute("BEGIN IMMEDIATE")
        rules(scene, "sessions: {a: {ignore: true}}\n")
        assert found(scene, "plum") == []
        writer.connection.execute("ROLLBACK")
    rules(scene, "")
    assert found(scene, "plum") == ["plum"]


def test_a_title_that_is_given_later_counts_from_then_on(scene: Scene) -> None:
    rules(scene, "sessions: {Diary: {ignore: true}}\n")
    before = put(scene, None, state(), said("plum"))
    assert found(scene, "plum") == ["plum"]
    put(scene, before, before._replace(title="Diary", title_rank=3), said("pear", 1))
    assert found(scene, "plum") == []


def test_a_session_without_a_title_is_excluded_by_its_first_words_as_sessions_shows_them(
    tmp_path: Path,
) -> None:
    user = StoreUser(tmp_path)
    user.session(
        "plan", *exchange("Let people choose a time", "The harbour opens at nine.", at=MONDAY)
    )
    assert "opens at nine" in user.run("search", "harbour").stdout
    user.config("sessions: {Let people*: {ignore: true}}\n")
    assert "opens at nine" not in user.run("search", "harbour").stdout


def test_a_session_is_hidden_while_a_rule_for_its_later_directory_or_the_one_before_it_applies(
    tmp_path: Path,
) -> None:
    """Only its mirror shows that: the store knows its first directory and its own id."""
    person, database = StoreUser(tmp_path), HermesDatabase(tmp_path / ".hermes")
    first = database.session("/srv/app", end_reason="compression", ended_at=1.0)
    moved = database.session("/srv/app")
    further = database.session("/srv/app", parent_session_id=first)
    texts = {first: "count the apples", moved: "move the apples", further: "eat the apples"}
    for session, text in texts.items():
        database.exchange(session, text, "done")

    def found() -> set[str]:
        output = person.run("search", "apples").stdout
        return {session for session, text in texts.items() if text in output.replace("*", "")}

    assert found() == {*texts}
    person.config(f"sessions: {{{first}: {{ignore: true}}}}\n")
    assert found() == {moved}
    database.run("UPDATE sessions SET cwd = '/srv/other' WHERE id = ?", moved)
    person.config("projects: {/srv/other: {ignore: true}}\n")
    assert found() == {first, further}
    person.config("")
    assert found() == {*texts}


def test_a_hidden_session_that_its_program_deletes_stays_hidden_until_its_own_rule_is_removed(
    tmp_path: Path,
) -> None:
    """Its emptied mirror stays as long, because only that names its later directory."""
    person, database = StoreUser(tmp_path), HermesDatabase(tmp_path / ".hermes")
    first = database.session("/srv/app", end_reason="compression", ended_at=1.0)
    moved, plain, left = (database.session("/srv/app") for _ in range(3))
    further = database.session("/srv/app", parent_session_id=first)
    texts = {moved: "move the apples", further: "eat the apples", plain: "paint the apples"}
    texts[left] = "leave the apples"
    for session, text in texts.items():
        database.exchange(session, text, "done")

    def found() -> set[str]:
        output = person.run("search", "apples").stdout.replace("*", "")
        return {session for session, text in texts.items() if text in output}

    assert found() == {*texts}
    database.run("UPDATE sessions SET cwd = '/srv/other' WHERE id = ?", moved)
    moved_to, before = "projects: {/srv/other: {ignore: true}}\n", f"{first}: {{ignore: true}}"
    person.config(f"{moved_to}sessions: {{{before}, {plain}: {{ignore: true}}}}\n")
    assert found() == {left}
    for session in (moved, further, plain):
        database.delete(session)
    assert found() == {left}
    person.config(f"{moved_to}sessions: {{{before}}}\n")
    assert found() == {left, plain}
    person.config(f"{moved_to}sessions: {{paint*: {{ignore: true}}}}\n")
    assert found() == {left, further}
    person.config(f"sessions: {{{before}}}\n")
    assert found() == {left, plain, moved, further}
    person.config("")
    assert found() == {*texts}


def test_a_session_that_is_deleted_right_after_the_command_for_its_rule_stays_hidden(
    tmp_path: Path,
) -> None:
    person, database = StoreUser(tmp_path), HermesDatabase(tmp_path / ".hermes")
    session = database.session("/srv/app")
    database.exchange(session, "count the apples", "three apples")
    database.exchange(database.session("/srv/app"), "paint the fence", "done")
    person.run("ingest")
    database.run("UPDATE sessions SET cwd = '/srv/other' WHERE id = ?", session)
    done = person.run("config", "projects./srv/other.ignore", "true")
    assert "sessions that Hermes has deleted are known" in " ".join(done.stdout.split())
    database.delete(session)
    for _ in range(2):
        assert "three" not in person.run("search", "apples").stdout
        assert "fence" in person.run("search", "paint").stdout.replace("*", "")
    person.run("config", "projects./srv/other.ignore", "--unset")
    assert "count the apples" in person.run("search", "apples").stdout.replace("*", "")


def test_a_title_that_may_quote_messages_from_an_excluded_directory_is_not_shown(
    tmp_path: Path,
) -> None:
    person = PlainUser(tmp_path)
    person.config(f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    hidden = exchange("count the apples", "three apples", cwd=PRIVATE)
    title = {"type": "ai-title", "aiTitle": "Counting apples", "sessionId": "s"}
    path = person.session(*exchange("paint the fence", "done"), *hidden, title)
    for text in ("paint the fence", "clean the brush"):
        told = person.run().decode()
        assert text in told
        assert "apples" not in told.lower()
        append(path, *exchange("clean the brush", "cleaned"))
    listed = StoreUser(tmp_path).run("sessions", "--all").stdout
    assert "paint the fence" in listed
    assert "apples" not in listed.lower()


def test_the_rows_that_two_databases_of_hermes_share_are_stored_once_and_all_others_too(
    tmp_path: Path,
) -> None:
    person, database = StoreUser(tmp_path), HermesDatabase(tmp_path / ".hermes")
    session = database.session("/srv/app")
    database.exchange(session, "count the apples", "three apples")
    person.run("ingest")
    coder = database.copy(tmp_path / ".hermes" / "profiles" / "coder")
    database.exchange(session, "eat the apples", "done")
    coder.exchange(session, "move the apples", "done")

    def found() -> str:
        return person.run("search", "apples").stdout.replace("*", "")

    texts = ("count the apples", "eat the apples", "move the apples")
    assert [found().count(f"\n  {text}\n") for text in texts] == [1, 1, 1]
    person.run("forget", session, "--yes")
    for _ in range(2):
        assert [text for text in texts if text in found()] == ["move the apples"]
        coder.exchange(session, "paint the fence", "done")


def test_a_session_that_a_rule_hides_in_one_of_two_databases_shows_its_own_messages_in_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    person, database = StoreUser(tmp_path), HermesDatabase(tmp_path / ".hermes")
    session = database.session("/srv/app", title="Counting apples")
    database.exchange(session, "count the apples", "three apples")
    person.run("ingest")
    coder = database.copy(tmp_path / ".hermes" / "profiles" / "coder")
    coder.exchange(session, "paint the fence", "done")
    person.run("archive", "--all")
    database.run("UPDATE sessions SET cwd = '/srv/other'")
    commands = (
        ("search", "apples"),
        ("search", "fence"),
        ("sessions", "--all"),
        ("sessions", "--conversations"),
        ("read", f"{session}-coder", "--all"),
        ("export", "--all"),
        ("archive", "--all", "--dry-run"),
        ("archive", "--all"),
    )

    def shown() -> str:
        runs = [person.run(*words, CLAUDECODE="1") for words in commands]
        return "".join([run.stdout + run.stderr for run in runs]).replace("*", "")

    assert "three apples" in shown()
    person.config("projects: {/srv/other: {ignore: true}}\n")
    assert "fence" in shown()
    assert "three apples" not in shown()
    assert "Counting" not in shown()


def test_a_turn_of_codex_in_an_excluded_directory_is_hidden_wherever_it_is_read(
    tmp_path: Path,
) -> None:
    """Only the line at the beginning of a turn names its directory."""
    person = PlainUser(tmp_path)
    person.config(f"projects: {{{PRIVATE}: {{ignore: true}}}}\n")
    session_id = "01a1fb3f-0000-7000-8000-000000000001"
    path = tmp_path / ".codex" / "sessions" / "2026" / "11" / "30" / f"rollout-{session_id}.jsonl"
    header = {"id": session_id, "session_id": session_id, "cwd": AGENT, "thread_source": "user"}
    hidden = codex_exchange("count the apples", "three apples", cwd=PRIVATE)
    begun = [codex_line("session_meta", header), *codex_exchange("plan it", "yes", cwd=AGENT)]
    write(path, *begun, *hidden[:3])
    store = StoreUser(tmp_path)
    outputs = [person.run().decode(), store.run("search", "apples").stdout]
    append(path, *hidden[3:])
    outputs += [person.run().decode(), store.run("search", "apples").stdout]
    append(path, *codex_exchange("go on", "done", cwd=AGENT))
    outputs.append(store.run("read", session_id).stdout)
    assert "plan it" in outputs[0]
    assert "plan it" in outputs[-1]
    assert "go on" in outputs[-1]
    assert not [output for output in outputs if "apples" in output.replace("for apples", "")]
