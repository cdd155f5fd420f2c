"""Our hooks as lists in a YAML settings file: added and removed, with every other byte unchanged."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from text_scene import text_of_lines

from session_memory.awareness.install.formats import settings_at
from session_memory.awareness.install.settings_file import SettingsFileError
from session_memory.common.text.json_edit import StrictJsonError
from session_memory.common.text.yaml_edit import parse_yaml
from session_memory.sessions.runtimes.install import Hook
from session_memory.sessions.runtimes.table import runtime

HERMES = runtime("hermes").install
PATH = Path("/home/me/.hermes/config.yaml")
CALL = {"command": "python '/app/hooks/b.py' hermes", "timeout": 5}
OURS = [
    Hook("pre_llm_call", None, {"command": "python /app/hooks/a.py hermes", "timeout": 5}),
    Hook("pre_tool_call", "patch|write_file", CALL),
    Hook("pre_tool_call", "terminal", CALL),
]
LISTS: dict[str, list[Any]] = {
    "pre_llm_call": [OURS[0].entry],
    "pre_tool_call": [
        {"matcher": "patch|write_file", **CALL},
        {"matcher": "terminal", **CALL},
    ],
}
TEXTS = [
    "",
    "\n",
    "  ",
    "\r\n",
    "# only a comment, without a newline",
    "model: fake-1\n",
    "model: fake-1",
    "model: fake-1\n\n\n",
    "model:\r\n  default: fake-1\r\n\r\n# the last line is open",
    "  model: fake-1\n  color: red\n",
    "---\nmodel: fake-1\n...\n",
    "---\n",
    "--- # mine\nmodel: fake-1",
    "\ufeffmodel: fake-1\n",
    "hooks:\n",
    "hooks:",
    "hooks: {}\n",
    "hooks: { } # none",
    "hooks: # mine\n\n# more\nmodel: fake-1\n",
    "model: fake-1\nhooks:\n  pre_llm_call:\n",
    "hooks:\n  pre_llm_call: []\n  pre_tool_call: []\n",
    "hooks:\n    pre_tool_call: [ ]\n    output_spill:\n        max_chars: 3\n",
    "hooks:\n  pre_llm_call:\n    - command: say\n      timeout: 3 # x\n  # end\nb: 2\n",
    "hooks:\n  pre_llm_call:\n  - command: say\n  - command: 'say\n\n      more'",
    "hooks:\n  pre_llm_call:\n    # mine\n    - {command: say}\n\n    - odd\n",
    "hooks:\r\n  pre_tool_call:\r\n    - matcher: terminal\r\n      command: >\r\n        say\r\n",
    "hooks: {pre_llm_call: [{command: say}], on_session_start: [ ]}\n",
    "hooks: { pre_llm_call: [ {command: say} ] }\n",
    "hooks: {\n  pre_llm_call: [ # mine\n    {command: say}, # x\n  ],\n}\n",
    "hooks: &mine\n  pre_llm_call:\n    - command: say\n",
    "hooks:\n  &mine\n  on_session_start:\n    - command: say\n",
    "hooks:\n\n\n  # about\n  on_session_start:\n    - command: say",
    "model: &m\n  default: fake-1\nother: *m\nmerged:\n  <<: *m\n",
    "{model: {default: fake-1}}\n",
    '{"model": "fake-1",\n "color": "red"}',
    "{}\n",
    "limit: .nan\nsince: 2026-01-01\nis_on: yes\n",
    "text: |+\n  hooks:\n    pre_llm_call:\n\n\n",
    "text: |\n  the last line is open",
    "text: >-\n  a\n\n  b\n# end\n",
    "text: 'hooks:\n  more'\n#\ta tab\n",
    'odd: "\\u2028 \u2028 \x85"\nhooks:\n  pre_llm_call:\n    - command: say\n',
    "? model\n: fake-1\n",
]


def is_ours(command: str) -> bool:
    return "/app/hooks/" in command


def with_hooks(text: str, hooks: list[Hook] = OURS) -> str:
    return settings_at(text.encode(), PATH, HERMES).with_hooks(hooks, is_ours).content.decode()


def without_hooks(text: str) -> str:
    return settings_at(text.encode(), PATH, HERMES).without_hooks(is_ours).content.decode()


def values_with_hooks(text: str) -> dict[str, Any]:
    """Return the values of a text, with our hooks before a person's own."""
    values = parse_yaml(text)
    hooks = values.get("hooks") or {}
    added = {event: [*ours, *(hooks.get(event) or ())] for event, ours in LISTS.items()}
    return {**values, "hooks": {**hooks, **added}}


