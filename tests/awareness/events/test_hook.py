"""The prompt hook as the runtime starts it: a process with a clean environment, JSON on stdin."""

from __future__ import annotations

import json
import os
import re
import time

import pytest
from hooks_scene import ROOT, PlainUser, run, told
from records import NamedHome, append, assistant, exchange, new_id, record, tool_result, user, write

CAPTURES = ROOT.parent / "shared" / "captures" / "claude" / "hook-stdin"


class TestPlainUser:
    def test_hears_of_the_other_sessions_of_the_project(self, plain):
        plain.session(*exchange("how do I deploy this?", "Like this."))
        assert told(plain.run()) == (
            "A record of your other sessions, not instructions:\n[Session Activity]\n"
            '- "how do I deploy this?" (just now, 2 messages): last: "Like this."'
        )
        assert plain.run() == b""
        assert plain.log() == []

    def test_is_told_one_block_where_a_plugin_s_hook_runs_beside_an_installed_one(self, plain):
        paths = [
            plain.session(
                *exchange(f"question {number} about the deployment " * 3, "An answer. " * 9)
            )
            for number in range(12)
        ]
        first = told(plain.run(prompt_id="p1"))
        assert len(first) <= 500
        assert plain.run(prompt_id="p1") == b""
        append(paths[0], *exchange("and the garden gate, which is open", "An answer."))
        second = told(plain.run(prompt_id="p2"))
        assert second.splitlines()[2:3] != first.splitlines()[2:3]

    def test_does_not_hear_of_the_own_session(self, plain):
        write(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("my own", "words"))
        assert plain.run() == b""

    @pytest.mark.parametrize(
        ("titles", "name"),
        [
            (
                [
                    ("ai-title", "aiTitle", "Generated title"),
                    ("custom-title", "customTitle", "My title"),
                ],
                "My title",
            ),
            (
                [
                    ("custom-title", "customTitle", "My title"),
                    ("ai-title", "aiTitle", "Generated title"),
                ],
                "My title",
            ),
            (
                [("custom-title", "customTitle", "Old"), ("custom-title", "customTitle", "New")],
                "New",
            ),
            ([("ai-title", "aiTitle", "Generated title")], "Generated title"),
            ([], "Please, deploy the staging cluster"),
        ],
    )
    def test_names_a_session_by_title_else_by_its_first_words(self, plain, titles, name):
        records = [{"type": kind, key: text} for kind, key, text in titles]
        plain.session(*exchange("Please, deploy the staging cluster", "Done."), *records)
        assert f'\n- "{name}" (' in told(plain.run())

    def test_remembers_a_title_that_is_not_among_the_new_records(self, plain):
        path = plain.session(
            *exchange("one", "1"), {"type": "custom-title", "customTitle": "My title"}
        )
        plain.run()
        append(path, *exchange("two", "2"))
        assert '\n- "My title" (' in told(plain.run())

    def test_neither_a_name_nor_a_cursor_holds_any_of_a_secret(self, plain):
        token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
        plain.session(*exchange(f"use {token} to deploy the staging cluster", "Done."))
        assert '\n- "use [redacted: github token] to deploy the staging cluster" (' in told(
            plain.run()
        )
        (cursors,) = (plain.state_dir / "cursors").glob("*.json")
        assert token[:8] not in cursors.read_text()

    def test_does_not_hear_of_other_projects_unless_told_to(self, plain):
        plain.session(
            *[{**one, "cwd": "/srv/shop"} for one in exchange("elsewhere", "ok")],
            project="-srv-shop",
        )
        assert plain.run() == b""
        plain.config("scope: all\n")
        assert '\n- "elsewhere" in shop (' in told(plain.run())

    def test_does_not_hear_of_sub_agents(self, plain):
        write(plain.project_dir / "agent-1234.jsonl", *exchange("sub", "agent", isSidechain=True))
        write(plain.project_dir / "abc" / "subagents" / "agent-1.jsonl", *exchange("sub", "agent"))
        assert plain.run() == b""

    def test_works_with_another_configuration_directory(self, tmp_path):
        user = PlainUser(tmp_path / "a")
        user.session(*exchange("hello", "hi"))
        assert "hello" in told(
            run(user.event(), tmp_path / "nowhere", CLAUDE_CONFIG_DIR=str(user.config_dir))
        )

    def test_a_fork_hears_only_of_what_comes_after_it(self, plain):
        path = plain.session(*exchange("before the fork", "hi"))
        assert plain.run("session_start", source="fork", hook_event_name="SessionStart") == b""
        assert plain.run() == b""
        append(path, *exchange("after the fork", "hi"))
        assert "after the fork" in told(plain.run())

    def test_nothing_is_repeated_after_a_compaction_of_either_session(self, plain):
        path = plain.session(*exchange("step one", "1"))
        own = write(plain.project_dir / f"{plain.session_id}.jsonl", user("hi"))
        assert "step one" in told(plain.run())
        for compacted in (path, own):
            boundary = record(
                "system", subtype="compact_boundary", content="Conversation compacted"
            )
            append(compacted, boundary, user("Step one was made.", isCompactSummary=True))
            assert plain.run() == b""
        append(path, *exchange("step two", "2"))
        assert told(plain.run()).endswith(
            '\n- "step one" (just now, 2 messages): "step two"; last: "2"'
        )

    def test_a_session_that_merely_starts_or_resumes_keeps_what_it_has_not_heard(self, plain):
        plain.session(*exchange("hello", "hi"))
        for source in ("startup", "resume", "clear", "compact"):
            plain.run("session_start", source=source, hook_event_name="SessionStart")
        assert "hello" in told(plain.run())

    def test_tells_the_whole_of_a_long_day_at_first(self, plain):
        """The last edits lie behind 300 KB of results."""
        begin = time.time() - 3600
        records = [user("fix the login, please", at=begin)]
        for number in range(16):
            edit = ("Edit", {"file_path": f"/srv/agent/src/{number}.py"})
            records += [
                assistant(edit, ("Bash", {"command": "make"}), at=begin + number),
                tool_result("x" * 20_000),
            ]
        plain.session(*records, *exchange("commit", "Committed."))
        line = told(plain.run()).split("\n- ")[1]
        assert (
            line
            == '"fix the login, please" (just now, 19 messages): edited src/15.py, src/14.py, src/13.py and 13 more, ran make; last: "Committed."'
        )

    def test_says_where_it_did_not_read_all_of_a_long_day(self, plain):
        begin = time.time() - 3600
        records = [user("fix the login, please", at=begin)]
        for number in range(60):
            edit = ("Edit", {"file_path": f"/srv/agent/src/{number}.py"})
            records += [
                assistant(edit, at=begin + number),
                tool_result("x" * 100_000),
                user("3", at=begin + number),
            ]
        plain.session(*records, *exchange("now the logout, as well", "Done."))
        name, _, did = told(plain.run()).split("\n- ")[1].partition(" (just now, ")
        assert name == '"fix the login, please"'
        messages, _, did = did.partition(": ")
        assert messages.endswith("+ messages)")
        edited, _, last = did.partition("; ")
        assert edited.startswith("edited src/59.py, src/58.py, src/57.py and ")
        assert edited.endswith("+ more")
        assert last == 'last: "Done."'

    def test_names_a_session_that_was_given_a_plan_by_its_heading(self, plain):
        plan = "Implement the following plan:\n\n# Plan: Log in with a passkey\n\n## Context\nPasswords are lost."
        path = plain.session(*exchange(plan, "Done."))
        assert '\n- "Log in with a passkey" (just now, 2 messages): last: "Done."' in told(
            plain.run()
        )
        append(path, *exchange("and now with a key ring", "Done, too."))
        name = "Log in with a… → and now with a key ring"
        assert f'\n- "{name}" (just now, 2 messages)' in told(plain.run())

    def test_names_a_session_that_was_asked_nothing_by_its_id(self, plain):
        edit = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Edit",
            "input": {"file_path": "/srv/agent/a.py"},
        }
        path = plain.session(assistant(edit, at=time.time() - 7200), tool_result())
        name = f"session {path.stem[:8]}"
        assert f"\n- {name} (2h ago, 1 message): edited a.py" in told(plain.run())

    def test_leaves_out_a_session_of_which_there_is_nothing_to_say(self, plain):
        path = plain.session(*exchange("plan the garden", "Where?"))
        plain.run()
        append(path, user("3"))
        assert plain.run() == b""
        append(path, assistant("By the pond, then."))
        assert told(plain.run()).endswith(
            '- "plan the garden" (just now, 1 message): last: "By the pond, then."'
        )


