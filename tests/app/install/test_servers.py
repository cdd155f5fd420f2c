"""Our MCP server in lists of servers: added and removed, with every other byte unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from install_machine import reads_toml

from session_memory.app.install._servers import has_server, with_server, without_server
from session_memory.awareness.install.ledger import _is_empty as is_empty
from session_memory.awareness.install.settings_file import SettingsFile, SettingsFileError
from session_memory.common.text import toml_edit
from session_memory.sessions.runtimes.table import all_runtimes, runtime

LAUNCHER = "/home/me/.local/share/session-memory/bin/session-memory"
CODEX, OPENCODE, OPENCLAW = [runtime(name).install for name in ("codex", "opencode", "openclaw")]
TOML = Path("/home/me/.codex/config.toml")
JSON = Path("/home/me/.config/opencode/opencode.json")
CLAW = Path("/home/me/.openclaw/openclaw.json")
ENTRY = {"enabled": True, "hooks": {"allowConversationAccess": True}}  # of OpenClaw's plugin
TEXTS = [
    b"",
    b'model = "x"\n',
    b"# only a comment, without a newline",
    b'model = "x"\r\n\r\n[tui]\r\ntheme = "dark"\r\n',
    b'mcp_servers.docs.command = "docs"\n',
    b'note = """\n[mcp_servers.session-memory]\nx\n"""\n',
    "note = '''\n[mcp_servers.session-memory]\u2028x # \"\"\"\n'''\na = 'b' # it's".encode(),
    b'[mcp_servers.docs]\ncommand = "docs"\nargs = [\n["a"],\n]\n\n# the end\n',
]


def entry_of(content: bytes) -> dict[str, Any]:
    """Our server in a TOML text."""
    import tomllib

    return dict(tomllib.loads(content.decode())["mcp_servers"]["session-memory"])


@reads_toml
@pytest.mark.parametrize("text", TEXTS)
def test_a_table_is_added_to_a_toml_text_and_taken_out_again(text: bytes) -> None:
    there = with_server(text, TOML, CODEX, LAUNCHER)
    assert there is not None
    assert there.startswith(text)
    assert entry_of(there) == CODEX.wanted_server(LAUNCHER)
    assert with_server(there, TOML, CODEX, LAUNCHER) == there
    assert without_server(there, TOML, CODEX) == text
    theirs = b'\n[later]\ntheme = "dark"\n'  # added since
    assert without_server(there + theirs, TOML, CODEX).endswith(theirs)


@reads_toml
@pytest.mark.parametrize(
    "text",
    [b"mcp_servers = { docs = { command = 'docs' } }\n", b"mcp_servers = 1\n", b"[a\n", b"\xff\n"],
)
def test_a_toml_text_to_which_no_table_can_be_added_is_refused(text: bytes) -> None:
    with pytest.raises(SettingsFileError, match=r"config\.toml:\d+:\d+: "):
        with_server(text, TOML, CODEX, LAUNCHER)


def test_a_toml_text_is_refused_by_a_python_that_cannot_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toml_edit.sys, "version_info", (3, 10, 13))
    for change in (
        lambda: with_server(b"a = 1\n", TOML, CODEX, LAUNCHER),
        lambda: without_server(b"", TOML, CODEX),
    ):
        with pytest.raises(SettingsFileError, match=r"reading TOML needs Python 3\.11"):
            change()


@reads_toml
def test_a_text_that_only_looks_like_our_table_is_not_cut() -> None:
    before = b'text = """\n[mcp_servers.session-memory]\n"""\n'
    assert without_server(with_server(before, TOML, CODEX, LAUNCHER) or b"", TOML, CODEX) == before


@reads_toml
def test_a_program_that_moved_takes_the_place_of_the_one_before() -> None:
    old = with_server(b"a = 1\n", TOML, CODEX, LAUNCHER.replace("/me/", "/you/")) or b""
    assert with_server(old, TOML, CODEX, LAUNCHER) == with_server(b"a = 1\n", TOML, CODEX, LAUNCHER)
    mine = (
        old
        + b'enabled = false\n\n[mcp_servers.session-memory.tools.remember]\napproval_mode = "approve"\n'
    )
    moved = entry_of(with_server(mine, TOML, CODEX, LAUNCHER) or b"")
    assert (moved["command"], moved["enabled"]) == (LAUNCHER, False)
    assert moved["tools"] == {"remember": {"approval_mode": "approve"}}


def test_what_a_user_adds_to_our_entry_stays_until_it_goes() -> None:
    text = b'{\n  "mcp": {"docs": {"type": "remote", "url": "https://docs"}}, "theme": "x"\n}'
    there = json.loads(with_server(text, JSON, OPENCODE, LAUNCHER) or b"")
    there["mcp"]["session-memory"]["enabled"] = False
    there["mcp"]["session-memory"]["timeout"] = 9
    changed = json.dumps(there).encode()
    assert with_server(changed, JSON, OPENCODE, LAUNCHER) == changed
    assert (
        without_server(with_server(text, JSON, OPENCODE, LAUNCHER) or b"", JSON, OPENCODE) == text
    )


def test_a_way_to_offer_the_tools_that_a_user_chose_in_pi_stays() -> None:
    """Pi removes `exposure` from the entry if its user chooses the usual value in `/mcp`."""
    path, pi = Path("/home/me/.pi/agent/mcp.json"), runtime("pi").install
    entry = json.loads(with_server(None, path, pi, LAUNCHER) or b"")
    assert entry["mcpServers"]["session-memory"].pop("exposure") == "direct"
    chosen = json.dumps(entry).encode()
    assert with_server(chosen, path, pi, LAUNCHER) == chosen
    moved = with_server(chosen, path, pi, LAUNCHER.replace("/me/", "/you/")) or b""
    assert "exposure" not in json.loads(moved)["mcpServers"]["session-memory"]


def test_a_server_that_is_not_ours_keeps_the_name() -> None:
    text = b'{"mcp": {"session-memory": {"type": "local", "command": ["other"]}}}'
    assert with_server(text, JSON, OPENCODE, LAUNCHER) == text
    assert without_server(text, JSON, OPENCODE) == text


def test_json_with_a_comment_that_does_not_end_is_refused() -> None:
    with pytest.raises(SettingsFileError, match=r"opencode\.json:1:2: "):
        with_server(b"{/* mine }", JSON, OPENCODE, LAUNCHER)


def test_a_file_in_which_only_opencode_s_schema_is_left_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    there = with_server(None, path, OPENCODE, LAUNCHER) or b""
    path.write_bytes(there)
    assert has_server(path, OPENCODE)
    with_schema = json.dumps(
        {"$schema": "https://opencode.ai/config.json", **json.loads(there)}
    ).encode()
    assert is_empty(without_server(with_schema, path, OPENCODE), path)
    assert not is_empty(b'{"theme": "x"}', path)


def test_every_runtime_that_an_install_adds_tools_to_names_the_file_and_the_key() -> None:
    named = {
        one.name: (one.install.MCP_FILES[0], one.install.MCP_KEY)
        for one in all_runtimes()
        if one.install.MCP_KEY
    }
    assert named == {
        "cline": ("data/settings/cline_mcp_settings.json", "mcpServers"),
        "codex": ("config.toml", "mcp_servers"),
        "copilot": ("mcp-config.json", "mcpServers"),
        "droid": ("mcp.json", "mcpServers"),
        "kimi": ("mcp.json", "mcpServers"),
        "gemini": ("settings.json", "mcpServers"),
        "kilo": ("kilo.json", "mcp"),
        "omp": ("mcp.json", "mcpServers"),
        "openclaw": ("openclaw.json", "mcp.servers"),
        "opencode": ("opencode.json", "mcp"),
        "pi": ("mcp.json", "mcpServers"),
        "qwen-code": ("settings.json", "mcpServers"),
    }


@pytest.mark.parametrize(
    "text",
    [
        b"{}\n",
        b'{\n  // mine\n  "agents": {"defaults": {}}\n}\n',
        b'{"mcp": {"servers": {"docs": {"command": "docs"}}}, "plugins": {"allow": ["a"]}}',
        b'{"hooks": {"enabled": true}, "plugins": {"entries": {"voice": {"enabled": false}}}}',
    ],
)
def test_openclaw_gets_the_server_and_the_plugin_s_entry_and_its_text_back(text: bytes) -> None:
    there = with_server(text, CLAW, OPENCLAW, LAUNCHER) or b""
    settings = SettingsFile(there, CLAW, OPENCLAW)
    assert settings.value_of("mcp", "servers", "session-memory")["command"] == LAUNCHER
    assert settings.value_of("plugins", "entries", "session-memory") == ENTRY
    assert with_server(there, CLAW, OPENCLAW, LAUNCHER) == there
    assert without_server(there, CLAW, OPENCLAW) == text


def test_what_openclaw_writes_beside_our_entries_stays_when_they_go() -> None:
    mine = {"agents": {"defaults": {}}, "plugins": {"entries": {"voice": {"enabled": True}}}}
    there = with_server(json.dumps(mine).encode(), CLAW, OPENCLAW, LAUNCHER) or b""
    rewritten = {"meta": {"lastTouchedVersion": "2026.9.2"}, **json.loads(there)}
    after = without_server(json.dumps(rewritten, indent=2).encode(), CLAW, OPENCLAW)
    assert json.loads(after) == {"meta": rewritten["meta"], **mine}


def test_a_plugin_of_openclaw_that_its_user_switched_off_stays_off_and_is_named() -> None:
    chosen = {"enabled": False, "hooks": {"timeoutMs": 900}}
    text = json.dumps({"plugins": {"entries": {"session-memory": chosen}}}).encode()
    there = json.loads(with_server(text, CLAW, OPENCLAW, LAUNCHER) or b"")
    hooks = {**ENTRY["hooks"], **chosen["hooks"]}
    assert there["plugins"]["entries"]["session-memory"] == {"enabled": False, "hooks": hooks}
    assert OPENCLAW.switched_off(there) == "plugins.entries.session-memory.enabled is not true"


@pytest.mark.parametrize(
    ("plugins", "named"),
    [
        ({}, ""),
        ({"allow": []}, ""),
        ({"allow": ["session-memory"]}, ""),
        ({"enabled": False}, "plugins.enabled is false"),
        ({"deny": ["session-memory"]}, "plugins.deny contains session-memory"),
        ({"allow": ["voice"]}, "plugins.allow lacks session-memory"),
    ],
)
def test_settings_that_keep_openclaw_from_loading_the_plugin_are_named(
    plugins: dict[str, Any], named: str
) -> None:
    values = {"plugins": {"entries": {"session-memory": ENTRY}, **plugins}}
    assert OPENCLAW.switched_off(values) == named


@pytest.mark.parametrize("key", ["enabled", "hooks"])
def test_an_entry_of_openclaw_s_plugin_without_a_permission_is_named(key: str) -> None:
    entry = {name: value for name, value in ENTRY.items() if name != key}
    values = {"plugins": {"entries": {"session-memory": entry}}}
    assert "is not true" in OPENCLAW.switched_off(values)


@pytest.mark.parametrize("text", [b'{"plugins": []}', b'{"mcp": {"servers": 1}}', b"{a: 1}"])
def test_settings_of_openclaw_that_cannot_be_edited_are_refused(text: bytes) -> None:
    with pytest.raises(SettingsFileError, match=r"openclaw\.json:1:"):
        with_server(text, CLAW, OPENCLAW, LAUNCHER)
