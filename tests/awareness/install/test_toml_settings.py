"""Our hooks as tables of a TOML settings file: added and removed, with every other byte unchanged."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from install_machine import reads_toml
from text_scene import text_of_lines

from session_memory.awareness.install.formats import settings_at
from session_memory.awareness.install.settings_file import SettingsFileError
from session_memory.common.text import toml_edit
from session_memory.common.text.toml_edit import parse_toml
from session_memory.sessions.runtimes.install import Hook
from session_memory.sessions.runtimes.table import runtime

KIMI = runtime("kimi").install
PATH = Path("/home/me/.kimi-code/config.toml")
OURS = [
    Hook("UserPromptSubmit", None, {"command": "python /app/hooks/a.py kimi", "timeout": 5}),
    Hook("PreToolUse", "^(Edit|Write)$", {"command": "python '/app/hooks/b.py'", "timeout": 5}),
]
THEIRS = '[[hooks]]\nevent = "Stop"\ncommand = "say done"\n'
TEXTS = [
    "",
    "\n",
    "  ",
    "\r\n",
    "# only a comment, without a newline",
    'default_model = "k2"\n',
    'default_model = "k2"',
    'default_model = "k2"\n\n\n',
    'default_model = "k2"\r\n\r\n[thinking]\r\nmode = "auto"\r\n',
    'default_model = "k2"\r\n# the last line is open',
    f"# mine\n{THEIRS}",
    THEIRS.replace("\n", "\r\n"),
    THEIRS + "\n[[hooks]]\ncommand = 'x'\nevent = 'Stop' # again",
    'note = """\n[[hooks]]\nevent = "Stop"\ncommand = "python /app/hooks/a.py"\n"""\n',
    "note = '''\n\n[[hooks]]\u2028x # \"\"\"\n'''\na = 'b' # it's [",
    'a = [\n  ["x"], # [[hooks]]\n["y"],\n]\n\n# the end\n',
    'four = """"quoted""""\n[x]\ny = 1\n',
    "\ufeff[tui]\ntheme = 'dark'\n",
    "limit = nan\nmore = [-nan, { most = +nan }]\n",
]


def is_ours(command: str) -> bool:
    return "/app/hooks/" in command


def with_hooks(text: str, hooks: list[Hook] = OURS) -> str:
    settings = settings_at(text.encode(), PATH, KIMI)
    return settings.with_hooks(hooks, is_ours).content.decode()


def without_hooks(text: str) -> str:
    return settings_at(text.encode(), PATH, KIMI).without_hooks(is_ours).content.decode()


def hooks_in(text: str) -> list[dict[str, Any]]:
    return list(parse_toml(text).get("hooks", []))


@reads_toml
@pytest.mark.parametrize("text", TEXTS)
def test_tables_are_appended_and_removed_to_the_byte(text: str) -> None:
    there = with_hooks(text)
    assert there.startswith(text)
    assert hooks_in(there)[len(hooks_in(text)) :] == [
        {"event": "UserPromptSubmit", **OURS[0].entry},
        {"event": "PreToolUse", "matcher": "^(Edit|Write)$", **OURS[1].entry},
    ]
    assert len(set(re.findall(r"\r?\n", there[len(text) :]))) == 1
    assert with_hooks(there) == there
    assert without_hooks(there) == text
    assert without_hooks(text) == text
    assert settings_at(there.encode(), PATH, KIMI).read().hooks[-2:] == OURS


@reads_toml
@pytest.mark.parametrize("text", TEXTS)
def test_text_that_a_person_adds_around_the_tables_stays(text: str) -> None:
    there, tail = with_hooks(text), '\n# later\n[later]\ntheme = "dark"\n'
    removed = without_hooks(there + tail)
    assert removed.endswith(tail)
    assert removed.startswith(text)
    first, second = there.rsplit("[[hooks]]", 1)
    between = f"{first}# between\n[between.y]\nz = [\n[[1]],\n]\n\n[[hooks]]{second}"
    removed = without_hooks(between)
    assert removed.startswith(text)
    assert removed.endswith("# between\n[between.y]\nz = [\n[[1]],\n]\n")


@reads_toml
def test_any_mix_of_lines_gets_its_bytes_back() -> None:
    chance = random.Random(3)
    lines = ["a{} = 1", "# c {}", "", "[t{}]", " [u{}.v] # x", "b{} = ['[', \"]\"]", "  "]
    lines += [
        '[[hooks]]\nevent = "Stop"\ncommand = "say {}"',
        "[[list{}]]",
        "m{} = '''\n\n[x]\n'''",
    ]
    for number in range(400):
        text = text_of_lines(chance, [chance.choice(lines) for _ in range(chance.randrange(8))])
        there = with_hooks(text)
        assert without_hooks(there) == text, number
        assert hooks_in(there)[:-2] == hooks_in(text)


@reads_toml
def test_a_command_with_a_character_that_toml_forbids_is_added() -> None:
    command = "python '/\x7f/app/hooks/a.py' kimi"
    there = with_hooks("a = 1\n", [Hook("Stop", None, {"command": command, "timeout": 5})])
    assert parse_toml(there)["hooks"][0]["command"] == command


def test_hooks_of_an_earlier_install_are_replaced() -> None:
    text = f"a = 1\n\n{THEIRS}"
    old = [Hook("Stop", None, {"command": "python /old/app/hooks/a.py", "timeout": 9})]
    there = with_hooks(with_hooks(text, old))
    assert there == with_hooks(text)
    assert "/old/" not in there


@reads_toml
@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a = 1\nhooks = []\n", "2:1", "`hooks` are not tables [[hooks]]"),
        ('hooks = [{ event = "Stop", command = "x" }]\n', "1:1", "`hooks` are not tables"),
        ("a = 1\n\n[hooks]\nstop = 'x'\n", "3:1", "`hooks` should be tables [[hooks]]"),
        ("hooks = 1\n", "1:1", "`hooks` should be tables [[hooks]]"),
        ("a = 1\nb = \n", "2:5", ""),
        ("[a\n", "1:3", ""),
        ("a = 1\na = 2\n", "2:6", "overwrite"),
        ('a = """\n', "2:1", ""),
    ],
)
def test_a_file_that_cannot_get_tables_is_refused_with_the_place(
    text: str, place: str, said: str
) -> None:
    with pytest.raises(SettingsFileError, match=rf"config\.toml:{place}: ") as error:
        with_hooks(text)
    assert said in str(error.value)


@reads_toml
def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(SettingsFileError, match=r"config\.toml:2:5: it is not UTF-8"):
        settings_at(b"a = 1\nb = \xff\n", PATH, KIMI).read()


@reads_toml
def test_our_hook_in_a_list_of_its_person_is_not_cut_out() -> None:
    text = 'hooks = [{ event = "Stop", command = "python /app/hooks/a.py" }]\n'
    with pytest.raises(SettingsFileError, match=r"is not in a table \[\[hooks\]\] of its own"):
        without_hooks(text)


def test_an_old_python_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_edit.sys, "version_info", (3, 10, 13))
    with pytest.raises(SettingsFileError, match=r"reading TOML needs Python 3\.11") as error:
        with_hooks("a = 1\n")
    assert error.value.hint == (
        "the file was left as it is; run this command again with a newer Python"
    )