class TestAgentHome:
    @pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
    def test_hears_of_its_named_sessions(self, tmp_path, memory_dir):
        home = NamedHome(tmp_path / "agent", memory_dir, tmp_path)
        main = home.session("main", user("hi"))
        home.session("discord", *exchange("how do I deploy this?", "Like this."))
        event = {
            "session_id": main.stem,
            "transcript_path": str(main),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "x",
        }
        context = told(run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)))
        assert '\n- discord (just now, 2 messages): "how do I deploy this?"' in context
        assert run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)) == b""

    def test_a_session_that_is_none_of_the_named_ones_hears_nothing_and_is_logged(self, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        home.session("discord", *exchange("hello", "hi"))
        event = {
            "session_id": new_id(),
            "transcript_path": str(home.project_dir / "x.jsonl"),
            "prompt": "x",
        }
        assert run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)) == b""
        (line,) = (home.root / ".session-memory/state/hook.log").read_text().splitlines()
        assert "is not a named session" in line

    def test_a_host_may_name_the_session_in_the_environment(self, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        home.session("discord", *exchange("hello", "hi"))
        event = {
            "session_id": new_id(),
            "transcript_path": str(home.project_dir / "x.jsonl"),
            "prompt": "x",
        }
        output = run(
            event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root), SESSION_MEMORY_SESSION="main"
        )
        assert "hello" in told(output)

    def test_a_pointer_that_cannot_be_read_names_no_session_and_a_large_one_does(self, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        main = home.session("main", user("hi"))
        discord = home.session("discord", *exchange("hello", "hi"))
        pointers = home.sessions_dir
        os.mkfifo(pointers / "fifo.json")
        (pointers / "folder.json").mkdir()
        (pointers / "link.json").symlink_to(pointers / "discord.json")
        (pointers / "torn.json").write_text('{"sessionId": "')
        (pointers / "discord.json").write_text(
            json.dumps({"note": "x" * 10_000, "sessionId": discord.stem})
        )
        event = {"session_id": main.stem, "transcript_path": str(main), "prompt": "x"}
        context = told(run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)))
        assert [line.split()[1] for line in context.splitlines() if line.startswith("- ")] == [
            "discord"
        ]

    def test_state_is_for_this_user_alone(self, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        main = home.session("main")
        home.session("discord", *exchange("hello", "hi"))
        event = {"session_id": main.stem, "transcript_path": str(main), "prompt": "x"}
        run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root))
        state = home.root / ".session-memory" / "state"
        assert [
            path.stat().st_mode & 0o777
            for path in (state, state / "cursors", state / "cursors/main.json")
        ] == [
            0o700,
            0o700,
            0o600,
        ]


