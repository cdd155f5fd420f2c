"""An install adds hooks to Kimi Code's config.toml, and an uninstall gives the bytes back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from install_machine import Machine, reads_toml, used_machine
from records import kimi_exchange, kimi_start, new_id, write

from session_memory.common.text.toml_edit import parse_toml

MINE = '# mine\r\n[[hooks]]\r\nevent = "Stop"\r\ncommand = "say done"\r\n\r\n[tui] # last'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


@pytest.fixture
def config(machine: Machine) -> Path:
    path = machine.home / ".kimi-code" / "config.toml"
    path.parent.mkdir()
    return path


@reads_toml
def test_hooks_are_added_and_an_uninstall_gives_the_bytes_back(
    machine: Machine, config: Path
) -> None:
    config.write_bytes(MINE.encode())
    machine.installed()
    written = config.read_bytes()
    assert written.startswith(MINE.encode())
    hooks = parse_toml(written.decode())["hooks"]
    assert hooks[0] == {"event": "Stop", "command": "say done"}
    assert [hook["event"] for hook in hooks[1:]] == [
        "SessionStart",
        "PreCompact",
        "SessionEnd",
        "PreToolUse",
        "PreToolUse",
        "UserPromptSubmit",
    ]
    keys = {"event", "matcher", "command", "timeout"}  # with any other one, no hook would run
    assert all(hook.keys() <= keys for hook in hooks)
    assert all(hook["command"].endswith(" kimi || exit 0") for hook in hooks[1:])
    assert (config.parent / "mcp.json").exists()
    machine.installed()
    assert config.read_bytes() == written
    assert machine.install("--uninstall").returncode == 0
    assert config.read_bytes() == MINE.encode()
    assert [path.name for path in config.parent.iterdir()] == ["config.toml"]


@reads_toml
def test_an_uninstall_keeps_what_was_written_around_our_tables_since(
    machine: Machine, config: Path
) -> None:
    config.write_bytes(MINE.encode())
    machine.installed()
    added = b'\r\n# later\r\n[[hooks]]\r\nevent = "Stop"\r\ncommand = "beep"\r\n'
    config.write_bytes(config.read_bytes().replace(b"# mine", b"# still mine") + added)
    machine.install("--uninstall")
    still_mine = MINE.replace("# mine", "# still mine").encode()
    assert config.read_bytes() == still_mine + b"\r\n" + added


@reads_toml
def test_a_file_that_an_install_made_is_gone_afterwards(machine: Machine, config: Path) -> None:
    machine.installed()
    assert config.exists()
    machine.install("--uninstall")
    assert list(config.parent.iterdir()) == []


@reads_toml
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a = 1\n[b\n", "/.kimi-code/config.toml:2:3: "),
        (b"a = 1\nhooks = []\n", "/.kimi-code/config.toml:2:1: `hooks` are not tables [[hooks]]"),
        (b"a = '\xff'\n", "/.kimi-code/config.toml:1:6: it is not UTF-8"),
    ],
)
def test_damaged_settings_are_refused_and_left_as_they_are(
    text: bytes, said: str, machine: Machine, config: Path
) -> None:
    config.write_bytes(text)
    done = machine.install()
    assert done.returncode == 1
    output = " ".join((done.stdout + done.stderr).split())
    assert said in output
    assert "the file was left as it is" in output
    assert config.read_bytes() == text
    assert not (config.parent / "mcp.json").exists()
    assert machine.settings.exists()  # Claude Code's, which got hooks


@reads_toml
def test_doctor_shows_the_update_that_the_hook_would_give_a_session(
    machine: Machine, config: Path
) -> None:
    project, at, id = machine.home / "shop", time.time() - 60, f"session_{new_id()}"
    project.mkdir()
    log = config.parent / "sessions/wd_shop_1" / id / "agents/main/wire.jsonl"
    log.parent.mkdir(parents=True)
    talk = kimi_exchange("paint the door", "Yes.", at=at)
    write(log, *kimi_start(str(project), at=at), *talk)
    machine.installed()
    done = machine.run(str(machine.program_dir / "bin/session-memory"), "doctor")
    assert '"paint the door" (' in " ".join(done.stdout.replace("|", " ").split())
