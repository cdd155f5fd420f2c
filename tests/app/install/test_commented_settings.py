"""An install keeps comments, a byte order mark and trailing commas in settings that allow them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from install_machine import reads_toml, used_machine

from session_memory.common.text.json_comments import without_comments, without_last_commas
from session_memory.common.text.json_edit import edited
from session_memory.sessions.runtimes.table import runtime

BOM = "\ufeff"
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
MARKED = '{\n  // my own comment\n  "theme": "dark", // as at night\n  /* two\n     lines */\n  "general": {"vimMode": true} // last\n}\n'


def values_of(text: str) -> Any:
    return json.loads(without_last_commas(without_comments(text.removeprefix(BOM))))


def comments_in(text: str) -> list[str]:
    return [match[0] for match in TOKEN.finditer(text) if match[0][0] == "/"]


class Writer:
    """Writes values as JSON with comments and last commas at random places."""

    def __init__(self, chance: random.Random, *, is_wide: bool) -> None:
        self.chance, self.newline, self.number = chance, "\n" if is_wide else "", 0

    def space(self, indent: str) -> str:
        self.number += 1
        line, block = f" // c{self.number}, {{\n{indent}", f" /* d{self.number}, */ "
        kinds = ("", "", line if self.newline else "", block, f"/* e\n f{self.number} */")
        return self.chance.choice(kinds)

    def text(self, value: Any, indent: str = "") -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value)
        deeper = indent + "  "
        items = list(value.items()) if isinstance(value, dict) else [(None, one) for one in value]
        parts = []
        for key, one in items:
            name = "" if key is None else f"{json.dumps(key)}:{self.space(deeper)} "
            lead = (self.newline and self.newline + deeper) + self.space(deeper)
            parts.append(lead + name + self.text(one, deeper) + self.space(deeper))
        last = "," if items and self.chance.random() < 0.3 else ""
        ends = "{}" if isinstance(value, dict) else "[]"
        return (
            ends[0]
            + ",".join(parts)
            + last
            + self.space(indent)
            + (self.newline and self.newline + indent)
            + ends[1]
        )


VALUES = {
    "a": 1,
    "url": "http://x/*y*/",
    "b": {"c": [1, 2], "d": {}},
    "hooks": {"Stop": [{"hooks": [{"command": "x"}]}]},
}


@pytest.mark.parametrize("is_wide", [True, False])
def test_additions_and_removals_keep_all_other_values_and_all_comments_around_them(
    is_wide: bool,
) -> None:
    chance = random.Random(7)
    for _ in range(300):
        keys = chance.sample(list(VALUES), chance.randrange(len(VALUES) + 1))
        old = {key: VALUES[key] for key in keys}
        text = Writer(chance, is_wide=is_wide).text(old)
        assert values_of(text) == old
        hooks = {**old.get("hooks", {}), "New": [{"hooks": [{"command": "ours"}]}]}
        new = {**old, "hooks": hooks, "mcpServers": {"ours": {"command": "y"}}}
        added = edited(text, new)
        assert values_of(added) == new, text
        assert comments_in(added) == comments_in(text)
        removed = edited(added, old)
        assert values_of(removed) == old, added
        assert comments_in(removed) == comments_in(text)
        fewer = {key: one for key, one in old.items() if chance.random() < 0.5}
        assert values_of(edited(text, fewer)) == fewer, text


def test_a_comment_stays_beside_the_value_that_it_is_about() -> None:
    after = edited(MARKED, {**values_of(MARKED), "hooks": {}})
    assert after == MARKED.replace("true} // last\n", 'true}, // last\n  "hooks": {}\n')
    assert edited("{\n  // nothing yet\n}\n", {"a": 1}) == '{\n  // nothing yet\n  "a": 1\n}\n'
    assert edited('{\n  "a": 1, // x\n}\n', {"a": 1, "b": 2}) == '{\n  "a": 1, // x\n  "b": 2,\n}\n'


@pytest.mark.parametrize(
    ("folder", "name", "text"),
    [
        (".gemini", "settings.json", MARKED),
        (".qwen", "settings.json", MARKED),
        (".config/opencode", "opencode.json", MARKED.replace("true} //", "true}, //")),
        (".qwen", "settings.json", BOM + MARKED),
        (".claude", "settings.json", BOM + '{"theme": "dark"}'),
        (".copilot", "mcp-config.json", BOM + "{}\r\n"),
        (".copilot", "mcp-config.json", MARKED.replace("true} //", "true}, //")),
        (".pi/agent", "mcp.json", BOM + '{"autoEnableCodemode": false}\r\n'),
        (".config/opencode", "opencode.json", BOM + "{\n}\n"),
    ],
)
def test_settings_with_comments_are_installed_into_and_restored_to_the_byte(
    folder: str, name: str, text: str, tmp_path: Path
) -> None:
    machine = used_machine(tmp_path / "home")
    settings = machine.home / folder / name
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_bytes(text.encode())
    machine.installed()
    written = settings.read_bytes().decode()
    assert written.startswith(BOM) == text.startswith(BOM)
    assert comments_in(written) == comments_in(text)
    assert "/session-memory/" in json.dumps(values_of(written))
    assert machine.doctor()[1] == {}
    assert machine.install().returncode == 0
    assert settings.read_bytes().decode() == written
    machine.install("--uninstall")
    assert settings.read_bytes().decode() == text


def test_a_plugin_in_settings_of_copilot_with_comments_is_found(tmp_path: Path) -> None:
    plugins = (
        '{\n  // mine\n  "enabledPlugins": {"session-memory@shop": true, "other@shop": true,}\n}\n'
    )
    (tmp_path / "settings.json").write_text(plugins)
    install = runtime("copilot").install
    assert install.plugins_named(str(tmp_path), "session-memory") == ["session-memory@shop"]


@reads_toml
def test_codex_is_given_tools_behind_a_byte_order_mark(tmp_path: Path) -> None:
    machine = used_machine(tmp_path / "home")
    config = machine.home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(BOM + 'model = "gpt-6"\n')
    machine.installed()
    assert "[mcp_servers.session-memory]" in config.read_text()
    machine.install("--uninstall")
    assert config.read_text() == BOM + 'model = "gpt-6"\n'


def test_an_uninstall_from_settings_that_were_changed_since_keeps_their_comments(
    tmp_path: Path,
) -> None:
    machine = used_machine(tmp_path / "home")
    settings = machine.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(MARKED)
    machine.installed()
    settings.write_text(settings.read_text().replace('"dark"', '"light"'))
    machine.install("--uninstall")
    assert values_of(settings.read_text()) == {"theme": "light", "general": {"vimMode": True}}
    assert comments_in(settings.read_text()) == comments_in(MARKED)


EMPTY = """{
  "hooks": {},
  "mcpServers": {},
  "permissions": { "allow": [] },
  "theme": "dark"
}
"""


@pytest.mark.parametrize(
    ("name", "is_updated"),
    [
        (".claude/settings.json", False),
        (".claude/settings.json", True),
        (".gemini/settings.json", False),
        (".gemini/settings.json", True),
        (".copilot/mcp-config.json", True),
        (".cline/data/settings/cline_mcp_settings.json", True),
    ],
)
def test_an_uninstall_from_settings_that_were_changed_since_keeps_empty_values_of_the_person(
    name: str, is_updated: bool, tmp_path: Path
) -> None:
    machine = used_machine(tmp_path / "home")
    settings = machine.home / name
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(EMPTY)
    machine.installed()
    settings.write_text(settings.read_text().replace('"dark"', '"light"'))
    if is_updated:
        machine.installed()
        settings.write_text(settings.read_text().replace('"light"', '"blue"'))
    machine.install("--uninstall")
    expected = EMPTY.replace('"dark"', '"blue"' if is_updated else '"light"')
    assert settings.read_text() == expected


def test_an_uninstall_leaves_out_an_empty_value_that_a_person_removed(tmp_path: Path) -> None:
    machine = used_machine(tmp_path / "home")
    settings = machine.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(EMPTY)
    machine.installed()
    values = json.loads(settings.read_text())
    del values["mcpServers"]
    settings.write_text(json.dumps(values))
    machine.install("--uninstall")
    assert json.loads(settings.read_text()) == {
        "hooks": {},
        "permissions": {"allow": []},
        "theme": "dark",
    }


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        (".claude", MARKED),
        (".claude", '{"a": 1,}'),
        (".gemini", '{"a": 1,}'),
        (".qwen", '{"a": [1,]}'),
        (".gemini", '{"a": 1 /* open }'),
        (".gemini", BOM + "{}"),
    ],
)
def test_settings_that_their_client_cannot_read_are_refused(
    folder: str, text: str, tmp_path: Path
) -> None:
    machine = used_machine(tmp_path / "home")
    settings = machine.home / folder / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(text)
    done = machine.install()
    assert done.returncode == 1
    assert f"{folder}/settings.json:" in done.stdout + done.stderr
    assert settings.read_text() == text
