"""Copies of the repository to install from, versions of them, and a package index in a directory."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from session_memory.install.environment import GROUPS

REPOSITORY = Path(__file__).resolve().parent.parent
MANIFESTS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json")
NEXT_VERSION = "9.9.9"
NEXT_WORDS = "What a later version says"
_PARTS = (
    ".claude-plugin", ".codex-plugin", ".mcp.json", "hooks", "scripts", "session_memory", "skills", "templates", "install.py",
    "requirements.lock", "pyproject.toml", "LICENSE", "README.md", "package.json",
)  # fmt: skip


def copy_repository(to: Path) -> Path:
    """A copy of what is published, without what development leaves lying around."""
    to.mkdir(parents=True)
    for part in _PARTS:
        source = REPOSITORY / part
        if source.is_dir():
            shutil.copytree(source, to / part, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        elif source.is_file():
            shutil.copy2(source, to / part)
    return to


def make_next_version(copy: Path) -> None:
    """Makes a later version of a copy, which tells the same with other words."""
    for manifest in MANIFESTS:
        (copy / manifest).write_text(json.dumps({**json.loads((copy / manifest).read_text()), "version": NEXT_VERSION}))
    for name, old, new in (
        ("__init__.py", r'__version__ = ".*"', f'__version__ = "{NEXT_VERSION}"'),
        ("hooks/prompt.py", r'INTRODUCTION = ".*"', f'INTRODUCTION = "{NEXT_WORDS}:\\\\n"'),
    ):
        module = copy / "session_memory" / name
        text, count = re.subn(old, new, module.read_text())
        assert count == 1, f"{name} has changed: {old} is not in it"
        module.write_text(text)


def make_index(directory: Path, lock_file: Path) -> Path:
    """Wheels of what the basic environment consists of, made from the modules installed here, in pinned versions."""
    directory.mkdir()
    pins = dict(re.findall(r"^([a-z-]+)==(\S+)", lock_file.read_text(), re.MULTILINE))
    for name in GROUPS["basic"]:
        info = f"{name}-{pins[name]}.dist-info"
        with zipfile.ZipFile(directory / f"{name}-{pins[name]}-py3-none-any.whl", "w") as wheel:
            for file in distribution(name).files or []:
                if ".dist-info" not in str(file) and "__pycache__" not in str(file) and ".." not in file.parts:
                    wheel.write(str(file.locate()), str(file))
            written = wheel.namelist()
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {pins[name]}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            names = [*written, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
            wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in names))
    return directory
