"""`session-memory doctor` names each fault, here made on purpose, with its remedy."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import records
from git_scene import repository
from install_machine import PYTHON, Machine, agent_home, installed_machine, reads_toml

from bench.scratch import remove_tree
from session_memory.app.install import _checks as checks
from session_memory.app.install import _trial as trial
from session_memory.app.install._homes import RUNTIME, Target, identify
from session_memory.app.install._trial import Trial
from session_memory.sessions.runtimes.install import Hook

# The doctor from the repository, for when the installed one is what is broken.
RUN_DOCTOR = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from session_memory.cli import main; "
    "sys.exit(main(['doctor', *sys.argv[1:]]))"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which Claude Code was used, with session-memory installed."""
    monkeypatch.setattr(trial, "_RUNS", 1)
    return installed_machine()


def said_by_doctor(machine: Machine, *words: str) -> str:
    """What `session-memory doctor` prints, on one line."""
    return " ".join(machine.run_doctor(*words).stdout.split())


def edit(machine: Machine, change: Callable[[dict[str, object]], object]) -> None:
    settings = json.loads(machine.settings.read_text())
    change(settings)
    machine.settings.write_text(json.dumps(settings))


def test_a_sound_installation_gets_a_clean_bill(machine: Machine) -> None:
    done = machine.run("session-memory", "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith("All is well.")
    assert "The next prompt of a new session in /srv/shop would get this update:" in done.stdout
    # on however many lines
    assert "starting Python alone takes" in " ".join(done.stdout.split())
    assert not (machine.home / ".session-memory").exists()


def test_the_json_result_lists_the_findings_of_each_home(machine: Machine) -> None:
    done = machine.run("session-memory", "doctor", "--json")
    result = json.loads(done.stdout)
    about = [
        (finding["home"], finding["about"], finding["state"]) for finding in result["findings"]
    ]
    assert result["ok"] is True
    assert (None, "program", "ok") in about
    # of all runtimes for which it is the same: those that show what was told, and OpenClaw
    assert [name for _, name, _ in about].count("delivery") == 2
    # a note says that the hook was slow, as on a busy machine
    assert {(str(machine.claude), "hook", state) for state in ("ok", "note")} & {*about}
    assert (str(machine.claude), "transcripts", "ok") in about


def test_a_hook_that_is_not_in_the_settings(machine: Machine) -> None:
    edit(machine, lambda settings: settings.pop("hooks"))
    code, wrong = machine.doctor()
    assert code == 1
    text, mend = next(iter(wrong.items()))
    assert "UserPromptSubmit is missing, so it never runs" in text
    assert mend == f"session-memory install --home {machine.claude}"
    assert machine.run(*mend.split()).returncode == 0
    assert machine.doctor() == (0, {})


def test_settings_that_cannot_be_parsed(machine: Machine) -> None:
    machine.settings.write_text('{\n  "a" 1\n}')
    code, wrong = machine.doctor()
    assert code == 1
    assert list(wrong) == [f"{machine.settings}:2:7: expecting ':' delimiter"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_hooks_that_are_switched_off(machine: Machine, name: str) -> None:
    if name == "settings.json":
        edit(machine, lambda settings: settings.update(disableAllHooks=True))
    else:
        (machine.claude / name).write_text('{"disableAllHooks": true}')
    code, wrong = machine.doctor()
    assert (code, list(wrong)) == (
        1,
        [f"{machine.claude / name}: disableAllHooks is true, so no hook runs there"],
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "text", "switch"),
    [
        (".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
        (".claude/settings.local.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
        (
            ".gemini/settings.json",
            '{"hooksConfig": {"enabled": false} /* mine */}',
            "hooksConfig.enabled is false",
        ),
        (
            ".gemini/settings.json",
            '{"hooksConfig": {"disabled": ["session-memory"]}}',
            "hooksConfig.disabled has session-memory",
        ),
        (".qwen/settings.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
        (".claude/settings.json", '{"disableAllHooks": false}', ""),
        (".codex/settings.json", '{"disableAllHooks": true}', ""),
        pytest.param(
            ".codex/config.toml",
            "[features]\nhooks = false\n",
            "features.hooks is false",
            marks=reads_toml,
        ),
    ],
)
def test_hooks_that_a_project_switched_off(
    name: str, text: str, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_RUNS", 1)
    machine = installed_machine(".gemini", ".qwen", ".codex")
    project = repository(machine.home / "work" / "shop", src__app="1\n")
    (project / name).parent.mkdir()
    (project / name).write_text(text)
    home = str(machine.home / Path(name).parts[0])
    for place, homes in ((project, []), (project / "src", ["--home", home])):
        done = machine.run_doctor("hooks", "--json", *homes, cwd=place)
        found = [
            one["text"] for one in json.loads(done.stdout)["findings"] if one["about"] == "settings"
        ]
        assert found == ([f"{project / name}: {switch}, so no hook runs there"] if switch else [])
    assert [text for text in machine.doctor("--home", home)[1] if "shop" in text] == []


@pytest.mark.parametrize(
    ("name", "is_off"),
    [
        ("work/shop/.github/copilot/settings.json", True),
        ("work/shop/.github/copilot/settings.local.json", True),
        ("work/shop/.claude/settings.json", True),
        ("work/shop/src/.claude/settings.json", False),
        (".copilot/hooks/session-memory.json", True),
        (".copilot/settings.json", False),  # there it is for the hooks in that file alone
    ],
)
def test_hooks_that_copilot_has_switched_off(name: str, is_off: bool, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home").has_environment().has_program()
    (machine.home / ".copilot").mkdir()
    machine.installed()
    project = repository(machine.home / "work" / "shop", src__app="1\n")
    path = machine.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, "disableAllHooks": True}))
    done = machine.run_doctor("hooks", "--json", cwd=project / "src")
    switches = [
        one["text"] for one in json.loads(done.stdout)["findings"] if one["about"] == "settings"
    ]
    assert switches == (
        [f"{path}: disableAllHooks is true, so no hook runs there"] if is_off else []
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("key", ["disableAllHooks", "allowManagedHooksOnly"])
def test_hooks_that_the_administrator_switched_off(
    machine: Machine, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    managed = tmp_path / "managed-settings.json"
    managed.write_text(json.dumps({key: True}))
    monkeypatch.setattr(
        RUNTIME.install, "MANAGED_SETTINGS", {"linux": str(managed), "darwin": str(managed)}
    )
    findings = checks.check_disabled(identify(str(machine.claude), machine.environ))
    assert [f"{managed}: {key} is true" in finding.text for finding in findings] == [True]


def test_an_interpreter_that_is_gone(machine: Machine) -> None:
    (machine.program_dir / "env" / "bin" / "python").unlink()
    done = machine.run(PYTHON, "-c", RUN_DOCTOR, str(machine.source), "--json")
    wrong = [
        finding["text"]
        for finding in json.loads(done.stdout)["findings"]
        if finding["state"] == "wrong"
    ]
    assert done.returncode == 1
    assert f"{machine.program_dir}/env/bin/python is gone or does not run" in wrong


def test_a_program_that_is_gone(machine: Machine) -> None:
    (machine.program_dir / "app").unlink()
    done = machine.run(PYTHON, "-c", RUN_DOCTOR, str(machine.source), "--json")
    wrong = [
        finding["text"]
        for finding in json.loads(done.stdout)["findings"]
        if finding["state"] == "wrong"
    ]
    assert done.returncode == 1
    assert f"{machine.program_dir}/app is not there" in wrong
    assert f"{machine.program_dir}/app/hooks/user_prompt_submit.py is gone" in wrong


def test_modules_that_are_not_compiled(machine: Machine) -> None:
    machine.has_program(is_own=True)
    shutil.rmtree(
        machine.program_dir / "app" / "session_memory" / "extras" / "page" / "views" / "__pycache__"
    )
    code, wrong = machine.doctor("--home", str(machine.claude), PYTHONDONTWRITEBYTECODE="1")
    assert code == 1
    assert any("modules are not compiled, which slows down every prompt" in text for text in wrong)


def test_a_bundle_of_other_sources_is_noted_and_made_anew_by_the_next_install(
    machine: Machine,
) -> None:
    machine.starts_each_hook = True
    app = machine.has_program(is_own=True).program_dir / "app"
    os.utime(app / "session_memory" / "common" / "errors.py", (1e9, 1e9))
    assert "prompt.bundle is unusable, so prompts take a little longer" in said_by_doctor(
        machine, "hooks"
    )
    machine.install()
    assert "unusable" not in said_by_doctor(machine, "hooks")


def test_a_configuration_that_is_wrong(machine: Machine) -> None:
    config = machine.home / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    config.write_text("scope: everything\n")
    code, wrong = machine.doctor()
    assert code == 1
    assert any(
        text.startswith(f"{config}:1: scope is 'everything', not project or all") for text in wrong
    )


def test_transcripts_that_are_not_found(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.install("--home", str(agent))
    for path in agent.rglob("*.jsonl"):
        path.unlink()
    code, wrong = machine.doctor("--home", str(agent))
    assert code == 1
    text, mend = next(iter(wrong.items()))
    assert text.startswith("none of the 2 named sessions has a transcript in ")
    assert "CLAUDE_CONFIG_DIR" in mend


def test_a_home_that_is_gone(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.install("--home", str(agent))
    remove_tree(agent)
    code, wrong = machine.doctor()
    assert (code, list(wrong)) == (1, [f"{agent}: this directory does not exist"])
    assert (
        machine.run(
            *wrong[f"{agent}: this directory does not exist"].rpartition(": ")[2].split()
        ).returncode
        == 0
    )
    assert machine.doctor() == (0, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")
@pytest.mark.parametrize(
    ("place", "mode", "said"),
    [(".claude", 0o000, "cannot be read"), (".session-memory", 0o500, "is not writable")],
)
def test_a_home_that_may_not_be_used(machine: Machine, place: str, mode: int, said: str) -> None:
    (machine.home / ".session-memory").mkdir()
    (machine.home / place).chmod(mode)
    code, wrong = machine.doctor("--home", str(machine.claude))
    (machine.home / place).chmod(0o700)
    assert (code, any(said in text for text in wrong)) == (1, True)


def test_hooks_start_also_if_claude_code_was_never_used(machine: Machine) -> None:
    (machine.home / ".factory").mkdir()
    machine.installed("--runtime", "droid")
    remove_tree(machine.claude)
    machine.starts_each_hook = True
    _, wrong = machine.doctor("--home", str(machine.home / ".factory"))
    assert wrong == {}


def test_a_state_directory_that_cannot_be_made(machine: Machine) -> None:
    (machine.home / ".session-memory").write_text("in the way")
    code, wrong = machine.doctor()
    assert code == 1
    assert any(".session-memory is not a directory" in text for text in wrong)


def test_a_hook_that_does_not_fire(machine: Machine) -> None:
    path = next(machine.claude.rglob("*.jsonl"))
    records.append(
        path, *records.exchange("anybody there?", "Yes.", at=time.time() + 1, cwd="/srv/shop")
    )
    os.utime(path, (time.time() + 2, time.time() + 2))
    code, wrong = machine.doctor()
    assert code == 1
    text, mend = next(iter(wrong.items()))
    assert "and has not run in the session with prompts since then" in text
    assert "--bare" in mend
    machine.prompt(path.parent, path.stem)
    assert machine.doctor() == (0, {})


def test_a_hook_that_fails(machine: Machine) -> None:
    hook = machine.has_program(is_own=True).program_dir / "app" / "hooks" / "user_prompt_submit.py"
    for code, said in (
        ("raise RuntimeError('broken')", "failed: it exited with 1: RuntimeError: broken"),
        # which would take it for a prompt
        ("print('hello')", "the runtime does not understand the hook's answer"),
    ):
        hook.write_text(f"{code}\n")
        code, wrong = machine.doctor("hooks")
        assert (code, any(said in text for text in wrong)) == (1, True)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            "import sys\ntry:\n    import gone\nexcept Exception:\n    sys.exit(0)\n",
            "it printed nothing",
        ),
        ("raise RuntimeError('broken')\n", "it exited with 1: RuntimeError: broken"),
        (None, "it exited with 2: "),
    ],
)
def test_another_hook_that_does_not_start(
    machine: Machine, content: str | None, fault: str
) -> None:
    """Hooks fail open: a broken one may end with 0."""
    app = machine.has_program(is_own=True).program_dir / "app"
    script = app / "hooks" / "session_end.py"
    script.unlink()
    if content is not None:
        script.write_text(content)
    code, wrong = machine.doctor("hooks")
    assert code == 1
    [text] = [text for text in wrong if "does not start" in text]
    assert text.startswith(f"SessionEnd: does not start: {fault}")
    assert wrong[text] == f"session-memory install --home {machine.claude}"


def test_a_command_of_several_events_is_started_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def broken(_: Target, command: str, environ: Mapping[str, str]) -> str:
        started.append(command)
        return "broken"

    monkeypatch.setattr(checks, "fault_at_start", broken)
    target = identify(str(machine.claude), machine.environ)
    hooks = [Hook(event, None, {"command": "edit.py"}) for event in ("PreToolUse", "PostToolUse")]
    [finding] = checks.check_starts(target, hooks, machine.environ)
    assert started == ["edit.py"]
    assert finding.text == "PreToolUse and PostToolUse: does not start: broken"


def test_a_hook_that_is_slow_is_told_of() -> None:
    finding = checks.check_trial(Trial("main", "text", hook_seconds=0.3, bare_seconds=0.01))
    assert (finding.state, "300 ms" in finding.text, "that is slow" in finding.text) == (
        "note",
        True,
        True,
    )


def test_what_the_hook_had_to_say_last_is_shown(machine: Machine) -> None:
    log = machine.home / ".session-memory" / "state" / "hook.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "".join(f"2026-01-01T00:00:00Z UserPromptSubmit: line {number}\n" for number in range(9))
    )
    said = said_by_doctor(machine, "hooks")
    assert ["line 5" in said, "line 6" in said, "line 8" in said] == [False, True, True]


def test_upkeep_that_fails_each_time_is_wrong_and_once_is_noted(machine: Machine) -> None:
    state = machine.home / ".session-memory/state"
    state.mkdir(parents=True)

    def found(*problems: str) -> tuple[str, str]:
        runs = [
            {"began": time.time() - 60, "ended": time.time(), "problem": problem}
            for problem in problems
        ]
        (state / "upkeep.json").write_text(json.dumps({"archived_until": 0, "runs": runs}))
        finding = checks.check_upkeep(identify(str(machine.claude), machine.environ), time.time())
        return finding.state, finding.text

    assert found("the sky fell", "", "the disk is full") == (
        "note",
        "it failed 1m ago: the disk is full",
    )
    assert found("", "the sky fell", "the sky fell", "the disk is full") == (
        "wrong",
        "its last 3 runs failed, the latest 1m ago: the disk is full",
    )
    assert found("the sky fell", "") == ("ok", "last 1m ago")
    (machine.home / ".session-memory/config.yaml").write_text("upkeep: off\n")
    assert found("the sky fell", "the sky fell", "the sky fell") == ("ok", "off, by config.yaml")


def test_a_machine_without_an_installation(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    machine = Machine(tmp_path / "home")
    done = machine.run(PYTHON, "-c", RUN_DOCTOR, str(machine.source))
    assert done.returncode == 1
    assert "it is not installed into any home" in done.stdout
    assert list(machine.home.iterdir()) == []


def test_a_home_without_prompts_since_is_not_suspected() -> None:
    assert checks.check_firing(0, 0, 60.0) == []
    assert checks.check_firing(2, 1, 60.0) == []


def test_doctor_runs_with_another_python_where_its_interpreter_is_gone(machine: Machine) -> None:
    shutil.rmtree(machine.program_dir / "env")
    done = machine.run(
        "session-memory",
        "doctor",
        PATH=f"{machine.home}/.local/bin:{Path(PYTHON).parent}:/usr/bin:/bin",
    )
    assert done.returncode == 1
    assert "env/bin/python does not run, so no hook runs; this is run with" in done.stderr
    assert "run install.py again" in done.stderr
    assert "is gone or does not run" in " ".join(done.stdout.split())


def test_doctor_says_that_the_program_is_gone(machine: Machine) -> None:
    (machine.program_dir / "app").unlink()
    done = machine.run("session-memory", "doctor")
    assert (done.returncode, done.stdout) == (1, "")
    assert "share/session-memory/app is gone, so no hook and no command works" in done.stderr
    assert "run install.py again" in done.stderr


def test_doctor_says_so_where_no_python_is_left(machine: Machine) -> None:
    shutil.rmtree(machine.program_dir / "env")
    done = machine.run(
        "/bin/sh", str(machine.program_dir / "bin/session-memory"), "doctor", PATH="/nowhere"
    )
    assert done.returncode == 1
    assert "does not run, nor is there a python3 from 3.10 on" in done.stderr


def test_doctor_says_that_a_plugin_is_there_too(machine: Machine) -> None:
    settings = json.loads(machine.settings.read_text())
    machine.settings.write_text(
        json.dumps({**settings, "enabledPlugins": {"session-memory@session-memory": True}})
    )
    assert "the plugin session-memory@session-memory is switched on too" in said_by_doctor(
        machine, "hooks"
    )