@pytest.mark.parametrize("text", TEXTS)
def test_items_are_added_and_removed_to_the_byte(text: str) -> None:
    there = with_hooks(text)
    assert parse_yaml(there) == values_with_hooks(text)
    assert ("\r\n" in there) == ("\r\n" in text)
    assert with_hooks(there) == there
    assert without_hooks(there) == text
    assert without_hooks(text) == text
    hooks = settings_at(there.encode(), PATH, HERMES).read().hooks
    assert [hook for hook in OURS if hook not in hooks] == []


@pytest.mark.parametrize("text", TEXTS[:10])
def test_text_that_a_person_adds_around_the_items_stays(text: str) -> None:
    column = " " * (len(text) - len(text.lstrip(" ")) if text.strip() else 0)
    there, tail = with_hooks(text), f"\n{column}# later\n{column}later: 1\n"
    assert without_hooks(there + tail).endswith(tail)
    assert without_hooks(there + tail).startswith(text)


def test_a_hook_that_a_person_adds_below_our_key_stays_without_our_comment() -> None:
    there = with_hooks("model: fake-1\n")
    mine = "    - command: say # mine\n"
    key = "  pre_llm_call:  # session-memory\n"
    assert key in there
    removed = without_hooks(there.replace(key, key + mine))
    assert removed == f"model: fake-1\n\nhooks:\n  pre_llm_call:\n{mine}"


def any_text(chance: random.Random) -> str:
    """Return settings made of random parts, perhaps with a person's own hooks."""
    parts = ["a{}: 1", "# c {}", "", "b{}: [1,\n  x]", "t{}: |\n  text\n\n  more", "'q{}': \"#\""]
    parts += ["m{}:\n  # inside\n  - x\n  -  y: 1\n     z: 2", "n{}: {{a: b}} # flow", "\t", "k{}:"]
    hooks = ["", "{}", " {{}}", "\n  pre_llm_call: []", "\n    pre_tool_call:\n    - command: say"]
    hooks += ["\n  # mine\n\n  pre_llm_call:  # x\n      - command: say\n      # y\n  on_x: [a]"]
    hooks += [" {{ pre_llm_call: [ {{command: say}}, ], on_x: [ a ] }}", "\n  pre_tool_call:"]
    lines = [chance.choice(parts) for _ in range(chance.randrange(7))]
    if chance.random() < 0.6:
        lines.insert(
            chance.randrange(len(lines) + 1), f"hooks:{chance.choice(hooks[:1] + hooks[2:])}"
        )
    return text_of_lines(chance, lines)


def test_any_mix_of_settings_gets_its_bytes_back() -> None:
    chance = random.Random(5)
    valid = 0
    for number in range(400):
        text = any_text(chance)
        try:
            parse_yaml(text)
        except StrictJsonError:
            continue
        valid += 1
        there = with_hooks(text)
        assert parse_yaml(there) == values_with_hooks(text), number
        assert without_hooks(there) == text, number
    assert valid > 250


@pytest.mark.parametrize(
    "character", ["\x7f", "\x85", "\u2028", "\ufeff", "\t", "\U0001f600", '"', "'"]
)
def test_a_command_with_any_character_is_added(character: str) -> None:
    command = f"python /{character}/app/hooks/a.py hermes"
    hooks = [Hook("pre_llm_call", None, {"command": command, "timeout": 5})]
    for text in ("a: 1\n", "{}\n"):
        there = with_hooks(text, hooks)
        assert parse_yaml(there)["hooks"]["pre_llm_call"][0]["command"] == command
        assert without_hooks(there) == text


def test_hooks_of_an_earlier_install_are_replaced() -> None:
    text = "model: fake-1\nhooks:\n  pre_tool_call:\n    - command: say\n"
    old = [Hook("on_session_end", None, {"command": "python /old/app/hooks/a.py", "timeout": 9})]
    there = with_hooks(with_hooks(text, old))
    assert there == with_hooks(text)
    assert "/old/" not in there


def test_a_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    load = yaml.safe_load

    def noted(text: str) -> Any:
        parsed.append(text)
        return load(text)

    monkeypatch.setattr(yaml, "safe_load", noted)
    text = "once: 1\n"
    there = with_hooks(text)
    assert with_hooks(there) == there
    assert without_hooks(there) == text
    assert sorted(parsed) == sorted({text, there})


# as Hermes 0.19 writes it: with comments (some migrations) and without them (`hermes config set`)
SET = """\
# mine
model:
  default: fake-1   # the model
{hooks}display:
  skin: mono
"""
FOLDED = """\
hooks:{mark}
  pre_llm_call:{mark}
    - command: {quote}/home/me/.local/share/session-memory/env/bin/python -I -S /app/hooks/a.py
        hermes{quote}
      timeout: 5
  pre_tool_call:{mark}
    - matcher: {quote}terminal{quote}
      command: {quote}/home/me/.local/share/session-memory/env/bin/python -I -S /app/hooks/b.py
        hermes{quote}
      timeout: 5
"""


