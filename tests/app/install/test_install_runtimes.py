"""install.py with several runtimes: each gets its own kind of install, and is restored afterwards."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from install_machine import MINE, Machine, copy_repository, reads_toml, tree, used_machine

from bench.scratch import remove_tree
from session_memory.sessions.runtimes.table import runtime

CODEX_HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'
FAILED = "PostToolUseFailure"
QWEN_SETTINGS = '{\n\t"model": {"name": "qwen3"}\n}'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Somebody who uses Claude Code, Codex, Pi and Qwen Code, each with settings of theirs."""
    machine = used_machine(tmp_path / "home")
    for name, text in (
        (".claude/settings.json", MINE),
        (".codex/hooks.json", CODEX_HOOKS),
        (".codex/config.toml", 'model = "gpt-6"\n'),
        (".pi/agent/settings.json", "{}"),
        (".qwen/settings.json", QWEN_SETTINGS),
    ):
        (machine.home / name).parent.mkdir(parents=True, exist_ok=True)
        (machine.home / name).write_text(text)
    return machine


def own(machine: Machine) -> dict[str, object]:
    """What is in the home directory, but for what the program itself has."""
    return {
        name: value for name, value in tree(machine.home).items() if not name.startswith(".local")
    }


def commands(path: Path) -> dict[str, list[str]]:
    """The commands of the hooks in a settings file, by their event."""
    hooks = json.loads(path.read_text())["hooks"]
    return {
        event: [entry["command"] for group in groups for entry in group["hooks"]]
        for event, groups in hooks.items()
    }


def test_it_goes_into_every_runtime_in_its_own_way_and_comes_out_without_a_trace(
    machine: Machine,
) -> None:
    before = own(machine)
    done = machine.install()
    assert (done.returncode, done.stderr) == (0, "")
    codex, qwen = machine.home / ".codex", machine.home / ".qwen"
    for path, name in ((codex / "hooks.json", "codex"), (qwen / "settings.json", "qwen")):
        [command] = commands(path)["UserPromptSubmit"]
        assert command.endswith(f"/app/hooks/user_prompt_submit.py {name} || exit 0")
    assert commands(codex / "hooks.json")["Stop"] == ["say done"]
    assert "PreToolUse" not in commands(qwen / "settings.json")
    assert FAILED not in commands(codex / "hooks.json")
    matchers = [
        group["matcher"]
        for group in json.loads((codex / "hooks.json").read_text())["hooks"]["PreToolUse"]
    ]
    assert matchers == ["apply_patch", "Bash"]
    extension = (machine.home / ".pi/agent/extensions/session-memory.ts").read_text()
    assert f'from "{machine.program_dir}/app/hooks/pi/index.ts"' in extension
    launcher = str(machine.program_dir / "bin/session-memory")
    if sys.version_info >= (3, 11):  # older ones do not read TOML, and say so
        assert (
            f'[mcp_servers.session-memory]\ncommand = "{launcher}"\nargs = ["mcp"]\n'
            in (codex / "config.toml").read_text()
        )
    servers = json.loads((qwen / "settings.json").read_text())["mcpServers"]
    assert servers == {"session-memory": {"command": launcher, "args": ["mcp"]}}
    assert sorted(path.name for path in (machine.home / ".agents/skills").iterdir()) == [
        "recall",
        "sessions",
    ]
    for title in ("Claude Code", "Codex", "Pi", "Qwen Code"):
        assert f"\n  {title:<12} ~/." in done.stdout
    assert "once you have trusted them" in done.stdout
    again = machine.installed()["homes"]
    assert {home["settings"]["change"] for home in again if home["settings"]} == {"unchanged"}
    assert {home["server"]["change"] for home in again if home["server"]} == (
        {"unchanged"} if sys.version_info >= (3, 11) else set()
    )
    assert [change for home in again for change in home["skills"]] == []
    assert machine.install("--uninstall").returncode == 0
    assert own(machine) == before


def test_some_runtimes_are_named_and_the_others_left_alone(machine: Machine) -> None:
    before = own(machine)
    machine.installed("--runtime", "codex", "--runtime", "qwen-code")
    assert machine.settings.read_text() == MINE
    assert not (machine.home / ".pi/agent/extensions").exists()
    machine.install("--uninstall", "--runtime", "qwen")
    assert (machine.home / ".qwen/settings.json").read_text() == QWEN_SETTINGS
    assert (machine.home / ".agents/skills/sessions/SKILL.md").exists()  # Codex has them from there
    machine.install("--uninstall", "--runtime", "codex")
    assert own(machine) == before


