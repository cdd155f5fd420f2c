"""Our hooks in somebody's settings.json: added, updated, removed, with nothing else touched."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_memory.awareness.install.settings_file import SettingsFile
from session_memory.common.errors import SessionMemoryError
from session_memory.common.text.json_edit import parse
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.install import Hook

DECLARED = json.dumps(
    {
        "hooks": {
            "SessionStart": [
                {
                    "matcher": "fork",
                    "hooks": [
                        {
                            "type": "command",
                            "command": 'python3 -I "${CLAUDE_PLUGIN_ROOT}/hooks/fork.py"',
                            "timeout": 5,
                        }
                    ],
                }
            ],
            "UserPromptSubmit": [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": 'python3 -I "${CLAUDE_PLUGIN_ROOT}/hooks/prompt.py"',
                        }
                    ]
                }
            ],
        }
    }
)
HOOKS = CLAUDE.install.wanted_hooks(DECLARED, "/env/python", "/app")
PROMPT = "/env/python -I /app/hooks/prompt.py || exit 0"
FORK = "/env/python -I /app/hooks/fork.py || exit 0"


def ours(command: str) -> bool:
    return "/app/hooks/" in command


def settings(text: str | None) -> SettingsFile:
    return SettingsFile(None if text is None else text.encode(), "settings.json")


def add(text: str, hooks: list[Hook] = HOOKS) -> str:
    return settings(text).with_hooks(hooks, ours).content.decode()


def drop(text: str) -> str:
    return settings(text).without_hooks(ours).content.decode()


def commands(text: str, event: str) -> list[str]:
    return [hook.command for hook in settings(text).read().hooks if hook.event == event]


def test_a_declared_hook_is_run_by_the_given_interpreter_from_the_given_directory() -> None:
    hook = CLAUDE.install.wanted_hooks(DECLARED, "/my env/python", "/it's here")[1]
    assert hook == Hook(
        "UserPromptSubmit",
        None,
        {
            "type": "command",
            "command": "'/my env/python' -I '/it'\"'\"'s here/hooks/prompt.py' || exit 0",
        },
    )


def test_an_event_that_is_declared_later_needs_no_change_here() -> None:
    entry = {
        "type": "command",
        "command": 'python3 "${CLAUDE_PLUGIN_ROOT}/hooks/c.py" || true',
        "async": True,
    }
    declared = json.dumps({"hooks": {"PreCompact": [{"matcher": "auto", "hooks": [entry]}]}})
    hook = CLAUDE.install.wanted_hooks(declared, "/env/python", "/app")[0]
    expected = {"type": "command", "command": "/env/python /app/hooks/c.py || true", "async": True}
    assert hook == Hook("PreCompact", "auto", expected)


def test_a_new_settings_file_holds_our_hooks_and_nothing_else() -> None:
    text = settings(None).with_hooks(HOOKS, ours).content.decode()
    assert text.endswith("}\n")
    assert list(json.loads(text)) == ["hooks"]
    assert (commands(text, "SessionStart"), commands(text, "UserPromptSubmit")) == (
        [FORK],
        [PROMPT],
    )
    assert json.loads(text)["hooks"]["SessionStart"][0]["matcher"] == "fork"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "{}",
            '{\n  "hooks": {\n    "E": [\n      {\n        "hooks": [\n          {\n            "a": 1\n          }\n        ]\n      }\n    ]\n  }\n}',
        ),
        ('{"x":1}', '{"x":1,"hooks":{"E":[{"hooks":[{"a":1}]}]}}'),
        ('{"x": 1}\n', '{"x": 1, "hooks": {"E": [{"hooks": [{"a": 1}]}]}}\n'),
        ('{ "x": 1 }', '{ "x": 1, "hooks": {"E": [{"hooks": [{"a": 1}]}]} }'),
        ('{"x": 1, "hooks": {}}', '{"x": 1, "hooks": {"E": [{"hooks": [{"a": 1}]}]}}'),
        (
            '{\r\n\t"x": [1, 2]\r\n}\r\n',
            '{\r\n\t"x": [1, 2],\r\n\t"hooks": {\r\n\t\t"E": [\r\n\t\t\t{\r\n\t\t\t\t"hooks": [\r\n\t\t\t\t\t{\r\n\t\t\t\t\t\t"a": 1\r\n\t\t\t\t\t}\r\n\t\t\t\t]\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}\r\n',
        ),
        (
            '{\n    "hooks": {\n        "E": [],\n        "F": []\n    }\n}\n',
            '{\n    "hooks": {\n        "E": [\n            {\n                "hooks": [\n                    {\n                        "a": 1\n                    }\n                ]\n            }\n        ],\n        "F": []\n    }\n}\n',
        ),
        (
            '{\n  "hooks": {\n    "E": [{"hooks": []}]\n  },\n  "y": 2\n}',
            '{\n  "hooks": {\n    "E": [{"hooks": []}, {"hooks": [{"a": 1}]}]\n  },\n  "y": 2\n}',
        ),
    ],
)
def test_a_hook_is_added_in_the_style_of_the_file(before: str, after: str) -> None:
    assert add(before, [Hook("E", None, {"a": 1})]) == after


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
def test_what_the_file_said_before_it_says_still_and_in_the_same_order(indent: Any) -> None:
    mine = {"hooks": [{"type": "command", "command": "mine.sh"}]}
    values = {
        "model": "öpus",
        "permissions": {"allow": ["Bash(ls:*)", "Read"], "deny": []},
        "hooks": {"UserPromptSubmit": [mine], "Stop": [mine]},
        "n": 1.50,
    }
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    after = json.loads(add(text))
    assert list(after) == list(values)
    assert {**after, "hooks": 0} == {**values, "hooks": 0}
    assert after["hooks"]["UserPromptSubmit"][0] == mine
    assert commands(add(text), "UserPromptSubmit") == ["mine.sh", PROMPT]
    assert drop(add(text)) == text


def test_adding_again_changes_nothing() -> None:
    once = add('{"model": "opus"}')
    assert add(once) == once


def test_an_entry_of_an_earlier_version_is_replaced_where_it_stands() -> None:
    old = [
        Hook(
            "UserPromptSubmit",
            None,
            {"type": "command", "command": "/old/app/hooks/prompt.py", "timeout": 9},
        )
    ]
    mine = [Hook("UserPromptSubmit", None, {"type": "command", "command": "mine.sh"})]
    text = settings(add("{}", old)).with_hooks(mine, lambda command: False).content.decode()
    assert commands(add(text), "UserPromptSubmit") == [PROMPT, "mine.sh"]
    assert "timeout" not in json.loads(add(text))["hooks"]["UserPromptSubmit"][0]["hooks"][0]


def test_doubled_and_outdated_entries_become_one() -> None:
    doubled = settings(add("{}")).with_hooks(HOOKS, lambda command: False).content.decode()
    assert commands(doubled, "UserPromptSubmit") == [PROMPT, PROMPT]
    gone = [Hook("Stop", None, {"type": "command", "command": "/app/hooks/stop.py"})]
    doubled = settings(doubled).with_hooks(gone, lambda command: False).content.decode()
    assert add(doubled) == add("{}\n").rstrip("\n")


def test_a_hook_of_the_users_in_the_same_group_stays() -> None:
    group = {
        "hooks": [{"command": "a.sh"}, {"command": "/app/hooks/prompt.py"}, {"command": "b.sh"}]
    }
    text = json.dumps({"hooks": {"UserPromptSubmit": [group]}}, indent=2)
    assert commands(drop(text), "UserPromptSubmit") == ["a.sh", "b.sh"]


def test_what_is_empty_without_us_goes_with_us() -> None:
    assert drop(add("{}")) == "{}"
    assert drop(add('{"a": 1}')) == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "settings.json:1:1: expecting value"),
        ("[]", "settings.json:1:1: the settings should be an object"),
        ("\ufeff{}", "settings.json:1:1: unexpected UTF-8 BOM (decode using utf-8-sig)"),
        (
            '{\n  // mine\n  "a": 1\n}',
            "settings.json:2:3: expecting property name enclosed in double quotes (JSON has no comments)",
        ),
        (
            '{"a": 1 /* mine */}',
            "settings.json:1:9: expecting ',' delimiter (JSON has no comments)",
        ),
        ('{"a": 1,\n "b": 2,\n "a": 3}', 'settings.json:3:2: the key "a" occurs twice'),
        ('{"a": {"b": 1, "b": 1}}', 'settings.json:1:16: the key "b" occurs twice'),
        ('[{"a": [NaN, {"": 1, "": 2}]}]', "settings.json:1:9: JSON has neither NaN nor Infinity"),
        ('{"": 1, "": 2}', 'settings.json:1:9: the key "" occurs twice'),
        ("{'a': 1}", "settings.json:1:2: expecting property name enclosed in double quotes"),
        ('{"a" 1}', "settings.json:1:6: expecting ':' delimiter"),
        ('{"a": NaN}', "settings.json:1:7: JSON has neither NaN nor Infinity"),
        ('{"a": [1, -Infinity]}', "settings.json:1:11: JSON has neither NaN nor Infinity"),
        ('{"a": 01}', "settings.json:1:8: expecting ',' delimiter"),
        ('{"a": "x\ny"}', "settings.json:1:9: invalid control character at"),
        ('{"a": "x', "settings.json:1:7: unterminated string starting at"),
        ('{"a": 1', "settings.json:1:8: expecting ',' delimiter"),
        ('{"a": 1} {}', "settings.json:1:10: extra data"),
        ('{"a":\n ' + "9" * 5000 + "}", "settings.json:1:1: a number has too many digits"),
        ('{"a": ' + "[" * 200_000, "settings.json:1:1: it is nested too deeply"),
        ('{"hooks": []}', "settings.json:1:11: `hooks` should be an object"),
        ('{"hooks": {"Stop": {}}}', "settings.json:1:20: `hooks.Stop` should be a list"),
        (
            '{"hooks": {"Stop": ["x"]}}',
            "settings.json:1:21: `hooks.Stop` should contain objects with `hooks`",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": 1}]}}',
            "settings.json:1:31: `hooks` in `hooks.Stop` should be a list",
        ),
        (
            '{"hooks": {"Stop": [{"hooks": [1]}]}}',
            "settings.json:1:32: `hooks` in `hooks.Stop` should contain objects",
        ),
    ],
)
def test_a_file_that_is_not_strictly_right_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(SessionMemoryError) as refusal:
        add(text)
    assert str(refusal.value) == said
    assert "the file was left as it is" in refusal.value.hint


@pytest.mark.parametrize("text", ['{\n  "a": 1,\n}', '{\n  "a": [\n1,]}'])
def test_a_comma_behind_the_last_value_is_refused(text: str) -> None:
    # by the version of Python
    with pytest.raises(SessionMemoryError, match=r"settings\.json:(2:9|3:1|3:2|3:3): "):
        add(text)


@pytest.mark.parametrize(
    "text",
    ['{"hooks": null}', '{"permissions": null}', '{"permissions": {"allow": null}, "a": null}'],
)
def test_null_counts_as_left_out(text: str) -> None:
    after = settings(add(text)).with_rules(RULES)
    assert commands(after.content.decode(), "UserPromptSubmit") == [PROMPT]
    assert after.read().rules == RULES
    assert drop(text) == settings(text).without_rules(RULES).content.decode() == text


@pytest.mark.cost
def test_a_large_file_costs_little_more_than_to_read_it() -> None:
    """A file of a megabyte took 2.5 s; each edit parsed all of it again."""
    large = {
        "permissions": {"allow": [f"Bash(make target-{number}:*)" for number in range(24_000)]}
    }
    file = settings(json.dumps(large, indent=2))
    started = time.process_time()
    for _ in range(10):
        file.read()
    a_read = (time.process_time() - started) / 10
    started = time.process_time()
    after = file.with_hooks(HOOKS, ours).with_rules(RULES)
    assert after.without_hooks(ours).without_rules(RULES).content == file.content
    assert time.process_time() - started < 400 * a_read


def test_a_file_that_is_not_utf_8_is_refused_with_the_place() -> None:
    with pytest.raises(SessionMemoryError, match=r"settings\.json:2:5: it is not UTF-8"):
        SettingsFile(b'{"a":\n"\xc3\xa4--\xff"}', "settings.json").with_hooks(HOOKS, ours)


RULES = ["Bash(/bin/ours search:*)", "mcp__sessions__read_session"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"permissions": 1}', "settings.json:1:17: `permissions` should be an object"),
        (
            '{"permissions": {"allow": {}}}',
            "settings.json:1:27: `permissions.allow` should be a list",
        ),
    ],
)
def test_rules_are_not_put_where_none_can_stand(text: str, said: str) -> None:
    with pytest.raises(SessionMemoryError) as refusal:
        settings(text).with_rules(RULES)
    assert str(refusal.value) == said


@given(
    st.just({})
    | st.fixed_dictionaries(
        {"model": st.just("opus")},
        optional={
            "permissions": st.fixed_dictionaries(
                {"deny": st.just(["Read(x)"])},
                optional={"allow": st.lists(st.text("ab(:*)", min_size=1), min_size=1)},
            )
        },
    ),
    st.sampled_from([None, 2, "\t"]),
)
def test_taking_out_rules_that_were_put_in_gives_the_same_bytes(values: Any, indent: Any) -> None:
    before = settings(json.dumps(values, indent=indent))
    after = before.with_rules(RULES)
    assert after.read().rules[-2:] == RULES
    assert after.with_rules(RULES).content == after.content
    assert after.without_rules(RULES).content == before.content


_keys = st.text('ab "\\/{}[]:,é', max_size=4)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _keys
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3)
)
_entries = st.lists(
    st.fixed_dictionaries({"type": st.just("command"), "command": _keys}), max_size=2
)
_groups = st.lists(
    st.fixed_dictionaries({"hooks": _entries}, optional={"matcher": _keys}), min_size=1, max_size=2
)
_events = st.sampled_from(["UserPromptSubmit", "SessionStart", "Stop"])
_settings = st.fixed_dictionaries(
    {"model": _values},
    optional={"hooks": st.dictionaries(_events, _groups, min_size=1), "z": _values},
)
_indents = st.sampled_from([None, 2, 4, "\t"])


@given(_settings, _indents, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"]))
def test_taking_out_what_was_put_in_gives_the_same_bytes(
    values: Any, indent: Any, newline: str, end: str
) -> None:
    text = (json.dumps(values, indent=indent) + end).replace("\n", newline)
    after = add(text)
    assert commands(after, "UserPromptSubmit")[-1] == PROMPT
    assert {**json.loads(after), "hooks": 0} == {**values, "hooks": 0}
    assert add(after) == after
    assert drop(after) == text


@given(_values, _indents)
def test_the_strict_parser_reads_what_the_standard_one_reads(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    assert parse(text) == value
