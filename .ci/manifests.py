"""Write the repository's address and the version into every file that states them.

The address comes from `Repository` in pyproject.toml, the version from session_memory/__init__.py:

    python3 .ci/manifests.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "qwen-extension.json")
PAGES = ("README.md", "docs/use/packages.md", "pyproject.toml")
ADDRESS = re.compile(r"https://github\.com/[\w.-]+/session-memory\b")
REGISTRY_NAME = re.compile(r"\bio\.github\.[\w.-]+/session-memory\b")


def main() -> int:
    for path, text in written(ROOT).items():
        if text != (ROOT / path).read_text():
            (ROOT / path).write_text(text)
            print(f"{path} is written anew")
    return 0


def written(root: Path) -> dict[str, str]:
    """Return what each file should contain, by its path below `root`."""
    address = repository(root)
    version = declared(root / "session_memory/__init__.py", r'^__version__ = "(.+)"$')
    name = f"io.github.{address.split('/')[-2]}/session-memory"

    def package(manifest: dict[str, Any]) -> None:
        manifest |= {"version": version, "homepage": address, "bugs": f"{address}/issues"}
        manifest["repository"] = {"type": "git", "url": f"git+{address}.git"}

    def plugin(manifest: dict[str, Any]) -> None:
        manifest |= {"version": version, "homepage": address, "repository": address}

    def server(manifest: dict[str, Any]) -> None:
        manifest |= {
            "name": name,
            "version": version,
            "repository": {"url": address, "source": "github"},
        }
        for item in manifest["packages"]:
            item["version"] = version

    texts = {
        "package.json": changed(root / "package.json", package),
        "server.json": changed(root / "server.json", server),
    }
    texts |= {path: changed(root / path, plugin) for path in PLUGINS}
    for path in PAGES:
        texts[path] = REGISTRY_NAME.sub(name, ADDRESS.sub(address, (root / path).read_text()))
    return texts


def repository(root: Path) -> str:
    """Return the address of the repository at GitHub, which ends in /ACCOUNT/session-memory."""
    return declared(
        root / "pyproject.toml", r'^Repository = "(https://github\.com/[\w.-]+/session-memory)"$'
    )


def declared(path: Path, pattern: str) -> str:
    """Return the text that the pattern's group matches in a file. Raises ValueError if it matches
    nowhere."""
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    if not found:
        raise ValueError(f"{path.name} has no line like {pattern}")
    return found[1]


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Return a JSON file with a change, one item a line."""
    manifest = json.loads(path.read_text())
    change(manifest)
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