def test_a_named_runtime_that_is_missing_is_left_out_and_the_others_go_on(machine: Machine) -> None:
    done = machine.install("--runtime", "codex", "--runtime", "opencode")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert (
        "Not installed: OpenCode is not on this machine: ~/.config/opencode does not exist" in said
    )
    assert commands(machine.home / ".codex/hooks.json")["UserPromptSubmit"]
    only = machine.install("--runtime", "opencode")
    assert (only.returncode, "OpenCode is not on this machine" in only.stderr) == (1, True)


@reads_toml
def test_a_dry_run_shows_the_change_of_each_and_makes_none(machine: Machine) -> None:
    before = tree(machine.home)
    done = machine.install("--dry-run")
    assert done.returncode == 0
    for part in (
        ".codex/hooks.json",
        "+[mcp_servers.session-memory]",
        ".qwen/settings.json",
        ".pi/agent/extensions/session-memory.ts",
        ".agents/skills",
    ):
        assert part in done.stdout
    assert tree(machine.home) == before


def test_settings_that_cannot_be_parsed_are_refused_and_the_others_go_on(machine: Machine) -> None:
    broken = machine.home / ".codex/hooks.json"
    broken.write_text('{"hooks" {}}')
    done = machine.install()
    assert done.returncode == 1
    assert (
        f"Not installed: {broken}:1:10: expecting ':' delimiter".replace(str(machine.home), "~")
        in done.stdout
    )
    assert broken.read_text() == '{"hooks" {}}'
    machine.hook_command(machine.home / ".qwen/settings.json")
    machine.hook_command()


def test_nothing_is_put_beside_a_plugin_that_is_there_already(machine: Machine) -> None:
    (machine.home / ".qwen/extensions/session-memory").mkdir(parents=True)
    (machine.home / ".codex/config.toml").write_text(
        '[plugins."session-memory@session-memory"]\nenabled = true\n'
    )
    package = machine.home / "copy/package.json"
    package.parent.mkdir()
    package.write_text('{"name": "session-memory"}')
    (machine.home / ".pi/agent/settings.json").write_text(
        '{"packages": ["../../copy", "npm:other"]}'
    )
    before = own(machine)
    homes = machine.installed("--runtime", "codex", "--runtime", "qwen", "--runtime", "pi")["homes"]
    assert [home["plugins"] for home in homes] == [
        ["session-memory@session-memory"],
        ["session-memory"],
        ["../../copy"],
    ]
    assert own(machine) == before


def test_a_plugin_that_comes_later_takes_the_place_of_the_hooks(machine: Machine) -> None:
    machine.installed("--runtime", "qwen")
    (machine.home / ".qwen/extensions/session-memory").mkdir(parents=True)
    machine.installed("--runtime", "qwen")
    assert (machine.home / ".qwen/settings.json").read_text() == QWEN_SETTINGS


def test_a_runtime_that_was_never_started_is_found_by_its_command(machine: Machine) -> None:
    remove_tree(machine.home / ".codex")
    assert "Codex" not in machine.install("--dry-run").stdout
    done = machine.install("--runtime", "codex")
    assert (done.returncode, "Codex is not on this machine" in done.stderr) == (1, True)
    codex = machine.home / ".local/bin/codex"
    codex.parent.mkdir(parents=True, exist_ok=True)
    codex.write_text("#!/bin/sh\n")
    codex.chmod(0o755)
    before = own(machine)
    machine.installed()
    machine.hook_command(machine.home / ".codex/hooks.json")
    machine.install("--uninstall")
    assert own(machine) == before


def test_what_codex_does_not_trust_yet_the_doctor_says(machine: Machine) -> None:
    machine.installed("--runtime", "codex")
    code, wrong = machine.doctor()
    assert code == 1
    [found] = [text for text in wrong if "not trusted yet" in text]
    assert "UserPromptSubmit" in found
    assert "start `codex`" in wrong[found]
    hooks = json.loads((machine.home / ".codex/hooks.json").read_text())["hooks"]
    names = {
        "SessionStart": "session_start",
        "PreCompact": "pre_compact",
        "SessionEnd": "session_end",
    }
    names |= {"PreToolUse": "pre_tool_use", "UserPromptSubmit": "user_prompt_submit"}
    with (machine.home / ".codex/config.toml").open("a") as config:
        for event in names:
            for at in range(len(hooks[event])):
                key = f"{machine.home}/.codex/hooks.json:{names[event]}:{at}:0"
                config.write(f'\n[hooks.state."{key}"]\ntrusted_hash = "sha256:00"\n')
    assert machine.doctor() == (0, {})


