"""The core part of the hook contract (docs/inside/hook-contract.md), on a copy without the rest:
without `history`, `memory`, `app`, `extras` and their rows in `extension_points`."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from copied_program import copy_parts, failures_in
from hooks_scene import ROOT, run
from records import append, assistant, exchange
from tool_call_scene import Project

CORE = {"awareness", "common", "sessions"}
# Tests of the core's behaviour that also run in the copy: of collisions, prompts, edits, commands,
# faults and delivery. Those of deadlines always run there.
TESTS = (
    "activity/test_collisions.py",
    "activity/test_collision_rules.py",
    "activity/test_shared_git.py",
    "activity/test_moved_branches.py",
    "activity/test_call_collisions.py",
    "activity/test_scripted_writes.py",
    "activity/test_collision_privacy.py",
    "activity/test_acknowledgement.py",
    "events/test_hook_faults.py",
    "events/test_hook.py",
    "events/test_tool_hook.py",
    "events/test_held_calls.py",
)


class WithoutRows(ast.NodeTransformer):
    """Deletes the rows of the packages that are not of the core."""

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        pairs = [
            (key, self.visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if place_of(value).partition(".")[0] in {"", *CORE}
        ]
        return ast.Dict([key for key, _ in pairs], [value for _, value in pairs])


def place_of(row: ast.expr) -> str:
    """Return the place in a row; '' for a table of rows."""
    first = row.elts[0] if isinstance(row, ast.Tuple) else row
    return str(first.value) if isinstance(first, ast.Constant) else ""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy."""
    root = tmp_path_factory.mktemp("core") / "app"
    root.mkdir()
    copy_parts(("session_memory", "hooks"), root)
    package = root / "session_memory"
    for folder in package.iterdir():
        if folder.is_dir() and folder.name not in CORE:
            shutil.rmtree(folder)
    table = package / "extension_points.py"
    tree = WithoutRows().visit(ast.parse(table.read_text()))
    table.write_text(ast.unparse(ast.fix_missing_locations(tree)))
    rows = table.read_text()
    assert "sessions.runtimes.claude:RUNTIME" in rows
    assert not [name for name in ("history.", "memory.", "app.", "extras.") if f"'{name}" in rows]
    return root


class Bare:
    """A project whose hooks run from the copy."""

    def __init__(self, root: Path, core: Path) -> None:
        self.project, self.core = Project(root), core
        self.user = self.project.user

    def hook(self, script: str, **fields: object) -> str:
        """Return what a hook prints; it must end well and quietly."""
        event = self.user.event(cwd=self.project.cwd, **fields)
        environ = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
        output: bytes = run(event, self.user.root, script, program=self.core, **environ)
        return output.decode()

    def call(self, tool: str, **given: object) -> str:
        """Return what the hook prints before a tool call."""
        return self.hook(
            "pre_tool_use",
            hook_event_name="PreToolUse",
            tool_name=tool,
            tool_use_id="toolu_9",
            tool_input=given,
        )


@pytest.fixture
def bare(tmp_path: Path, core: Path) -> Bare:
    return Bare(tmp_path, core)


def test_a_prompt_hears_once_what_another_session_did(bare: Bare) -> None:
    append(bare.project.other, *exchange("is the export done?", "It is."))
    assert "is the export done?" in bare.hook("user_prompt_submit")
    assert bare.hook("user_prompt_submit") == ""
    assert bare.user.log() == []


def test_what_did_not_arrive_is_told_again(bare: Bare) -> None:
    append(bare.project.other, *exchange("is the export done?", "It is."))
    told = bare.hook("user_prompt_submit")
    lines = bare.project.own.read_text().splitlines()
    bare.project.own.write_text("".join(f"{line}\n" for line in lines if "hook_" not in line))
    assert json.loads(bare.hook("user_prompt_submit")) == json.loads(told)


def test_an_edit_of_a_file_that_another_session_edited_is_a_collision(bare: Bare) -> None:
    bare.project.edited()
    path = str(bare.project.directory / "app")
    assert '! app: edited just now by \\"discord\\"' in bare.call("Edit", file_path=path)


def test_the_user_is_asked_before_a_command_that_loses_work(bare: Bare) -> None:
    bare.user.config("collisions: ask\n")
    bare.project.edited()
    answer = json.loads(bare.call("Bash", command="git reset --hard"))["hookSpecificOutput"]
    assert answer["permissionDecision"] == "ask"
    assert "discord" in answer["permissionDecisionReason"]


def test_a_sub_agent_hears_of_a_collision_over_its_task(bare: Bare) -> None:
    bare.project.edited()
    task = f"tidy up {bare.project.directory / 'app'}"
    call = {"prompt": task, "description": "x", "subagent_type": "general-purpose"}
    append(bare.project.own, assistant(("Agent", call), cwd=bare.project.cwd))
    told = bare.hook(
        "subagent_start",
        hook_event_name="SubagentStart",
        agent_id="a1",
        agent_type="general-purpose",
        prompt_id="p1",
    )
    assert "! app: edited just now" in told


