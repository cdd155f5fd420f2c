"""The skills in a home: copied with the commands in them made absolute, and never over something that is not ours."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .file_changes import FileChange, checksum, read_if_there
from .homes import Target

_SCRIPT = re.compile(rb'python3 "\$\{CLAUDE_SKILL_DIR\}/\.\./\.\./scripts/([^"]+)"')
_MODE = 0o644


@dataclass
class SkillsPlan:
    """`changes` to files; `files`, the ledger's checksum for each path that is ours by then; `names` of the skills
    that are, or stay, installed; `notes` for the user."""

    changes: list[FileChange] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_skills(
    source: Path, target: Target, python: str, app: Path, known: dict[str, str], *, for_all: bool = False
) -> SkillsPlan:
    """What it takes to have every skill of `source` in the home. `known` is what the ledger says is ours.

    With `for_all` they are also put where several runtimes look, and stay there from then on.
    """
    plan = SkillsPlan()
    shared = target.shared_skills_dir
    is_shared = for_all or any(shared in Path(path).parents for path in known)
    for directory in dict.fromkeys([target.skills_dir, *([shared] if is_shared else [])]):
        for skill in sorted(path for path in (source / "skills").glob("*") if path.is_dir()):
            _plan_skill(plan, skill, directory, target, python, app, known)
    for path_name, sum_then in known.items():
        if path_name not in plan.files:  # of an earlier version
            take_away(plan, Path(path_name), sum_then)
    return plan


def _plan_skill(
    plan: SkillsPlan, skill: Path, directory: Path, target: Target, python: str, app: Path, known: dict[str, str]
) -> None:
    """Adds what it takes to have one skill in `directory`."""
    wanted = {
        directory / file.relative_to(skill.parent): adapted(file.read_bytes(), target, python, app)
        for file in _files(skill)
    }
    if _is_foreign(directory / skill.name, wanted, known):
        plan.notes.append(
            f"{directory / skill.name} is not ours and was left alone: the skill `{skill.name}` is not "
            "installed. Rename that directory and run this again to have it."
        )
        return
    if skill.name not in plan.names:
        plan.names.append(skill.name)
    for path, content in wanted.items():
        replace(plan, path, content, known.get(str(path)))
        plan.files[str(path)] = checksum(content)


def plan_removal(known: dict[str, str]) -> SkillsPlan:
    """What it takes to have none of the files that the ledger says are ours."""
    plan = SkillsPlan()
    for path, sum_then in known.items():
        take_away(plan, Path(path), sum_then)
    return plan


def adapted(content: bytes, target: Target, python: str, app: Path) -> bytes:
    """A skill's file as it stands in a home: a command names the installed script, and an agent's own home."""

    def command(match: re.Match[bytes]) -> bytes:
        words = [python, "-I", "-S", f"{app}/scripts/{os.fsdecode(match.group(1))}"]
        return os.fsencode(shlex.join([*words, *(["--home", target.root] if target.kind == "agent" else [])]))

    return _SCRIPT.sub(command, content)


def _is_foreign(directory: Path, wanted: dict[Path, bytes], known: dict[str, str]) -> bool:
    """Whether something stands there that we neither wrote nor would write just so."""
    if directory.is_symlink():
        return True
    if not os.path.lexists(directory) or any(str(path) in known for path in wanted):
        return False
    return {path: path.read_bytes() for path in _files(directory)} != wanted


def replace(plan: SkillsPlan, path: Path, content: bytes, sum_then: str | None, mode: int = _MODE) -> None:
    """Plans a file of ours with `content`; what it was is set aside where it is not what we wrote (`sum_then`)."""
    current = read_if_there(path)
    if current is not None and current != content and checksum(current) != sum_then:
        _set_aside(plan, path, current)
    plan.changes.append(FileChange(path, current, content, mode))


def take_away(plan: SkillsPlan, path: Path, sum_then: str) -> None:
    """Plans the removal of a file of ours, set aside where it is not what we wrote."""
    current = read_if_there(path)
    if current is not None:
        if checksum(current) != sum_then:
            _set_aside(plan, path, current)
        plan.changes.append(FileChange(path, current, None))


def _set_aside(plan: SkillsPlan, path: Path, current: bytes) -> None:
    """Plans a copy of what the user made of a file."""
    number = 0
    aside = path.with_name(path.name + ".bak")
    while read_if_there(aside) not in (None, current):
        number += 1
        aside = path.with_name(f"{path.name}.bak{number}")
    plan.changes.append(FileChange(aside, read_if_there(aside), current, _MODE))
    plan.notes.append(f"{path} was changed since it was installed: your version is kept as {aside.name}")


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