@pytest.mark.parametrize(("quote", "mark"), [('"', "  # session-memory"), ("", "")])
def test_hooks_that_hermes_has_written_again_are_removed(quote: str, mark: str) -> None:
    there = SET.format(hooks=FOLDED.format(quote=quote, mark=mark))
    assert without_hooks(there) == SET.format(hooks="")


def test_keys_that_hermes_has_written_again_stay_for_a_person_s_hooks() -> None:
    mine = "    - command: say\n"
    theirs = FOLDED.format(quote="", mark="").replace(
        "  pre_tool_call:\n", f"  pre_tool_call:\n{mine}"
    )
    assert without_hooks(theirs) == f"hooks:\n  pre_tool_call:\n{mine}"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: 1\nhooks: null\n", "2:1", "cannot add its hooks here"),
        ("a: 1\nhooks:\n  pre_llm_call: say\n", "2:1", "cannot add its hooks here"),
        ("hooks:\n  pre_llm_call: {command: say}\n", "1:1", "cannot add its hooks here"),
        ("hooks:\n  pre_llm_call: 3\n", "1:1", "cannot add its hooks here"),
        ("a: &x\n  b: 1\nhooks: *x\n", "3:1", "cannot add its hooks here"),
        ("hooks: &h\n  pre_llm_call:\n    - command: say\nb: *h\n", "1:1", "cannot add its hooks"),
        ("{hooks: {}}", "1:12", "cannot add its hooks here"),
        ("a: &a [*a]\n", "2:1", "cannot add its hooks here"),
        ("hooks: 3\n", "1:1", "`hooks` should contain events"),
        ("a: 1\nhooks: []\n", "2:1", "`hooks` should contain events"),
        ("a: 1\n---\nb: 2\n", "2:1", "expected a single document in the stream"),
        ("- a\n", "1:1", "it should contain keys and values"),
        ("a: [\n", "2:1", "expected the node content"),
        ("a:\tb\n", "1:3", "cannot start any token"),
        ("a: 1\nb: \x07\n", "2:4", "special characters are not allowed"),
        ("a: 2026-13-45\n", "1:1", "month must be in 1..12"),
    ],
)
def test_a_file_that_cannot_get_hooks_is_refused_with_the_place(
    text: str, place: str, said: str
) -> None:
    with pytest.raises(SettingsFileError, match=rf"config\.yaml:{place}: ") as error:
        with_hooks(text)
    assert said in str(error.value)


def test_a_refusal_names_the_lines_to_add_which_an_uninstall_removes() -> None:
    with pytest.raises(SettingsFileError) as error:
        with_hooks("hooks: null\n")
    hint, _, lines = error.value.hint.partition("add these lines yourself:\n")
    assert hint == "the file was left as it is; "
    by_hand = "\n".join(line[4:] for line in lines.splitlines()) + "\n"
    assert parse_yaml(by_hand) == {"hooks": LISTS}
    assert with_hooks(by_hand) == by_hand
    assert parse_yaml(without_hooks(f"a: 1\n{by_hand}")) == {"a": 1}


def test_our_hook_that_shares_its_lines_is_not_cut_out() -> None:
    text = "hooks:\n  pre_llm_call:\n    -\n      command: python /app/hooks/a.py\n"
    with pytest.raises(SettingsFileError, match="shares its lines with something else"):
        without_hooks(text)


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(SettingsFileError, match=r"config\.yaml:2:4: it is not UTF-8"):
        settings_at(b"a: 1\nb: \xff\n", PATH, HERMES).read()


def test_without_pyyaml_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SettingsFileError, match="reading YAML needs PyYAML") as error:
        with_hooks("a: 1\n")
    assert error.value.needs_package


READ_TWICE = """
import pathlib, shutil, sys
from session_memory.awareness.install.formats import settings_at
from session_memory.awareness.install.settings_file import SettingsFileError
from session_memory.sessions.runtimes.table import runtime
settings = settings_at(b"a: 1\\n", pathlib.Path("config.yaml"), runtime("hermes").install)
try:
    settings.read()
except SettingsFileError as error:
    print(error.needs_package)
shutil.copytree(sys.argv[1], sys.argv[2] + "/yaml")
print(settings.decoded()[1])
"""


def test_pyyaml_is_found_that_an_install_brings_after_its_first_look(tmp_path: Path) -> None:
    """A Python without site-packages has no PyYAML, as that of most people."""
    inside = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages = tmp_path / ".local/share/session-memory/env" / inside
    given = [str(Path(yaml.__file__).parent), str(packages)]
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", READ_TWICE, *given],
        env={"HOME": str(tmp_path)},
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n{'a': 1}\n", "")