def test_a_fault_prints_nothing_and_is_a_line_in_the_log(bare: Bare) -> None:
    output = run(b"[", bare.user.root, program=bare.core)
    assert output == b""
    assert len(bare.user.log()) == 1


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        ("pre_compact", {"hook_event_name": "PreCompact", "trigger": "auto"}),
        ("session_end", {"hook_event_name": "SessionEnd", "reason": "clear"}),
        ("session_start", {"hook_event_name": "SessionStart", "source": "compact"}),
        ("session_start", {"hook_event_name": "SessionStart", "source": "startup"}),
    ],
)
def test_the_end_and_the_start_of_a_conversation_print_nothing(
    bare: Bare, script: str, fields: dict[str, object]
) -> None:
    bare.user.config("recent_conversations: 3\n")
    assert bare.hook(script, **fields) == ""
    assert bare.user.log() == []


def test_an_index_of_memories_that_was_left_behind_does_no_harm(bare: Bare) -> None:
    memories = bare.user.place / "memories"
    memories.mkdir(parents=True)
    (memories / ".prompt-index").write_bytes(b"left behind")
    append(bare.project.other, *exchange("is the export done?", "It is."))
    assert "is the export done?" in bare.hook("user_prompt_submit")
    assert bare.user.log() == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("file", TESTS)
def test_tests_of_the_core_pass_without_the_other_packages(core: Path, file: str) -> None:
    assert failures_in(core, f"tests/awareness/{file}") == ""


def test_a_test_of_another_package_would_fail_there(core: Path) -> None:
    failures = failures_in(core, "tests/history/store/test_queue_file.py")
    assert "No module named 'session_memory.history'" in failures


def test_a_prompt_ends_at_its_deadline_with_what_is_ready(core: Path) -> None:
    words = ("tests/awareness/events/test_deadline.py", "-k", "TestAPrompt and waits")
    assert failures_in(core, *words) == ""


SETTINGS = """{
    "model": "opus",  "hooks": {"Stop": [ {"hooks": [{"type": "command", "command": "mine.sh"}]} ]}
}
"""


class Installed:
    """Settings of Claude Code into which the copy installs its hooks."""

    def __init__(self, bare: Bare) -> None:
        self.bare = bare
        self.settings = bare.user.config_dir / "settings.json"
        self.settings.write_text(SETTINGS)

    def install(self, *options: str) -> None:
        """Install, or with `--remove` uninstall, in a process of the copy."""
        program = Path(__file__).with_name("core_install.py")
        words = [sys.executable, program, self.bare.core, self.settings, *options]
        environ = {"HOME": str(self.bare.user.root), "PYTHONPATH": str(self.bare.core)}
        subprocess.run(words, env=environ, check=True, timeout=60)

    def hooks(self, event: str) -> list[str]:
        groups = json.loads(self.settings.read_text())["hooks"].get(event, [])
        return [entry["command"] for group in groups for entry in group["hooks"]]

    def prompt(self) -> str:
        """Return what the installed hook prints at a prompt, run as the runtime runs it."""
        [command] = self.hooks("UserPromptSubmit")
        event = self.bare.user.event(cwd=self.bare.project.cwd)
        environ = {
            "HOME": str(self.bare.user.root),
            "PATH": os.defpath,
            "CLAUDE_CODE_ENTRYPOINT": "cli",
        }
        done = subprocess.run(
            command,
            shell=True,
            env=environ,
            input=json.dumps(event),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def test_the_hooks_of_a_runtime_are_installed_and_run(bare: Bare) -> None:
    installed = Installed(bare)
    installed.install()
    assert str(bare.core) in installed.hooks("UserPromptSubmit")[0]
    assert installed.hooks("Stop") == ["mine.sh"]
    append(bare.project.other, *exchange("is the export done?", "It is."))
    assert "is the export done?" in installed.prompt()
    before = installed.settings.read_bytes()
    installed.install()
    assert installed.settings.read_bytes() == before


def test_an_uninstall_restores_the_settings_to_the_byte(bare: Bare) -> None:
    installed = Installed(bare)
    installed.install()
    installed.install("--remove")
    assert installed.settings.read_text() == SETTINGS
    ledger = json.loads((bare.core.parent / "installed.json").read_text())
    assert str(bare.user.config_dir) not in ledger["homes"]


def test_an_uninstall_keeps_what_somebody_added_to_the_settings_since(bare: Bare) -> None:
    installed = Installed(bare)
    installed.install()
    text = installed.settings.read_text()
    installed.settings.write_text(text.replace('"opus"', '"sonnet"'))
    installed.install("--remove")
    assert installed.settings.read_text() == SETTINGS.replace('"opus"', '"sonnet"')


def test_readme_states_the_size_of_the_core_at_88_columns(core: Path, tmp_path: Path) -> None:
    package = shutil.copytree(core / "session_memory", tmp_path / "formatted")
    options = ["format", "-q", "--isolated", "--line-length", "88"]
    subprocess.run([sys.executable, "-m", "ruff", *options, str(package)], check=True)
    paths = [path for part in CORE for path in (package / part).rglob("*.py")]
    lines = sum(path.read_text().count("\n") for path in paths)
    text = (ROOT / "README.md").read_text()
    [stated] = re.findall(r"has about ([\d,]+) lines at 88 columns", text)
    assert abs(int(stated.replace(",", "")) - lines) <= 1000, f"it has {lines} by now"