def test_the_doctor_says_once_what_is_wrong_for_all_runtimes(machine: Machine) -> None:
    machine.install()
    (machine.home / ".session-memory").mkdir()
    (machine.home / ".session-memory/config.yaml").write_text("scope: al\n")
    said = machine.run_doctor("hooks").stdout
    assert (said.count("wrong  config "), said.count(" upkeep ")) == (1, 1)
    # Codex does not trust the hooks yet
    assert said.rstrip().endswith("2 things are wrong; see above.")


def test_the_doctor_says_what_is_gone_of_an_extension(machine: Machine) -> None:
    machine.installed("--runtime", "pi")
    assert machine.doctor() == (0, {})
    os.unlink(machine.home / ".pi/agent/extensions/session-memory.ts")
    code, wrong = machine.doctor()
    assert (code, list(wrong)) == (
        1,
        [f"{machine.home}/.pi/agent/extensions/session-memory.ts is gone"],
    )


def test_a_lost_ledger_is_no_obstacle_to_an_uninstall_from_all(machine: Machine) -> None:
    before = own(machine)
    machine.installed()
    (machine.program_dir / "installed.json").unlink()
    assert machine.install("--uninstall").returncode == 0
    assert {name for name in own(machine) if "session-memory" in name} == set()
    for name in (".codex/hooks.json", ".qwen/settings.json", ".claude/settings.json"):
        assert json.loads((machine.home / name).read_text()) == json.loads(
            str(before[name][1].decode())
        )  # type: ignore[index]


def test_skills_that_an_install_of_claude_code_shared_are_shared_by_all_from_then_on(
    machine: Machine,
) -> None:
    before = own(machine)
    machine.installed("--home", str(machine.claude), "--agents-skills")
    ledger = machine.program_dir / "installed.json"
    content = json.loads(ledger.read_text())  # as an earlier version wrote it
    shared = content["homes"].pop(f"{machine.home}/.agents")
    claude = content["homes"][str(machine.claude)]
    claude["files"].update(shared["files"])
    claude["made"] += shared["made"]
    del claude["runtime"]
    ledger.write_text(json.dumps(content))
    machine.installed()
    machine.install("--uninstall", "--home", str(machine.claude))
    assert (machine.home / ".agents/skills/sessions/SKILL.md").exists()
    machine.install("--uninstall")
    assert own(machine) == before


def test_an_install_of_before_gets_the_hook_for_failed_calls_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path / "home", copy_repository(tmp_path / "copy"), keeps_program=True)
    machine.has_environment().has_program()
    (machine.home / ".copilot").mkdir()
    (machine.home / ".qwen").mkdir()
    (machine.home / ".qwen/settings.json").write_text(QWEN_SETTINGS)
    before = own(machine)
    declared = machine.source / "hooks/hooks.json"
    now = json.loads(declared.read_text())
    declared.write_text(
        json.dumps({"hooks": {key: one for key, one in now["hooks"].items() if key != FAILED}})
    )
    machine.installed()
    files = [
        machine.home / ".qwen/settings.json",
        machine.home / ".copilot/hooks/session-memory.json",
    ]
    assert not any(FAILED in json.loads(file.read_text())["hooks"] for file in files)
    declared.write_text(json.dumps(now))
    machine.installed()
    [in_qwen], [in_copilot] = [json.loads(file.read_text())["hooks"][FAILED] for file in files]
    assert in_qwen["matcher"] == "read_file|edit|write_file"
    assert in_copilot["matcher"] == now["hooks"][FAILED][0]["matcher"]
    assert "/hooks/post_tool_use_failure.py copilot || exit 0" in in_copilot["bash"]
    assert machine.install("--uninstall").returncode == 0
    assert own(machine) == before


@reads_toml
def test_tools_that_cannot_be_added_keep_no_runtime_from_its_hooks(machine: Machine) -> None:
    config = machine.home / ".codex/config.toml"
    config.write_text('model = "gpt-6"\n[broken\n')
    done = machine.install("--runtime", "codex")
    assert done.returncode == 0
    assert "~/.codex/config.toml:2:8: Expected" in done.stdout
    assert "The tools are not added there" in " ".join(done.stdout.split())
    assert config.read_text() == 'model = "gpt-6"\n[broken\n'
    assert commands(machine.home / ".codex/hooks.json")["UserPromptSubmit"]


