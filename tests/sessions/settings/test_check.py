"""The valid part of a config.yaml: a wrong key affects only itself.

A key that may have excluded something hides it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_memory.common.errors import ConfigError
from session_memory.sessions.settings.check import compile_files, strategy_settings
from session_memory.sessions.settings.compiled import Kind, Settings, load
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.settings.privacy import Privacy
from session_memory.sessions.settings.section_table import KEYS
from session_memory.sessions.settings.sections import (
    Filtering,
    MemorySettings,
    StoreSettings,
    SummarySettings,
    memory_settings,
    store_settings,
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def settings(config: Path, *rules_files: Path) -> Settings:
    files = (
        str(config),
        str(config.parent / "state" / "settings.json"),
        [str(path) for path in rules_files],
    )
    compiled = load(*files) or compile_files(*files)
    again = load(*files)
    assert again is not None
    assert vars(again) == vars(compiled)
    return compiled


def hidden(found: Settings, *names: str) -> list[str]:
    """Those of the names that nothing is told of."""
    return [name for name in names if found.rule(name).ignore]


class TestWrongKeys:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("scope: galaxy", "scope is 'galaxy', not project or all"),
            ("first_sight_hours: -1", "first_sight_hours is -1"),
            (
                "max_characters: many",
                "max_characters is 'many', not a whole number from 100 to 500",
            ),
            ("max_characters: 150.5", "max_characters is 150.5"),
            ("assistant_name: User", "assistant_name is 'User'"),
            ("assistant_name: a*b", "assistant_name is 'a*b'"),
            ("archive_message_characters: true", "archive_message_characters is True"),
            ("archive_tools: 1", "archive_tools is 1, not true or false"),
            ("recent_conversations: 21", "recent_conversations is 21"),
            ("max_charcters: 300", "unknown key max_charcters, perhaps max_characters"),
            (
                "store: {poll_interval: 5}",
                "unknown key store.poll_interval, perhaps poll_interval_ms",
            ),
            (
                "memory: {pollInterval: 5}",
                "unknown key store.pollInterval, perhaps poll_interval_ms",
            ),
            ("store: 3", "store should be keys and values"),
            ("memory: {conversationGapMinutes: 0}", "store.conversation_gap_minutes is 0"),
            (
                "memories: {stratgies: [summary]}",
                "unknown key memories.stratgies, perhaps strategies",
            ),
            ("memories: {strategies: summary}", "memories.strategies is 'summary'"),
            ("memories: {strategies: []}", "memories.strategies is []"),
            ("memories: {strategies: [a, a]}", "each id once"),
            ("memories: {attempts: 0}", "memories.attempts is 0"),
            ("memories: {watch: true}", "memories.watch: with `upkeep: watch`"),
            (
                "memories: {chunking: {strategy: lines}}",
                "memories.chunking.strategy is 'lines', not exchange",
            ),
            ("memories: {chunking: {size: 1}}", "unknown key memories.chunking.size"),
            (
                "memories: {filtering: {omit_tool_outputs: false}}",
                "memories.filtering.omit_tool_outputs is False",
            ),
            ("memories: {prices: {m: {input: -1}}}", "memories.prices is"),
            ("memories: {prices: {m: {in: 1}}}", "memories.prices is"),
            ("homes: {~/anna: [[team]]}", "homes is {'~/anna': [['team']]}, not a list of paths"),
            ("memories: {summary: haiku}", "memories.summary should be keys and values"),
            (
                "memories: {summary: {max_input_tokens: 7}}",
                "memories.summary.max_input_tokens is 7",
            ),
            ("first_sight_hours: 1\nfirst_sight_hours: 2", "first_sight_hours is set twice"),
        ],
    )
    def test_a_wrong_key_costs_that_key_alone_and_is_told(
        self, config: Path, text: str, said: str
    ) -> None:
        config.write_text(
            f"# mine\n{text}\nassistant_name: Ada\n" if "assistant" not in text else text + "\n"
        )
        found = settings(config)
        (fault,) = found.faults
        assert said in fault
        assert fault.startswith(f"{config}:")
        if "assistant" not in text:
            assert found.assistant_name == "Ada"
        for name in ("scope", "max_characters", "archive_tools", "recent_conversations"):
            assert getattr(found, name) == getattr(Settings({}), name)
        assert memory_settings(found.memories) == MemorySettings()
        assert not found.has_rules

    def test_a_wrong_value_never_allows_more_than_was_meant(self, config: Path) -> None:
        config.write_text(
            "memory: {watchPath: [notes, ~/work]}\n"
            "memories:\n  tokens_per_day: 10k\n  tokens_per_conversation: []\n  filtering: "
            "{keep_user_messages: never}\n"
        )
        found = settings(config)
        memories = memory_settings(found.memories)
        assert (memories.tokens_per_day, memories.tokens_per_conversation) == (0, 0)
        assert memories.filtering == Filtering(keep_user_messages=False)
        assert store_settings(found.store, "/home/ada").watch_path == ["/home/ada/work"]
        config.write_text("memory: {watchpath: ~/work}\nmemories: {tokens_per_dya: 0}\n")
        found = settings(config)
        assert store_settings(found.store, "/home/ada").watch_path == []
        assert memory_settings(found.memories).tokens_per_day == 0
        config.write_text("memory: {watchPath: notes}\nmemories: [summary]\n")
        found = settings(config)
        assert store_settings(found.store, "/home/ada").watch_path == []
        assert memory_settings(found.memories).tokens_per_day == 0
        assert memory_settings(found.memories).filtering.keep_agent_responses is False

    def test_a_strategy_refuses_to_work_with_a_wrong_key_of_its_own(self, config: Path) -> None:
        config.write_text("memories: {summary: {modell: opus}}\n")
        with pytest.raises(ConfigError, match="unknown key 'modell'"):
            strategy_settings(SummarySettings, settings(config).memories["summary"])

    def test_a_strategy_of_a_package_has_keys_of_its_own(self, config: Path) -> None:
        config.write_text("memories: {strategies: [other], other: {since: 2026-01-01}}\n")
        found = settings(config)
        assert (found.faults, found.memories["other"]) == ([], {"since": "2026-01-01"})

    def test_what_may_be_a_secret_is_not_repeated(self, config: Path) -> None:
        config.write_text("memories: {graphiti: {key_env: sk-my-key}}\n")
        (fault,) = settings(config).faults
        assert "key_env" in fault
        assert "sk-my-key" not in fault

    def test_an_empty_key_or_section_is_as_if_it_were_not_there(self, config: Path) -> None:
        config.write_text("scope:\nsessions:\nmemory:\nmemories:\n  filtering:\n")
        found = settings(config)
        assert (found.faults, found.has_rules, found.scope) == ([], False, "project")

    @pytest.mark.parametrize("text", ["null", "~  # nothing yet", "---\nnull\n"])
    def test_a_file_that_says_null_sets_nothing(self, config: Path, text: str) -> None:
        config.write_text(text)
        assert (settings(config).faults, settings(config).has_rules) == ([], False)

    def test_a_section_that_stands_there_twice_is_read_as_one(self, config: Path) -> None:
        config.write_text(
            "sessions:\n  a: {ignore: true}\nscope: all\nsessions:\n  b: {ignore: true}\n"
        )
        assert hidden(settings(config), "a", "b", "c") == ["a", "b"]

    def test_the_keys_of_the_seeds_are_taken(self, config: Path) -> None:
        config.write_text(
            "memory: {watchPath: /srv, conversationGapMinutes: 30, pollIntervalMs: 500, "
            "minConversationMessages: 2}\n"
            "memories:\n  filtering: {keep_user_messages: true, omit_tool_outputs: true, "
            "max_output_summary_chars: 100}\n"
            "  chunking: {strategy: exchange, max_chunk_tokens: 500}\n"
        )
        found = settings(config)
        assert found.faults == []
        assert store_settings(found.store, "") == StoreSettings(
            watch_path=["/srv"],
            conversation_gap_minutes=30,
            poll_interval_ms=500,
            min_conversation_messages=2,
        )
        assert memory_settings(found.memories).filtering.max_output_summary_chars == 100
        assert memory_settings(found.memories).chunking.max_chunk_tokens == 500

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "memory: {enabled: true}",
                "store.enabled: transcripts are stored only on machines where `session-memory ingest` or",
            ),
            (
                "memory: {config: {watchPath: /srv}}",
                "store.config: its keys are now in `store` itself",
            ),
            (
                "session_tracking: {enabled: true, indexing: {frequency: batch}}",
                "session_tracking: its chunking and filtering are now in `memories`; "
                "`session-memory watch` indexes",
            ),
            (
                "indexing: {frequency: realtime, batch_interval_minutes: 5}",
                "indexing: `session-memory watch` indexes",
            ),
            (
                "memories: {indexing: {frequency: batch}}",
                "memories.indexing: `session-memory watch` indexes",
            ),
            (
                "omit_tool_outputs: true",
                "omit_tool_outputs, perhaps memories.filtering.omit_tool_outputs",
            ),
            (
                "memories: {max_chunk_tokens: 800}",
                "memories.max_chunk_tokens, perhaps memories.chunking.max_chunk_t",
            ),
            (
                "conversationGapMinutes: 30",
                "conversationGapMinutes, perhaps store.conversation_gap_minutes",
            ),
            (
                "global: {track_session_logs: true}",
                "global: transcripts are stored only on machines where",
            ),
            ("version: '2.0'", "version: the file has none"),
            (
                "projects: {/a: {project_root: /a}}",
                "project_root: `projects` maps each directory to its rule",
            ),
            (
                "projects: {/a: {session_tracking_enabled: true}}",
                "a rule in `projects` excludes a directory",
            ),
        ],
    )
    def test_keys_of_the_seeds_that_are_not_taken_are_told_with_what_takes_their_place(
        self, config: Path, text: str, said: str
    ) -> None:
        config.write_text(text + "\n")
        (fault,) = settings(config).faults
        assert said in fault


class TestRules:
    @pytest.mark.parametrize(
        "text",
        [
            "sessions: [email]",
            "sessions: email",
            "sessions: {email: hidden}",
            "sessions: {email: }",
            "sessions: {email: {}}",
            "sessions: {email: {ignroe: true}}",
            "sessions: {email: {ignore: maybe}}",
            "sessions: {email: {ignore: [true]}}",
            "sessions: {email: {ignore: true, ignore: false}}",
            "session: {email: {ignore: true}}",
            "Sessions: {email: {text: false}}",
            "email: {ignore: true}",
            "memory: {sessions: {email: {ignore: true}}}",
            "memories: {filtering: {sessions: {email: {ignore: true}}}}",
            "ignore: [email]",
            "exclude: email",
            "privacy: {sessions: {email: {ignore: true}}}",
        ],
    )
    def test_what_may_have_been_meant_to_exclude_a_session_hides_it_alone(
        self, config: Path, text: str
    ) -> None:
        config.write_text(f"scope: all\n{text}\n")
        found = settings(config)
        assert hidden(found, "email", "main") == ["email"]
        assert len(found.faults) == 1
        assert found.scope == "all"
        assert not found.rule("email").isolate_memories

    @pytest.mark.parametrize(
        "text",
        [
            "sessions: 3",
            "ignore: true",
            "text: false",
            "sessions: [{}, 3]",
            "projects: 3",
            "projects: true",
            "project: [{}]",
        ],
    )
    def test_what_names_neither_session_nor_directory_hides_all(
        self, config: Path, text: str
    ) -> None:
        config.write_text(text)
        assert hidden(settings(config), "email", "main") == ["email", "main"]

    @pytest.mark.parametrize(
        "text", ["ignore: false", "text: true", "sessions_at_once: 3", "web: {colour: red}"]
    )
    def test_what_surely_excludes_nothing_hides_nothing(self, config: Path, text: str) -> None:
        config.write_text(text)
        found = settings(config)
        assert not found.has_rules
        assert len(found.faults) == 1

    def test_a_wrong_word_of_a_rule_costs_that_word_and_is_taken_for_the_strictest(
        self, config: Path
    ) -> None:
        config.write_text(
            'sessions: {email: {text: "no", untrusted: no}, web: {untrusted: sure}}\n'
        )
        found = settings(config)
        assert [(found.rule(name).ignore, found.rule(name).quote) for name in ("email", "web")] == [
            (False, False),
            (False, True),
        ]
        assert [found.rule(name).isolate_memories for name in ("email", "web")] == [False, True]

    @pytest.mark.parametrize("name", ["on", "12", "2026-01-01", "null", "1e3", "~"])
    def test_a_name_is_what_is_written(self, config: Path, name: str) -> None:
        config.write_text(f"sessions: {{{name}: {{ignore: true}}}}\n")
        found = settings(config)
        assert (hidden(found, name, "other"), found.faults) == ([name], [])

    def test_a_star_may_stand_at_the_end_alone(self, config: Path) -> None:
        config.write_text('sessions: {"public-*": {ignore: true}, "team-*-a": {ignore: true}}\n')
        found = settings(config)
        assert hidden(found, "public-chat", "team-b-a", "team", "main") == [
            "public-chat",
            "team-b-a",
        ]
        assert len(found.faults) == 1

    def test_of_several_rules_the_strictest_of_each_word_holds(self, config: Path) -> None:
        config.write_text(
            'sessions: {"a*": {text: false, ignore: false}, ab: {untrusted: true, text: true}}\n'
        )
        rule = settings(config).rule("other", "ab")
        assert (rule.ignore, rule.quote, rule.isolate_memories) == (False, False, True)


class TestProjects:
    def test_a_rule_is_for_a_directory_and_all_below_it(
        self, config: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", "/home/ada")
        config.write_text(
            "projects: {~/private: {ignore: true}, /srv/app/: {text: false}, '/work/client-*': "
            "{untrusted: true}}\n"
        )
        found = settings(config)
        assert found.faults == []
        directories = (
            "/home/ada/private",
            "/home/ada/private/a/b",
            "/home/ada/private2",
            "/home/ada",
            "",
        )
        assert [found.rule_for_directory(one).ignore for one in directories] == [
            True,
            True,
            False,
            False,
            False,
        ]
        assert [
            found.rule_for_directory(one).quote for one in ("/srv/app", "/srv/app/x", "/srv")
        ] == [
            False,
            False,
            True,
        ]
        assert [
            found.rule_for_directory(f"/work/{one}").isolate_memories
            for one in ("client-a/x", "client")
        ] == [
            True,
            False,
        ]

    def test_it_counts_for_a_session_beside_the_rules_for_its_names(self, config: Path) -> None:
        config.write_text("projects: {/a: {text: false}}\nsessions: {email: {untrusted: true}}\n")
        privacy = Privacy({"SESSION_MEMORY_DIR": str(config.parent), "HOME": str(config.parent)})
        rule = privacy.rule("/a/b", "email")
        assert (rule.ignore, rule.quote, rule.isolate_memories) == (False, False, True)
        assert privacy.rule("/b", "email").quote

    def test_a_link_to_a_directory_means_where_it_leads(self, config: Path, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to("there")
        config.write_text(
            f"projects: {{{tmp_path}/link: {{ignore: true}}, {tmp_path}/li*: {{text: false}}}}\n"
        )
        found = settings(config)
        assert [
            found.rule_for_directory(f"{tmp_path}/{one}").ignore for one in ("link/x", "there/x")
        ] == [True, True]

    @pytest.mark.parametrize(
        "text",
        [
            "projects: [/home/ada/private]",
            "projects: /home/ada/private, /elsewhere",
            "projects: {/home/ada/private: hidden}",
            "projects: {/home/ada/private: {ignroe: true}}",
            "projects: {/home/ada/private: {ignore: maybe}}",
            "projects: {private: {ignore: true}}",
            "projects: {ada/private/: {ignore: true}}",
            "projects: {/home/ada/private*x: {ignore: true}}",
            "project: {/home/ada/private: {ignore: true}}",
            "directories: [/home/ada/private]",
            "/home/ada/private: {ignore: true}",
            "memory: {projects: {/home/ada/private: {ignore: true}}}",
            "sessions: {/home/ada/private: {ignore: true}}",
            "exclude: /home/ada/private",
            "ignore: [/home/ada/private]",
        ],
    )
    def test_what_may_have_been_meant_to_exclude_a_directory_hides_it_alone(
        self, config: Path, text: str
    ) -> None:
        config.write_text(f"scope: all\n{text}\n")
        found = settings(config)
        directories = ("/home/ada/private/x", "/home/ada/public")
        assert [found.rule_for_directory(one).ignore for one in directories] == [True, False]
        assert found.faults
        assert hidden(found, "email", "main") == []

    def test_each_fault_is_told_with_its_line(self, config: Path) -> None:
        config.write_text("scope: all\nprojects:\n  private: {ignore: true}\n")
        assert settings(config).faults == [
            f"{config}:3: projects.private is not an absolute path, and does not begin with ~/; "
            "private is hidden in every directory"
        ]


class TestRulesOfOthers:
    def test_rules_add_up_and_nothing_else_is_inherited(self, config: Path, tmp_path: Path) -> None:
        person = tmp_path / "person.yaml"
        person.write_text(
            "scope: all\nsessions: {email: {ignore: true}, web: {text: false}}\nmemory: {x: 1}\n"
        )
        config.write_text("sessions: {email: {ignore: false}, web: {untrusted: true}}\n")
        found = settings(config, person)
        assert hidden(found, "email", "web") == ["email"]
        assert (found.rule("web").quote, found.rule("web").isolate_memories) == (False, True)
        assert (found.scope, found.store, found.faults) == ("project", {}, [])

    def test_they_count_where_there_is_no_file_of_its_own_and_hold_until_they_are_taken_back(
        self, config: Path, tmp_path: Path
    ) -> None:
        person = tmp_path / "person.yaml"
        person.write_text("sessions: [email]\n")
        found = settings(config, person)
        assert (hidden(found, "email"), len(found.faults)) == (["email"], 1)
        assert hidden(settings(config, person), "email") == ["email"]
        person.unlink()
        assert not settings(config, person).has_rules


class TestUnreadable:
    @pytest.mark.parametrize(
        "content",
        [
            b"a: b: c\n",
            b"[",
            b"- a\n",
            b"just text\n",
            b"a: &x 1\nb: *x\n",
            b"scope: !!python/object:os.system x\n",
            b"a: 1\n---\nb: 2\n",
            b"[" * 5000,
            b"# x\nscope: all\n" + b"#" * 70_000,
            b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        ],
    )
    def test_a_file_that_cannot_be_read_hides_everything_and_says_so(
        self, config: Path, content: bytes
    ) -> None:
        config.write_bytes(content)
        found = settings(config)
        assert hidden(found, "any", "other") == ["any", "other"]
        (fault,) = found.faults
        assert str(config) in fault
        assert "are hidden" in fault

    def test_so_does_one_that_is_no_file(self, config: Path) -> None:
        config.mkdir()
        assert hidden(settings(config), "any") == ["any"]
        config.rmdir()
        os.mkfifo(config)
        assert hidden(settings(config), "any") == ["any"]

    def test_a_link_to_a_file_is_read(self, config: Path, tmp_path: Path) -> None:
        (tmp_path / "dotfiles.yaml").write_text("scope: all\n")
        config.symlink_to(tmp_path / "dotfiles.yaml")
        assert settings(config).scope == "all"

    def test_what_looks_like_a_date_and_is_none_costs_nothing(self, config: Path) -> None:
        config.write_text("assistant_name: 2026-13-45\nscope: all\n")
        found = settings(config)
        assert (found.assistant_name, found.scope) == ("2026-13-45", "all")


def test_former_names_of_keys_mean_the_same_as_those_of_today(config: Path) -> None:
    config.write_text(
        "store: {watch_path: /srv, conversation_gap_minutes: 3, poll_interval_ms: 500, "
        "min_conversation_messages: 2}\n"
        "sessions: {a: {quote: false}, b: {isolate_memories: true}}\nprojects: {/p: {quote: "
        "false}}\n"
    )
    now = settings(config)
    config.write_text(
        "memory: {watchPath: /srv, conversationGapMinutes: 3, pollIntervalMs: 500, "
        "minConversationMessages: 2}\n"
        "sessions: {a: {text: false}, b: {untrusted: true}}\nprojects: {/p: {text: false}}\n"
    )
    then = settings(config)
    assert (then.faults, vars(then)) == ([], vars(now))
    assert then.store["watch_path"] == "/srv"
    assert (
        now.rule("a").quote,
        now.rule("b").isolate_memories,
        now.rule_for_directory("/p/q").quote,
    ) == (
        False,
        True,
        False,
    )


def test_a_key_under_its_former_and_its_present_name_counts_once_and_the_stricter_rule_holds(
    config: Path,
) -> None:
    config.write_text("memory: {pollIntervalMs: 500}\nstore: {min_conversation_messages: 2}\n")
    assert settings(config).store == {"poll_interval_ms": 500, "min_conversation_messages": 2}
    config.write_text("memory: {pollIntervalMs: 500}\nstore: {poll_interval_ms: 600}\n")
    (fault,) = settings(config).faults
    assert "store.poll_interval_ms is set twice, to different values" in fault
    config.write_text("sessions: {a: {text: false, quote: true}}\n")
    assert not settings(config).rule("a").quote


def test_settings_that_an_earlier_version_compiled_are_not_read(tmp_path: Path) -> None:
    home = person_home({"HOME": str(tmp_path)})
    Path(home.config_file).parent.mkdir()
    Path(home.config_file).write_text("sessions: {a: {text: false}}\n")
    assert home.compiled_file != f"{home.state_dir}/config.json"
    assert not home.settings().rule("a").quote


def test_every_default_is_a_value_that_the_key_may_have() -> None:
    from session_memory.sessions.settings.check import problem_with

    for key in KEYS:
        if key.default is not None and key.kind != Kind.RULES:
            assert problem_with(key, key.default) == ""
