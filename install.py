"""Installs session-memory: `python3 install.py`, with any bare Python from 3.10 on; this file itself runs on 3.6."""

import sys
from pathlib import Path


def main() -> int:
    if sys.version_info < (3, 10):  # noqa: UP036
        return _complain()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from session_memory.install.command import main as run

    return run(sys.argv[0], sys.argv[1:])


def _complain() -> int:
    """Says that this Python is too old, and which other would do."""
    from shutil import which

    version = ".".join(str(part) for part in sys.version_info[:3])
    newer = [name for name in (f"python3.{minor}" for minor in range(20, 9, -1)) if which(name)]
    print(f"session-memory needs Python 3.10 or newer; this is {version} ({sys.executable}).", file=sys.stderr)
    hint = f"try: {newer[0]} install.py" if newer else "install a newer one and run this with it"
    print("  " + hint, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
