"""Syncs the host's skills, `<host>/skills/<name>/`, to every group's `.claude/skills`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...common.errors import SessionMemoryError
from ...common.system.files import is_regular
from ...common.system.json import decode
from ...common.text.paths import is_name
from ...sessions.confined_files import (
    TooLargeError,
    directory_below,
    pinned_descriptor,
    read_inside,
    write_inside,
)
from ...sessions.settings.host_layout import Group, Layout

SKILL = "SKILL.md"
FILE_BYTES = 1024 * 1024
MOST_FILES = 200  # of one skill
# lists the skills from the host; other skills are the group's own
_OURS = ".session-memory.json"


class SkillError(SessionMemoryError):
    """A skill of the host cannot be copied."""


SkillFiles = dict[str, tuple[bytes, bool]]  # by relative path, the content, and if it is executable


def sync_skills(layout: Layout, group: Group) -> None:
    """Copy the host's changed skills and delete its removed ones.

    A group's own skill of the same name stays. Raises SkillError, OSError, OutsideGroupError."""
    known = sorted(os.listdir(layout.skills_dir)) if os.path.isdir(layout.skills_dir) else []
    names = [
        name
        for name in known
        if is_name(name) and os.path.isfile(f"{layout.skills_dir}/{name}/{SKILL}")
    ]
    wanted = {name: _files(Path(layout.skills_dir, name)) for name in names}
    target = f"{group.config_dir}/skills"
    if not wanted and not os.path.lexists(f"{target}/{_OURS}"):
        return
    with directory_below(group.host, target, make=True) as skills:
        ours = _noted(skills)
        there = set(os.listdir(skills))
        wanted_here = {name for name in wanted if name in ours or name not in there}
        if not wanted_here <= ours:
            _note(skills, ours | wanted_here)  # before anything is deleted
        for name in ours - wanted.keys():
            _remove(skills, f"{target}/{name}")
        for name in sorted(wanted_here):
            if _copied(group, f"{target}/{name}") != wanted[name]:
                _remove(skills, f"{target}/{name}")
                _copy(group, f"{target}/{name}", wanted[name])
        if not ours <= wanted_here:
            _note(skills, wanted_here)


def _files(directory: Path) -> SkillFiles:
    """Return the regular files of a skill, without symlinks. Raises SkillError, OSError."""
    files: SkillFiles = {}
    for path in _walk(directory):
        status = path.lstat()
        if status.st_size > FILE_BYTES or len(files) == MOST_FILES:
            hint = f"a skill has at most {MOST_FILES} files of {FILE_BYTES} bytes"
            raise SkillError(f"{path}: too large for a skill", hint)
        files[str(path.relative_to(directory))] = path.read_bytes(), bool(status.st_mode & 0o100)
    return files


def _copied(group: Group, directory: str) -> SkillFiles | None:
    """Return the files of a group's copy of a skill.

    Return None if it has anything except files and directories."""
    files: SkillFiles = {}
    try:
        for path in _walk(Path(directory)):
            with directory_below(group.host, os.path.dirname(path)) as inside:
                content = read_inside(inside, path.name, FILE_BYTES)
            files[str(path.relative_to(directory))] = content, bool(path.lstat().st_mode & 0o100)
    except (TooLargeError, FileNotFoundError, SessionMemoryError):
        return None
    return files


def _walk(directory: Path) -> Iterator[Path]:
    """Yield the regular files below a directory, without following symlinks."""
    for parent, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if is_regular(path.lstat()):
                yield path


def _copy(group: Group, target: str, files: SkillFiles) -> None:
    for name, (content, is_executable) in files.items():
        with directory_below(
            group.host, os.path.dirname(f"{target}/{name}"), make=True
        ) as directory:
            write_inside(directory, os.path.basename(name), content)
            if is_executable:
                os.chmod(os.path.basename(name), 0o700, dir_fd=directory)


def _noted(skills: int) -> set[str]:
    try:
        names = decode(read_inside(skills, _OURS, FILE_BYTES).decode())
    except (OSError, ValueError):
        return set()
    return (
        {name for name in names if isinstance(name, str) and is_name(name)}
        if isinstance(names, list)
        else set()
    )


def _note(skills: int, names: set[str]) -> None:
    write_inside(skills, _OURS, json.dumps(sorted(names)).encode())


def _remove(skills: int, path: str) -> None:
    name = os.path.basename(path)
    try:
        os.unlink(name, dir_fd=skills)
    except FileNotFoundError:
        pass
    except OSError:  # a directory
        shutil.rmtree(f"{pinned_descriptor(skills, os.path.dirname(path))}/{name}")
