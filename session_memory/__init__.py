"""session-memory: tells each coding agent what its other sessions did, and remembers all of them.

Three things to know first:

- A `Runtime` (sessions/runtimes/base.py) is a program that runs an agent, such as Claude Code or
  Codex.
- An `Entry` (sessions/transcripts/entries.py) is one record of a session's transcript: a message or
  an action.
- An update tells a session about the others. It has a `Report` for each of them
  (awareness/activity/report.py); awareness/activity/updates.py makes these into the text of `[Session Activity]`.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

NAME = "session-memory"  # of the command
__version__ = "0.5.0"


def _of_one_version(package: str) -> str:
    """Return the path of the package with the link `app` resolved.

    An upgrade points that link to another version's directory. With the resolved path, modules
    imported later still come from the version that is already running."""
    root, _, name = package.rpartition("/")
    try:
        from posix import readlink

        target = readlink(root)
    except (ImportError, OSError):
        return package
    return f"{'' if target.startswith('/') else root[: root.rfind('/') + 1]}{target}/{name}"


__path__ = [_of_one_version(path) for path in __path__]


_MOVED = ("archives", "memories", "store", "testing", "text", "tools")  # packages of 0.4


class _FormerNames:
    """Finds modules by their names in 0.4.

    It must run before the search in directories: an update by git may leave an old directory with
    nothing but compiled files, which would count as a package."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Return the spec of a module that moved; None for any other."""
        package, _, module = name.partition(".")
        if package != __name__ or module.partition(".")[0] not in _MOVED:
            return None
        from .former_names import spec_of

        return spec_of(name)


sys.meta_path.insert(1, _FormerNames)
