"""Write a marketplace that contains only the files that the plugin runs, for the branch `plugin`
and for a clone:

python3 .ci/plugin.py DIRECTORY
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ".claude-plugin/package"  # links to what a plugin runs
MARKETPLACE = ".claude-plugin/marketplace.json"
# `python` in hooks/pi: a link to this machine's
DEVELOPMENT = shutil.ignore_patterns("__pycache__", "python")


def main(words: list[str]) -> int:
    if len(words) != 1:
        print("usage: python3 .ci/plugin.py DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(words[0])
    if directory.exists() and any(directory.iterdir()) and not _was_written_here(directory):
        print(f"{directory} contains other files. Name a new or empty directory.", file=sys.stderr)
        return 1
    write_marketplace(ROOT, directory)
    print(f"The marketplace is in {directory.resolve()}")
    return 0


def _was_written_here(directory: Path) -> bool:
    """Return whether `directory` contains a marketplace that this program wrote: that of a clone
    has links."""
    return (directory / MARKETPLACE).is_file() and not (directory / PLUGIN / "hooks").is_symlink()


def write_marketplace(root: Path, directory: Path) -> None:
    """Replace the marketplace in `directory` by that of the repository `root`, with files in the
    place of links."""
    package = directory / PLUGIN
    if package.exists():
        shutil.rmtree(package)
    shutil.copytree(root / PLUGIN, package, ignore=DEVELOPMENT)
    shutil.copy2(root / MARKETPLACE, directory / MARKETPLACE)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
