"""A past to search with the skills, and the expected results of each of their commands."""

from __future__ import annotations

import json
import re
import shlex
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import archives_scene
import records
from clients.claude import Claude
from fakes.loopback import Request

SKILLS = ("recall", "sessions")
Run = Callable[[list[str]], list[str]]
NAME = "discord"
QUESTION, ANSWER = "plan the kyoto flights", "Booked for March."
ERROR = "Error: Cannot find module 'leftpad'"
# What a command has to print, by a part of it, the first that fits.
FOUND = {
    "--team": "has not joined a team",
    "--since": "active",
    "sessions": NAME,
    f"{NAME} --lines 20": ANSWER,
    "read 214": ANSWER,
    "memories search": "No memory matches",
    "search": "kyoto",
    "errors": "leftpad",
    "patterns": "leftpad",
    "why": "src/cart.py:12",
    "grep -ril": ".md",
    "grep -rin": QUESTION,
}
NEEDS_A_STORE = (
    'search "kyoto',
    "read 214",
    "--since",
    "memories search",
    "errors",
    "patterns",
    "why",
)
_PACKAGES = ("apsw", "orjson", "yaml")


def past(cwd: str) -> list[dict[str, Any]]:
    """The records of a session of half an hour ago, with a command that failed."""
    then = {"at": time.time() - 1800, "cwd": cwd}
    call = records.assistant(("Bash", {"command": "node app.js"}), **then)
    block = {
        "type": "tool_result",
        "tool_use_id": call["message"]["content"][0]["id"],
        "is_error": True,
        "content": ERROR,
    }
    return [*records.exchange(QUESTION, ANSWER, **then), call, records.user([block], **then)]


def make_archive(transcript: Path, directory: Path) -> None:
    """Archives the conversation of a transcript, as its end does."""
    directory.mkdir(parents=True, exist_ok=True)
    assert archives_scene.archive(transcript, directory, session=transcript.stem, now=time.time())


def make_past(claude: Claude, cwd: Path | None = None) -> None:
    """The session of a person in the project, archived."""
    cwd = cwd or claude.project
    folder = re.sub("[^A-Za-z0-9]", "-", str(cwd.resolve()))
    transcript = claude.config_dir / "projects" / folder / f"{records.new_id()}.jsonl"
    title = {"type": "custom-title", "customTitle": NAME, "sessionId": transcript.stem}
    records.write(transcript, *past(str(cwd)), title)
    make_archive(transcript, claude.home / ".session-memory/conversations")


def commands_in(skill: str) -> list[str]:
    """Return the commands that a skill teaches: the lines of its code blocks, without examples."""
    lines = [line[4:] for line in skill.splitlines() if line.startswith("    ")]
    return [line for line in lines if not line.startswith(("[", "- "))]


def expected(command: str) -> str:
    """What a command of a skill has to print."""
    return next(
        words
        for part, words in FOUND.items()
        if re.search(rf"(^|\s){re.escape(part)}(\s|$)", command)
    )


def skill_texts(directory: Path) -> list[str]:
    return [(directory / name / "SKILL.md").read_text() for name in SKILLS]


def check_all(commands: list[str], run: Run, *, has_store: bool = True) -> None:
    """Runs every command, the one that shows a hit with what the search has found, and looks at
    what they print. Without a store, of those that need one only the first."""
    assert len({expected(command) for command in commands}) == len(set(FOUND.values()))
    searches = [command for command in commands if not re.search(r"\bread \d", command)]
    if not has_store:
        lacking = [
            command for command in searches if any(f" {part}" in command for part in NEEDS_A_STORE)
        ]
        searches = [command for command in searches if command not in lacking[1:]]
    printed = dict(zip(searches, run(searches)))
    for command, said in printed.items():
        wanted = expected(command) if has_store or command not in lacking else "this needs apsw"
        assert wanted in said, f"{command}\n{said}"
    if has_store:
        (taught,) = (command for command in commands if command not in searches)
        found = next(
            said
            for command, said in printed.items()
            if " search " in command and "memories" not in command
        )
        follow = [line.strip() for line in found.splitlines() if " read " in line]
        assert {_program(line) for line in follow} == {_program(taught)}, found
        assert any(ANSWER in said for said in run(follow))


def _program(command: str) -> str:
    """Return the name of the program that shows a hit.

    A template's skills give its path in the agent's home."""
    return Path(shlex.split(command)[-4]).name


def link_packages(env: Path) -> None:
    """Puts what an install adds from the package index into an environment."""
    (site_packages,) = env.glob("lib/python*/site-packages")
    for name in _PACKAGES:
        (site_packages / name).symlink_to(Path(sysconfig.get_path("purelib"), name))


def shown_by_skills(
    claude: Claude, skills: Iterable[str], *options: str, commands: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Each skill as the model gets it, and what the tool Bash returns for each command in the same turn."""
    bash = [{"name": "Bash", "input": {"command": one}} for one in commands]
    _call(claude, [*bash, *[{"name": "Skill", "input": {"skill": one}} for one in skills]], options)
    request = claude.api.prompts()[-1]
    return request.text.split("Base directory for this skill")[1:], results_in(request)[: len(bash)]


def run_in_claude(claude: Claude, commands: list[str], *options: str) -> list[str]:
    """What the tool Bash of the real Claude Code returns for each command, in one turn of the model."""
    _call(claude, [{"name": "Bash", "input": {"command": one}} for one in commands], options)
    return results_in(claude.api.prompts()[-1])


def _call(claude: Claude, calls: list[dict[str, Any]], options: Iterable[str]) -> None:
    claude.api.reset()
    claude.api.replies = [{"tools": calls}, "done"]
    claude.run("look into the past", *options)


def results_in(request: Request) -> list[str]:
    """What the tools that a conversation has called returned, in the order of the calls."""
    blocks = [block for message in request.messages for block in blocks_of(message)]
    results = {
        block["tool_use_id"]: as_text(block["content"])
        for block in blocks
        if "tool_use_id" in block
    }
    return [results[block["id"]] for block in blocks if block.get("type") == "tool_use"]


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def as_text(content: Any) -> str:
    return (
        content
        if isinstance(content, str)
        else "\n".join(block.get("text", json.dumps(block)) for block in content)
    )
