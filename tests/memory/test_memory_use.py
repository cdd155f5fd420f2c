"""Searches for memories: the index, the command, folders and rules."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from git_scene import repository
from memories_scene import EXPIRY, FEBRUARY, MemoryDirectory, conversation, fact
from records import NamedHome, assistant, exchange, user
from runtimes_scene import Person as RuntimesUser
from store_scene import StoreUser

from session_memory.app.commands import memories as memories_command
from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.awareness.activity.update_text import HEADER
from session_memory.common.errors import WrongCallError
from session_memory.history.search.query import asks_for_last_work
from session_memory.history.store.location import StoreLocation, find_location
from session_memory.history.store.rules import ReadRules
from session_memory.memory import folders as memory_folders
from session_memory.memory import forgotten
from session_memory.memory.memory_index import MemoryFilter, MemoryIndex
from session_memory.memory.strategy import Memory
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings import homes
from session_memory.sessions.settings.sections import StoreSettings


class TestIndex:
    def test_the_index_is_built_anew_from_the_pages(
        self, memory_dir: MemoryDirectory, tmp_path: Path
    ) -> None:
        memory_dir.keep(EXPIRY, Memory("episode", "Login", "Fixed it."))
        before = {memory.id: memory for memory in memory_dir.all()}
        memory_dir.index.close()
        for path in (tmp_path / "store").iterdir():
            path.unlink()
        memory_dir.index = MemoryIndex(memory_dir.database)
        memory_dir.refresh()
        assert {memory.id: memory for memory in memory_dir.all()} == before

    def test_any_text_is_a_query(self, memory_dir: MemoryDirectory) -> None:
        for query in ['"', "AND", "* OR (", "-", "", "title:x", "日", "\x00", "expiry NEAR("]:
            memory_dir.keep(EXPIRY)
            assert isinstance(memory_dir.found(query), list)

    def test_search_finds_words_in_other_forms_and_keeps_to_its_groups(
        self, memory_dir: MemoryDirectory, tmp_path: Path
    ) -> None:
        memory_dir.keep(fact("The user prefers tabs"))
        memory_dir.keep(fact("Prefers spaces"), of=conversation(home="work"))
        for home, title in (("", "The user prefers tabs"), ("work", "Prefers spaces")):
            with closing(MemoryIndex(memory_dir.database, visible=(home,))) as index:
                found = index.search("preferring", MemoryFilter())
            assert [memory.title for memory in found] == [title]
        assert (tmp_path / "work" / "memories" / "facts.md").is_file()

    def test_what_is_not_wanted_is_left_out(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(fact("Redis for sessions", "a"), fact("Redis for queues", "b"))
        assert memory_dir.found("redis -queues") == ["Redis for sessions"]

    @pytest.mark.parametrize("rules", ["", "sessions: {gone: {text: false}}\n"])
    def test_those_told_to_prompts_are_those_listed(
        self, memory_dir: MemoryDirectory, tmp_path: Path, rules: str
    ) -> None:
        kept = memory_dir.keep(EXPIRY) + memory_dir.keep(
            fact("Tea is at five"), of=conversation(session_id="gone")
        )
        person = homes.person_home({"HOME": str(tmp_path)})
        os.makedirs(person.memory_dir, exist_ok=True)
        Path(person.config_file).write_text(rules)
        with closing(
            MemoryIndex(
                memory_dir.database,
                partial(ReadRules, lambda group: person, {"HOME": str(tmp_path)}),
                visible=("",),
            )
        ) as index:
            listed = [one.id for one in index.memories(MemoryFilter(is_untrusted=False))]
            told = [one.id for one in index.placed("") if one.is_told]
            assert sorted(told) == sorted(listed) == sorted(kept[: 1 if rules else 2])


class TestCommand:
    """`session-memory memories`, for a person and for a group of a host."""

    @pytest.fixture
    def person(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryDirectory]:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("SESSION_MEMORY_HOME", raising=False)
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        monkeypatch.chdir(tmp_path)
        with closing(MemoryDirectory(tmp_path / ".session-memory")) as memory_dir:
            yield memory_dir

    @staticmethod
    def run(*words: str) -> int:
        parser = argparse.ArgumentParser()
        memories_command.add_arguments(parser)
        return memories_command.run(parser.parse_args(words))

    def test_what_is_remembered_is_listed_searched_and_shown(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (id, _) = person.keep(EXPIRY, Memory("episode", "A <b>day</b>", "Fixed."))
        assert self.run() == 0
        assert capsys.readouterr().out.splitlines()[0].startswith(id) or len(person.all()) == 2
        assert self.run("search", "expiry", "of", "JWT") == 0
        line = (
            f"{id}  2026-02-21  fact (auth): The JWT expiry of the login service is 3600 seconds\n"
        )
        found, text, where = capsys.readouterr().out.splitlines()
        assert found == line.rstrip()
        assert text == '  "expiry set to 3600"'
        assert where.startswith(
            "  from session d58a79a7-1111-4222-8333-abcdefabcdef, 2026-02-21 14:32:05 UTC: "
        )
        assert where.endswith("session-memory read 12")
        assert self.run("show", id[:6]) == 0
        shown = capsys.readouterr().out
        assert '"expiry set to 3600"' in shown
        assert "session-memory read 12\n" in shown
        assert "~/.session-memory/memories/facts.md" in shown
        for kind in ("log", "episode"):  # its name until 0.4
            self.run("list", "--kind", kind)
            listed = capsys.readouterr().out
            assert "  log: A ‹b›day‹/b›" in listed
            assert "episode" not in listed

    def test_json_holds_all_of_it(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (id,) = person.keep(EXPIRY)
        self.run("search", "JWT", "--json")
        (memory,) = json.loads(capsys.readouterr().out)["memories"]
        assert (memory["id"], memory["quote"]) == (id, "expiry set to 3600")
        assert memory["origins"][0]["conversation"] == 12

    def test_the_message_that_bears_it_out_is_named(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (id,) = person.keep(EXPIRY._replace(message=34, at=FEBRUARY - 60_000))
        self.run("show", id)
        assert (
            "2026-02-21 14:31:05 UTC, by summary: session-memory read 12 --around 34\n"
            in capsys.readouterr().out
        )
        self.run("show", id, "--json")
        (memory,) = json.loads(capsys.readouterr().out)["memories"]
        assert memory["origins"][0]["message"] == 34

    def test_a_search_sees_what_a_person_has_just_written(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        person.keep(EXPIRY)
        person.edit("facts.md", "3600 seconds", "an hour, says Ada")
        self.run("search", "Ada")
        assert "says Ada" in capsys.readouterr().out

    def test_forgetting_takes_one_away_for_good_and_says_what_it_was(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (id, other) = person.keep(EXPIRY, fact("Something else"))
        assert self.run("forget", f"^{id}") == 0
        assert capsys.readouterr().out == (
            f"1 memory forgotten:\n  {id}  2026-02-21  fact (auth): The JWT expiry of the login "
            "service is 3600 seconds\n"
            "To undo this within a day: session-memory memories forget --undo\n"
        )
        assert [memory.id for memory in person.all()] == [other]
        assert person.keep(EXPIRY) == []

    def test_what_was_forgotten_last_is_taken_back(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, second, third = person.keep(
            EXPIRY, fact("Something else", "x"), fact("A third thing", "y")
        )
        self.run("forget", first)
        self.run("forget", second, third)
        capsys.readouterr()
        assert self.run("forget", "--undo") == 0
        assert capsys.readouterr().out.startswith("2 memories taken back:\n")
        assert {memory.id for memory in person.all()} == {second, third}
        assert self.run("forget", first, "--undo") == 0
        assert {memory.id for memory in person.all()} == {first, second, third}
        assert person.keep(EXPIRY) == [first]
        with pytest.raises(memories_command.UnknownMemoryError):
            self.run("forget", "--undo")

    def test_what_it_had_superseded_is_superseded_again(self, person: MemoryDirectory) -> None:
        (old,) = person.keep(EXPIRY)
        newer = fact("The JWT expiry of the login service is 7200 seconds", replaces=(old,))
        (new,) = person.keep(newer, of=conversation(30, FEBRUARY + 86_400_000))
        self.run("forget", new)
        assert [(memory.id, memory.superseded) for memory in person.all()] == [(old, "")]
        self.run("forget", "--undo")
        assert {memory.id: memory.superseded for memory in person.all()} == {old: new, new: ""}

    def test_after_a_day_nothing_can_be_taken_back_and_nothing_is_left_of_it(
        self, person: MemoryDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (id,) = person.keep(EXPIRY)
        self.run("forget", id)
        kept = person.directory / forgotten.UNDO_LOG
        assert "3600" in kept.read_text()
        assert kept.stat().st_mode & 0o777 == 0o600
        later = time.time() + 86_401
        monkeypatch.setattr(time, "time", lambda: later)
        with pytest.raises(memories_command.UnknownMemoryError):
            self.run("forget", "--undo")
        assert not kept.exists()

    def test_what_is_forgotten_for_good_takes_the_rest_with_it(
        self, person: MemoryDirectory
    ) -> None:
        first, second = person.keep(EXPIRY, fact("Something else"))
        self.run("forget", first)
        person.library().forget([second])
        assert not (person.directory / forgotten.UNDO_LOG).exists()

    def test_what_cannot_be_done_is_said(self, person: MemoryDirectory) -> None:
        for words in [("show", "zzz"), ("show",), ("forget", ""), ("list", "x"), ("search",)]:
            person.keep(EXPIRY)
            with pytest.raises((memories_command.UnknownMemoryError, WrongCallError)):
                self.run(*words)
            assert len(person.all()) == 1

    def test_an_id_that_could_be_several_is_refused(self, person: MemoryDirectory) -> None:
        ids = person.keep(
            *[
                fact(f"Thing {word} exists", word)
                for word in "abcdefghijklmnopqrstuvwxyzäöüß0123456789"
            ]
        )
        first = next(id[0] for id in ids if sum(other[0] == id[0] for other in ids) > 1)
        with pytest.raises(memories_command.UnknownMemoryError, match="could be any of"):
            self.run("forget", first)
        assert len(person.all()) == len(ids)

    def test_untrusted_ones_are_listed_only_when_asked_for(
        self, person: MemoryDirectory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        person.untrusted.add("stranger")
        person.keep(EXPIRY, of=conversation(session_id="stranger"))
        self.run("search", "JWT")
        assert capsys.readouterr().out.startswith(
            "No memory matches JWT. To search the conversations: "
        )
        self.run("list", "--untrusted")
        assert "untrusted fact (auth): The JWT" in capsys.readouterr().out

    def test_other_commands_find_memories_that_hold(self, person: MemoryDirectory) -> None:
        from session_memory.memory.library import search_memories

        person.keep(EXPIRY)
        location = find_location(None, os.environ)
        assert [memory.title for memory in search_memories(location, "jwt", 5, print, None)] == [
            EXPIRY.title
        ]


class TestFolders:
    def test_a_person_an_agent_and_a_group_have_their_memories_where_they_look_for_them(
        self, tmp_path: Path
    ) -> None:
        environ = {"HOME": str(tmp_path)}
        (tmp_path / ".claude").mkdir()
        (tmp_path / "agent/.session-memory/sessions").mkdir(parents=True)
        (tmp_path / "host/store").mkdir(parents=True)
        (tmp_path / "host/groups").mkdir()
        (tmp_path / "host/store/messages.db").touch()
        person = find_location(str(tmp_path), environ)
        assert memory_folders.folder_of(person, "") == f"{tmp_path}/.session-memory/memories"
        agent = find_location(str(tmp_path / "agent"), environ)
        assert memory_folders.folder_of(agent, "") == f"{tmp_path}/agent/memories"
        host = find_location(str(tmp_path / "host"), environ)
        assert memory_folders.folder_of(host, "a") == f"{tmp_path}/host/groups/a/memories"
        prompt = homes.runtime_home(f"{tmp_path}/.claude", ".claude", environ)
        assert prompt.memories_dir == memory_folders.folder_of(person, "")


class TestRules:
    """Which sessions are untrusted, by the rules of config.yaml."""

    @pytest.fixture
    def location(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        home = homes.home_at(f"{tmp_path}/agent", os.environ)
        return StoreLocation(
            f"{home.memory_dir}/store/memory.db", (), (), None, StoreSettings(), home, os.environ
        )

    @pytest.mark.parametrize(
        ("rule", "is_untrusted"),
        [
            ("public-*", True),
            ("main", False),
            ("Auth", True),
            ("d58a79a7-1111-*", True),
            ("other", False),
        ],
    )
    def test_a_session_is_known_by_its_name_its_title_and_its_id(
        self, location: StoreLocation, tmp_path: Path, rule: str, is_untrusted: bool
    ) -> None:
        home = NamedHome(tmp_path / "agent")
        home.session("main")
        name = home.root / ".session-memory/sessions/public-chat.json"
        name.write_text(json.dumps({"sessionId": conversation().session_id}))
        (home.root / ".session-memory/config.yaml").write_text(
            f'sessions:\n  "{rule}": {{untrusted: true}}\n'
        )
        assert memory_folders.is_untrusted(location, conversation()) is is_untrusted

    def test_a_group_cannot_trust_itself_where_its_host_does_not(self, tmp_path: Path) -> None:
        home = homes.home_at(str(tmp_path), os.environ)
        location = StoreLocation(
            f"{tmp_path}/store/memory.db", (), (), None, StoreSettings(), home, os.environ
        )
        for home, flag in (tmp_path, "true"), (tmp_path / "groups/web", "false"):
            (home / ".session-memory").mkdir(parents=True)
            (home / ".session-memory/config.yaml").write_text(
                f"sessions:\n  web: {{untrusted: {flag}}}\n"
            )
        assert memory_folders.is_untrusted(location, conversation(home="web"))
        assert not memory_folders.is_untrusted(location, conversation(home="work"))


def test_a_person_notes_something_about_a_file_and_an_agent_only_what_its_session_proves(
    tmp_path: Path,
) -> None:
    person = StoreUser(tmp_path)
    shop = repository(tmp_path / "shop", src__dates="x\n")
    words = (
        "remember",
        "We use luxon for dates, not dayjs",
        "--kind",
        "decision",
        "--file",
        "dates",
    )
    noted = person.result(*words, cwd=shop / "src")["memory"]
    assert (noted["kind"], noted["subject"], noted["text"]) == (
        "decision",
        "shop",
        "In `src/dates`.",
    )
    assert person.result(*words, cwd=shop / "src")["memory"]["id"] == noted["id"]
    found = person.run("memories", "search", "luxon").stdout
    assert "We use luxon for dates, not dayjs" in found
    assert "noted by you, " in found
    assert "luxon" in (tmp_path / ".session-memory/memories/decisions.md").read_text()
    unproved = person.run(*words, CLAUDECODE="1")
    assert (unproved.returncode, "--quote" in unproved.stderr) == (2, True)
    person.run("memories", "forget", noted["id"])
    refused = person.run(*words, cwd=shop / "src")
    assert (refused.returncode, "memories forget --undo" in refused.stderr) == (1, True)
    person.config(f"projects: {{{shop}: {{ignore: true}}}}\n")
    hidden = person.run("remember", "We use cents for prices", "--kind", "decision", cwd=shop)
    assert (hidden.returncode, "rules exclude this directory" in hidden.stderr) == (1, True)
    assert "cents" in (tmp_path / ".session-memory/.private-memories/decisions.md").read_text()


class TestAgent:
    """An agent of any runtime notes something by the command that its skill teaches."""

    WORDS = (
        "remember",
        "We use luxon for dates.",
        "--kind",
        "decision",
        "--quote",
        "luxon for dates, not dayjs",
    )
    SESSION = "5e55a0f1-0000-4000-8000-000000000001"

    @pytest.fixture
    def person(self, tmp_path: Path) -> StoreUser:
        found = StoreUser(tmp_path)
        here = {"cwd": str(tmp_path), "sessionId": self.SESSION}
        said = [
            user("From now on take luxon for dates, not dayjs", **here),
            assistant("I will.", **here),
            user(f'{HEADER}\n- other: "we always use moment for dates"', isMeta=True, **here),
        ]
        found.session(self.SESSION, *said, project=str(tmp_path).replace("/", "-"))
        return found

    @pytest.mark.parametrize("environ", [{"CLAUDE_CODE_SESSION_ID": SESSION}, {}])
    def test_it_is_marked_as_an_agent_s_with_its_source(
        self, person: StoreUser, environ: dict[str, str]
    ) -> None:
        noted = person.result(*self.WORDS, CLAUDECODE="1", **environ)["memory"]
        assert (noted["kind"], noted["quote"]) == ("decision", "luxon for dates, not dayjs")
        [origin] = noted["origins"]
        assert (origin["session"], origin["strategy"], origin["message"]) == (
            self.SESSION,
            "agent",
            1,
        )
        assert ", noted by an agent: We use luxon" in person.run("memories").stdout
        assert (
            '  "luxon for dates, not dayjs"\n  noted by an agent in session'
            in person.run("memories").stdout
        )
        assert (
            f"noted by an agent in session {self.SESSION}"
            in person.run("memories", "search", "luxon").stdout
        )
        assert "noted by an agent, not by the user" in search_sessions(person, "luxon")

    @pytest.mark.parametrize("name", ["codex", "copilot", "gemini", "opencode", "qwen"])
    def test_it_needs_no_id_of_its_session(self, tmp_path: Path, name: str) -> None:
        """Gemini CLI and Qwen Code tell a command only that they run it."""
        someone = RuntimesUser(tmp_path)
        said = "Take luxon for dates, not dayjs"
        if name == "opencode":
            someone.opencode.turn(someone.opencode_id, said, "I will.")
        else:
            getattr(someone, f"{name}_session")(someone.app, said)
        noted = StoreUser(tmp_path).result(
            *self.WORDS, cwd=someone.app, **{runtime(name).AGENT_VARIABLE: "1"}
        )["memory"]
        assert noted["origins"][0]["strategy"] == "agent"
        assert noted["origins"][0]["directory"] == str(someone.app)

    def test_what_only_our_hook_said_proves_nothing(self, person: StoreUser) -> None:
        words = ("remember", "We use moment.", "--quote", "we always use moment for dates")
        refused = person.run(*words, CLAUDECODE="1", CLAUDE_CODE_SESSION_ID=self.SESSION)
        assert (refused.returncode, "the quotation is not in this session" in refused.stderr) == (
            1,
            True,
        )
        assert person.result("memories")["memories"] == []

    def test_what_a_person_notes_too_is_the_person_s_word(self, person: StoreUser) -> None:
        person.result(*self.WORDS, CLAUDECODE="1", CLAUDE_CODE_SESSION_ID=self.SESSION)
        person.result("remember", "We use luxon for dates.", "--kind", "decision")
        shown = person.run("memories").stdout
        assert "an agent" not in shown
        assert shown.count("decision") == 1


class TestSeedsExamples:
    """The questions of the seeds are answered without a graph and without a model."""

    LAST = "What were we working on in the last session?"

    @pytest.fixture
    def person(self, tmp_path: Path) -> StoreUser:
        found = StoreUser(tmp_path)
        day = 86_400
        redis = "We avoid Redis here because of serverless constraints"
        asked = [
            (
                "How should we cache the sessions of the shop?",
                "Redis would be the usual choice: avoid nothing, use Redis.",
            ),
            (redis, "Then I keep them in Postgres, without Redis."),
            ("Fine, do that", "Done."),
        ]
        for number, talk in enumerate(
            (asked, [("Why is the checkout slow?", "It asks Redis? No: it asks twice.")])
        ):
            at = FEBRUARY / 1000 + number * day
            records = [
                one
                for said, answer in talk
                for one in exchange(said, answer, at=at, cwd="/srv/agent")
            ]
            edit = assistant(
                ("Edit", {"file_path": "/srv/agent/checkout.py"}), at=at, cwd="/srv/agent"
            )
            found.session(f"5e55a0f1-0000-4000-8000-00000000000{number}", *records, edit)
        found.run("ingest")
        return found

    def test_why_did_we_avoid_redis(self, person: StoreUser) -> None:
        wanted = "We avoid Redis here because of serverless constraints"
        hits = person.result("search", "why did we avoid Redis")["hits"]
        assert (hits[0]["entry"]["role"], hits[0]["entry"]["text"]) == ("user", wanted)
        first = next(
            line
            for line in search_sessions(person, "why did we avoid Redis").splitlines()
            if "edis" in line
        )
        assert "serverless constraints" in first
        person.result("remember", wanted, "--kind", "decision")
        [found] = person.result("memories", "search", "why did we avoid Redis")["memories"]
        assert (found["kind"], found["title"]) == ("decision", wanted)

    def test_what_were_we_working_on_in_the_last_session(self, person: StoreUser) -> None:
        last = person.result("search", self.LAST)["last"]
        assert last[0]["conversation"]["title"] == "Why is the checkout slow?"
        assert last[0]["text"].startswith(
            "Asked: Why is the checkout slow? Changed: `checkout.py`."
        )
        first = search_sessions(person, self.LAST).split("\n\n")[1]
        assert "Changed: `checkout.py`" in first
        assert last[0]["text"] in person.run("search", self.LAST).stdout

    def test_the_last_session_counts_though_it_changed_nothing(self, person: StoreUser) -> None:
        at = FEBRUARY / 1000 + 2 * 86_400
        said = exchange("What else uses Redis?", "Nothing.", at=at, cwd="/srv/agent")
        person.session("5e55a0f1-0000-4000-8000-000000000002", *said)
        earlier = exchange("ok", "Fine.", at=at - 3600, cwd="/srv/agent")
        person.session("5e55a0f1-0000-4000-8000-000000000003", *earlier)
        last = person.result("search", self.LAST)["last"]
        assert [one["conversation"]["title"] for one in last] == [
            "What else uses Redis?",
            "Why is the checkout slow?",
            "How should we cache the sessions of the shop?",
        ]
        assert last[0]["text"] == "Asked: What else uses Redis? Ended: Nothing."
        assert last[0]["text"] in search_sessions(person, self.LAST).split("\n\n")[1]

    def test_outside_a_repository_the_directory_s_sessions_are_the_last_ones(
        self, person: StoreUser
    ) -> None:
        here = person.home / "plain"
        here.mkdir()
        at = FEBRUARY / 1000 - 86_400
        said = exchange("What is plain here?", "Everything.", at=at, cwd=str(here))
        person.session("5e55a0f1-0000-4000-8000-000000000004", *said)
        last = person.result("search", self.LAST, cwd=here)["last"]
        assert [one["conversation"]["title"] for one in last] == ["What is plain here?"]

    def test_the_asking_session_is_not_the_last_one(self, person: StoreUser) -> None:
        environ = {"CLAUDE_CODE_SESSION_ID": "5e55a0f1-0000-4000-8000-000000000001"}
        last = person.result("search", "where did we leave off", **environ)["last"]
        assert [one["conversation"]["title"] for one in last] == [
            "How should we cache the sessions of the shop?"
        ]

    def test_a_question_that_names_something_is_a_search(self) -> None:
        for query in [
            "last session timeout",
            "what were we working on for the checkout",
            "last",
            "session",
        ]:
            assert not asks_for_last_work(query)


def search_sessions(person: StoreUser, query: str) -> str:
    """The answer of the MCP tool."""
    return call(HomeBackend(None, person.environment), "search_sessions", {"query": query}).text