def test_a_server_that_its_user_named_keeps_its_place_and_gets_none_beside_it(
    machine: Machine,
) -> None:
    config = machine.home / ".codex/config.toml"
    config.write_text('[mcp_servers.past]\ncommand = "session-memory"\nargs = ["mcp"]\n')
    before = own(machine)
    machine.installed("--runtime", "codex")
    assert config.read_text() == '[mcp_servers.past]\ncommand = "session-memory"\nargs = ["mcp"]\n'
    machine.install("--uninstall")
    assert own(machine) == before


@reads_toml
def test_what_a_runtime_wrote_behind_our_server_stays_when_that_goes(machine: Machine) -> None:
    config = machine.home / ".codex/config.toml"
    machine.installed("--runtime", "codex")
    approval = '\n[mcp_servers.session-memory.tools.remember]\napproval_mode = "approve"\n'
    config.write_text(
        config.read_text() + approval + '\n# mine\n[projects."/srv"]\ntrust_level = "trusted"\n'
    )
    machine.installed("--runtime", "codex")
    done = machine.install("--uninstall")
    assert (
        config.read_text()
        == 'model = "gpt-6"\n\n# mine\n[projects."/srv"]\ntrust_level = "trusted"\n'
    )
    assert "our server was removed" in done.stdout
    assert "the MCP server" not in done.stdout


@reads_toml
def test_doctor_says_when_a_runtime_does_not_list_the_tools(machine: Machine) -> None:
    machine.installed("--runtime", "codex")
    (machine.home / ".codex/config.toml").write_text('model = "gpt-6"\n')
    done = machine.run_doctor("hooks")
    assert "~/.codex/config.toml does not list the server session-memory" in " ".join(
        done.stdout.split()
    )


def test_a_list_of_openclaw_s_plugins_without_ours_is_named_and_left_alone(
    machine: Machine,
) -> None:
    settings = machine.home / ".openclaw/openclaw.json"
    settings.parent.mkdir()
    text = '{\n  // mine\n  "plugins": {"allow": ["voice"]},\n}\n'
    settings.write_text(text)
    machine.installed("--runtime", "openclaw")
    assert '"allow": ["voice"]' in settings.read_text()
    code, wrong = machine.doctor()
    named = f"{settings}: plugins.allow lacks session-memory, so no hook runs there"
    assert (code, list(wrong)) == (1, [named])
    settings.write_text(settings.read_text().replace('["voice"]', '["voice", "session-memory"]'))
    assert machine.doctor() == (0, {})
    settings.write_text(settings.read_text().replace(', "session-memory"]', "]"))
    assert machine.install("--uninstall", "--runtime", "openclaw").returncode == 0
    assert settings.read_text() == text
    assert not (settings.parent / "extensions").exists()


def test_settings_of_openclaw_in_javascript_s_form_are_left_alone_with_what_to_add(
    machine: Machine,
) -> None:
    settings = machine.home / ".openclaw/openclaw.json"
    settings.parent.mkdir()
    settings.write_text("{agents: {}}")
    done = machine.install("--runtime", "openclaw")
    said = " ".join(done.stdout.split())
    assert "~/.openclaw/openclaw.json:1:2: " in said
    assert "until you add plugins.entries.session-memory: {" in said
    assert settings.read_text() == "{agents: {}}"


def test_a_profile_of_hermes_is_a_home_whose_sessions_are_with_all_others(
    bare_machine: Machine,
) -> None:
    machine = bare_machine.has_environment().has_program()
    directory = machine.home / ".hermes/profiles/work"
    directory.mkdir(parents=True)
    settings = directory / "config.yaml"
    settings.write_text("model: {}\n")
    done = machine.install("--home", str(directory))
    assert (done.returncode, done.stderr) == (0, "")
    assert "user_prompt_submit.py hermes" in settings.read_text()
    assert "start `hermes -p work` in a terminal" in " ".join(done.stdout.split())
    said = machine.run_doctor("hooks").stdout
    assert "~/.hermes/profiles/work (Hermes)" in said
    assert "start `hermes -p work` in a terminal" in " ".join(said.split())
    assert "/homes/" not in said
    assert machine.install("--uninstall", "--home", str(directory)).returncode == 0
    assert settings.read_text() == "model: {}\n"