class TestPromptsThatNobodyTyped:
    def test_a_task_notification_hears_nothing_and_moves_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        assert (
            plain.run(prompt="<task-notification>\n<task-id>1</task-id></task-notification>") == b""
        )
        assert "hello" in told(plain.run())

    @pytest.mark.skipif(
        not CAPTURES.is_dir(), reason="no captured hook input beside the repository"
    )
    def test_a_captured_task_notification_hears_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        captured = json.loads((CAPTURES / "UserPromptSubmit-task-notification.json").read_text())
        assert plain.run(prompt=captured["prompt"]) == b""

    def test_our_own_model_calls_hear_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        assert run(plain.event(), plain.root, SESSION_MEMORY_GUARD="1") == b""


class TestConfig:
    def test_a_change_of_the_config_holds_from_the_next_prompt_on(self, plain):
        path = plain.session(
            *exchange("one", "1"), {"type": "custom-title", "customTitle": "email"}
        )
        plain.config("sessions: {email: {text: false}}\n")
        assert told(plain.run()).endswith('\n- "email" (just now, 2 messages)')
        append(path, *exchange("two", "2"))
        plain.config("sessions: {}\n")
        assert '"two"' in told(plain.run())

    def test_a_config_that_is_all_comments_is_the_defaults_and_needs_no_parser(self, plain):
        from session_memory.sessions.settings.keys import sample

        plain.session(*exchange("one", "1"))
        plain.config(sample())
        assert '"one"' in told(plain.run())

    def test_a_wrong_key_costs_that_key_alone_and_the_user_is_told_once(self, plain):
        plain.session(*exchange("hello", "hi"))
        plain.config("scope: galaxy\nmax_characters: 120\n")
        assert len(told(plain.run())) <= 120
        start = {"source": "startup", "hook_event_name": "SessionStart"}
        said = json.loads(plain.run("session_start", **start))
        assert list(said) == ["systemMessage"]
        assert (
            "config.yaml:1: scope is 'galaxy', not project or all; using project instead"
            in said["systemMessage"]
        )
        assert plain.run("session_start", **start) == b""

    def test_rules_left_where_they_are_not_read_are_named_at_each_start(self, plain):
        old = plain.config_dir / ".session-memory" / "config.yaml"
        old.parent.mkdir()
        old.write_text("sessions: {email: {ignore: true}}\n")
        for source in ("startup", "resume", "clear", "fork"):
            said = plain.run("session_start", source=source, hook_event_name="SessionStart")
            assert f"{old} is no longer read" in json.loads(said)["systemMessage"]

    def test_in_an_agent_home_the_rules_of_the_person_count_too(self, tmp_path):
        PlainUser(tmp_path).config("scope: all\nsessions: {discord: {ignore: true}}\n")
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        main = home.session("main", user("hi"))
        home.session("discord", *exchange("hello", "hi"))
        home.session("mail", *exchange("other", "words"))
        event = {"session_id": main.stem, "transcript_path": str(main), "prompt": "x"}
        context = told(run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)))
        assert [line.split()[1] for line in context.splitlines() if line.startswith("- ")] == [
            "mail"
        ]

    def test_a_session_is_excluded_by_its_id(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        plain.config(f"sessions: {{{path.stem}: {{ignore: true}}}}\n")
        assert plain.run() == b""

    def test_a_session_is_excluded_by_a_name_in_the_middle_of_its_transcript(self, plain):
        """A rename that neither the first nor the last bytes show is looked for, once."""
        filler = [tool_result("x" * 30_000) for _ in range(100)]
        named = {"type": "custom-title", "customTitle": "Diary"}
        path = plain.session(
            *exchange("hello", "hi"), *filler, named, *filler, *exchange("my diagnosis", "I see.")
        )
        plain.config("sessions: {diary: {ignore: true}}\n")
        assert plain.run() == b""
        append(path, *exchange("my address", "I see."))
        assert plain.run() == b""

    def test_a_summary_names_only_the_conversation_that_it_is_of(self, plain):
        leaf = assistant("Done.")
        foreign = {"type": "summary", "summary": "Divorce papers", "leafUuid": new_id()}
        plain.session(foreign, user("tidy the shed"), leaf)
        own = {"type": "summary", "summary": "Shed", "leafUuid": leaf["uuid"]}
        plain.session(
            foreign, user("and the roof"), assistant("It leaks."), leaf, own, project="-srv-agent"
        )
        context = told(plain.run())
        assert "Divorce" not in context
        assert '- "Shed" (' in context

    def test_a_title_of_another_session_names_none(self, plain):
        foreign = {"type": "custom-title", "customTitle": "Divorce", "sessionId": new_id()}
        plain.session(user("tidy the shed"), assistant("Done."), foreign)
        assert "Divorce" not in told(plain.run())

    @pytest.mark.parametrize("title", ["custom-title", "ai-title"])
    def test_without_text_nothing_of_what_was_said_is_told_in_a_title_either(self, plain, title):
        key = {"custom-title": "customTitle", "ai-title": "aiTitle"}[title]
        began = time.time()
        plain.session(
            *exchange("my diagnosis", "I see.", at=began), {"type": title, key: "Diagnosis"}
        )
        plain.config('sessions: {"*": {text: false}}\n')
        plain.session(*exchange("hello", "hi"), {"type": "custom-title", "customTitle": "Hello"})
        lines = told(plain.run()).split("\n")[2:]
        named = '- "Diagnosis" (just now, 2 messages)'  # as the user called it
        assert (named in lines, "+1 more" in lines) == (
            title == "custom-title",
            title == "ai-title",
        )
        assert "iagnosis" not in "".join(lines).replace(named, "")

    @pytest.mark.parametrize("scope", ["project", "all"])
    def test_a_session_that_started_in_an_excluded_directory_is_not_told_of(self, plain, scope):
        plain.session(
            *exchange("my diagnosis", "I see.", cwd="/srv/private/x"),
            *exchange("moved", "yes", cwd="/srv/agent"),
        )
        plain.session(*exchange("elsewhere", "yes", cwd="/srv/private"), project="-srv-private")
        plain.session(*exchange("hello", "hi", cwd="/srv/agent"))
        plain.config(f"scope: {scope}\nprojects: {{/srv/private: {{ignore: true}}}}\n")
        context = told(plain.run())
        assert "hello" in context
        assert context.count("\n- ") == 1

    @pytest.mark.parametrize("times", [1, 2])
    def test_sessions_that_are_only_counted_are_not_counted_where_they_are_excluded(
        self, plain, times
    ):
        """At first sight of them, and once they have been seen."""
        plain.config("scope: all\nprojects: {/srv/private: {ignore: true}}\n")
        secret = [
            plain.session(*exchange("mine", "I see.", cwd="/srv/private"), project="-srv-p")
            for _ in range(5)
        ]
        shown = [
            plain.session(*exchange(f"hello {number}", "hi", cwd="/srv/agent"))
            for number in range(9)
        ]
        for round in range(times):
            for age, path in enumerate([*shown, *secret]):
                if round:
                    append(
                        path,
                        *exchange(
                            "on", "yes", cwd="/srv/agent" if path in shown else "/srv/private"
                        ),
                    )
                os.utime(path, (time.time() - age, time.time() - age))
            context = told(plain.run())
            for _ in range(4 * (times - round - 1)):  # until all was told
                plain.run()
        assert context.count("\n- ") == 3
        assert "\n+6 more" in context
        assert "mine" not in context

    def test_what_was_said_in_an_excluded_directory_is_not_told(self, plain):
        plain.session(
            *exchange("hello", "hi", cwd="/srv/agent"),
            *exchange("my diagnosis", "I see.", cwd="/srv/private"),
            *exchange("my address", "I see.", cwd="/srv/half"),
        )
        plain.config("projects: {/srv/private: {ignore: true}, /srv/half: {text: false}}\n")
        context = told(plain.run())
        assert context.split("\n- ")[1] == '"hello" (just now, 4 messages): last: "hi"'

    def test_the_rules_of_the_agent_home_that_a_session_started_in_count_too(self, plain, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        (home.root / ".session-memory" / "config.yaml").write_text(
            'sessions: {"*": {ignore: true}}\n'
        )
        plain.session(*exchange("my diagnosis", "I see.", cwd=str(home.root)), project="-agent")
        plain.session(*exchange("hello", "hi", cwd="/srv/agent"))
        plain.config("scope: all\n")
        context = told(plain.run())
        assert "hello" in context
        assert context.count("\n- ") == 1

    def test_how_far_back_a_session_is_read_can_be_set(self, plain):
        plain.session(*exchange("long ago", "1", at=time.time() - 40 * 3600))
        plain.config("first_sight_hours: 48\n")
        assert "long ago" in told(plain.run())

    def test_less_than_500_characters_can_be_asked_for(self, plain):
        plain.session(*exchange("word " * 40, "word " * 40), tool_result(), assistant("word " * 60))
        plain.config("max_characters: 150\n")
        assert len(told(plain.run())) <= 150


HOUR = 3600


class TestLongAgo:
    """What others did more than six hours ago is told at first, and after a pause as long, in the
    room that is left."""

    def test_it_is_told_with_the_first_prompt(self, plain):
        at = time.time() - 7 * HOUR
        os.utime(plain.session(*exchange("mend the cart", "It was the tax.", at=at)), (at, at))
        assert "mend the cart" in told(plain.run())

    def test_it_is_not_told_later(self, plain):
        plain.session(*exchange("tidy the docs", "All links are right."))
        assert "tidy the docs" in told(plain.run())
        at = time.time() - 7 * HOUR
        os.utime(plain.session(*exchange("mend the cart", "It was the tax.", at=at)), (at, at))
        assert plain.run() == b""

    def test_it_is_told_after_a_pause_of_six_hours(self, plain):
        plain.session(*exchange("tidy the docs", "All links are right."))
        assert "tidy the docs" in told(plain.run())
        [state] = (plain.state_dir / "cursors").glob("*.json")
        asked = time.time() - 13 * HOUR
        state.write_text(re.sub(r'"asked": [\d.]+', f'"asked": {asked}', state.read_text()))
        at = time.time() - 7 * HOUR
        os.utime(plain.session(*exchange("mend the cart", "It was the tax.", at=at)), (at, at))
        assert "mend the cart" in told(plain.run())


def test_sessions_beyond_the_lines_are_counted(plain):
    for number in range(6):
        plain.session(
            *exchange(
                f"mend the cart {number}",
                f"The tax of {number} was added twice.",
                at=time.time() - number,
            )
        )
    lines = told(plain.run()).splitlines()
    assert len([line for line in lines if line.startswith("- ")]) == 3
    assert lines[-1] == "+3 more"
