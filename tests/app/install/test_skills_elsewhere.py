"""The commands that the skills teach, run by each other runtime's tool after an install for all."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import records
from clients.claude_plugin import wait_until
from clients.everyone import CLIENTS, results_in
from clients.npm import NpmPlace
from clients.others import OtherRuntime
from install_machine import NOBODY_LISTENS, PYTHON, copy_repository, directory_of, prepared_machine
from skills_scene import (
    NAME,
    check_all,
    commands_in,
    link_packages,
    make_archive,
    past,
    skill_texts,
)

from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.table import runtime

# The tool that runs a command, the key of its input, and what lets it do that unasked.
SHELLS = {
    "codex": ("exec_command", "cmd", ("-s", "workspace-write")),
    "copilot": ("bash", "command", ("--allow-all-paths",)),
    "gemini": ("run_shell_command", "command", ("--approval-mode", "yolo")),
    "opencode": ("bash", "command", ()),
    "qwen": ("run_shell_command", "command", ("--approval-mode", "yolo")),
}
# What its user has set, by the file. With `-p` Qwen Code gives the output that has come when a
# command exits, which of one that is over at once may be none (`child.on("exit")` in its
# shellExecutionService); in a terminal it reads all there is. Codex may write below /tmp, where
# homes of tests are: elsewhere it may not write to a home.
SETTINGS = {
    "qwen": ("settings.json", '{"tools": {"shell": {"enableInteractiveShell": true}}}'),
    "codex": (
        "config.toml",
        "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n",
    ),
}
# Where the plugins of a runtime have a skill, in its user's home; those of Copilot CLI are used in
# place.
PLUGINS = {
    "codex": ".codex/plugins/cache/*/*/*/skills/recall",
    "qwen": ".qwen/extensions/session-memory/skills/recall",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELLS)
def test_the_shell_of_a_runtime_runs_what_the_skills_teach(
    tmp_path: Path, npm_place: NpmPlace, name: str
) -> None:
    client = CLIENTS[runtime(name).name]
    with client.model() as model:
        program: OtherRuntime = client.program(tmp_path, npm_place(client.package), model)
        make_past(program)
        machine = prepared_machine(program.home)
        link_packages(machine.program_dir / "env")
        runtime_dir = program.home / runtime(name).USUAL_DIR
        make_settings(program, name)
        machine.installed("--runtime", "claude-code", "--runtime", runtime(name).name)
        folder = runtime(name).install.SKILLS_FOLDER
        skills = runtime_dir / folder if folder else program.home / ".agents/skills"
        commands = [one for text in skill_texts(skills) for one in commands_in(text)]
        program.environment["PATH"] = f"{machine.program_dir}/env/bin:{os.defpath}"
        check_all(commands, lambda them: printed(program, name, them))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "copilot", "qwen"])
def test_the_shell_of_a_runtime_runs_what_the_skills_of_its_plugin_teach(
    tmp_path: Path, npm_place: NpmPlace, name: str
) -> None:
    client = CLIENTS[runtime(name).name]
    with client.model() as model:
        program = client.program(tmp_path, npm_place(client.package), model)
        make_past(program)
        paths = directory_of(tmp_path / "bin", {"python3": PYTHON})
        program.environment |= {
            "PATH": f"{paths}:{os.defpath}",
            "PIP_INDEX_URL": NOBODY_LISTENS,
            "PIP_RETRIES": "0",
        }
        make_settings(program, name)
        source = copy_repository(tmp_path / "copy")
        program.add_plugin(source)
        program.say("hello")
        data_dir = program.home / ".session-memory" / "plugin"
        wait_until(
            lambda: bool(note_in(data_dir).get("problem")), "end of the set-up in the background"
        )
        link_packages(data_dir / "env")
        # as upkeep does in a minute
        ingest = [str(paths / "python3"), str(source / "scripts" / "memory.py"), "ingest"]
        subprocess.run(
            ingest, env=program.environment, cwd=program.project, capture_output=True, check=True
        )
        [skill] = (
            source.glob("skills/recall") if name == "copilot" else program.home.glob(PLUGINS[name])
        )
        # As the skills say, which stand in the plugin's directory.
        texts = [
            text.replace("${CLAUDE_PLUGIN_ROOT}", str(skill.parents[1]))
            for text in skill_texts(skill.parent)
        ]
        assert all(
            "names `CLAUDE_PLUGIN_ROOT`, write the directory two above" in text for text in texts
        )
        check_all(
            [one for text in texts for one in commands_in(text)],
            lambda them: printed(program, name, them),
        )


def make_settings(program: OtherRuntime, name: str) -> None:
    """The settings of its user."""
    directory = program.home / runtime(name).USUAL_DIR
    directory.mkdir(parents=True, exist_ok=True)
    if name in SETTINGS:
        file, text = SETTINGS[name]
        (directory / file).write_text(text)


def make_past(program: OtherRuntime) -> None:
    """A session of Claude Code in the project, archived."""
    cwd = str(program.project)
    transcript = (
        program.home / ".claude" / "projects" / encode_cwd(cwd) / f"{records.new_id()}.jsonl"
    )
    title = {"type": "custom-title", "customTitle": NAME, "sessionId": transcript.stem}
    records.write(transcript, *past(cwd), title)
    make_archive(transcript, program.home / ".session-memory" / "conversations")


def note_in(data_dir: Path) -> dict[str, Any]:
    """What the set-up of a plugin's environment has noted; {} before it has."""
    path = data_dir / "environment.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def printed(program: OtherRuntime, name: str, commands: list[str]) -> list[str]:
    """Return the output that a runtime's shell gives its model for each command, in one turn."""
    tool, key, options = SHELLS[name]
    calls = [{key: command, "description": "look"} for command in commands]
    program.model.reset()
    program.run(*options, "\n".join(f"TOOL {tool} {json.dumps(call)}" for call in calls))
    with program.model.lock:
        found = [results_in(request.body) for request in program.model.requests]
    results = max(found, key=len)
    assert len(results) == len(commands)
    return results