def test_the_tools_of_cline_go_into_the_data_directory_that_its_user_named(
    bare_machine: Machine, tmp_path: Path
) -> None:
    machine = bare_machine.has_environment().has_program()
    usual = machine.home / ".cline"
    usual.mkdir()
    data_dir, named = tmp_path / "data", tmp_path / "servers.json"
    for variables, path in (
        ({"CLINE_DATA_DIR": str(data_dir)}, data_dir / "settings/cline_mcp_settings.json"),
        ({"CLINE_MCP_SETTINGS_PATH": str(named)}, named),
    ):
        done = machine.install("--home", str(usual), **variables)
        assert (done.returncode, done.stderr) == (0, "")
        assert "session-memory" in path.read_text()
        assert not (usual / "data").exists()
        assert machine.install("--uninstall").returncode == 0
        assert not path.exists()
        machine.has_environment().has_program()


@pytest.mark.parametrize("has_state_dir", [False, True])
def test_the_settings_of_openclaw_are_the_file_that_its_user_named(
    bare_machine: Machine, tmp_path: Path, has_state_dir: bool
) -> None:
    """Without a directory of its own, OpenClaw looks for plugins beside the settings."""
    machine = bare_machine.has_environment().has_program()
    named, state = tmp_path / "claw" / "mine.json5", machine.home / ".openclaw"
    named.parent.mkdir()
    named.write_text("{ // mine\n}\n")
    state.mkdir()
    variables = {"OPENCLAW_CONFIG_PATH": str(named)}
    variables |= {"OPENCLAW_STATE_DIR": str(state)} if has_state_dir else {}
    done = machine.install(**variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"allowConversationAccess": true' in named.read_text()
    plugins = state if has_state_dir else named.parent
    assert (plugins / "extensions/session-memory/index.js").exists()
    assert not (state / "openclaw.json").exists()
    named.write_text(named.read_text().replace('"enabled": true', '"enabled": false'))
    said = machine.run_doctor("hooks", **variables).stdout
    assert "plugins.entries.session-memory.enabled is not true" in said
    named.write_text(named.read_text().replace('"enabled": false', '"enabled": true'))
    said = " ".join(machine.run_doctor("hooks").stdout.split())  # the install has noted the file
    assert f"served by session-memory mcp, in {named}" in said
    assert "wrong" not in said
    assert machine.install("--uninstall", **variables).returncode == 0
    assert named.read_text() == "{ // mine\n}\n"
    assert not (plugins / "extensions").exists()


def test_the_sessions_of_cline_are_below_the_directory_that_its_user_named() -> None:
    cline = runtime("cline")
    assert cline.config_dir({"HOME": "/home/anna", "CLINE_DIR": "/srv/cline/"}) == "/srv/cline/data"
    both = {"HOME": "/home/anna", "CLINE_DIR": "/srv/cline", "CLINE_DATA_DIR": "/srv/data"}
    assert cline.config_dir(both) == "/srv/data"
    assert cline.config_dir({"HOME": "/home/anna"}) == "/home/anna/.cline/data"


@pytest.mark.parametrize("character", [" ", "%20", "#", "?", "'", "é"])
@pytest.mark.parametrize("name", ["cline", "kilo", "omp", "openclaw", "opencode", "pi"])
def test_an_extension_loads_ours_from_a_directory_of_any_name(name: str, character: str) -> None:
    app = f"/home/a{character}b/app"
    files = runtime(name).install.wanted_files('{"hooks": {}}', "python3", app)
    [text] = [text for path, text in files.items() if path.endswith((".js", ".ts"))]
    module = json.loads(text.rpartition(" from ")[2].rstrip(";\n"))
    url = urlsplit(urljoin("file:///home/me/extension.js", module))  # as Node resolves it
    assert (url.query, url.fragment) == ("", "")
    assert unquote(url.path).startswith(f"{app}/hooks/")


def test_the_install_names_openclaw_s_plugin_once_and_the_next_step(bare_machine: Machine) -> None:
    machine = bare_machine.has_environment().has_program()
    (machine.home / ".openclaw").mkdir()
    said = " ".join(machine.install().stdout.split())
    assert "~/.openclaw: extension session-memory; tools" in said
    assert "restart a running gateway" in said
