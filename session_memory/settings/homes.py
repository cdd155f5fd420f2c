"""Where everything lies: homes, their state, their settings. Only the edges ask; paths go down as arguments.

A home is either an *agent home*, a directory whose sessions have names (`.session-memory/sessions/<name>.json`, for Pi
`.session-memory/pi-sessions/<name>/`, or `.volute/`, `.mind/` in its place), or a *plain home*, the runtime's own
directory of a user who starts it by hand.
"""

from __future__ import annotations

from ..system.files import is_directory, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .compiled import Settings

MEMORY_DIR = ".session-memory"
SEED_MEMORY_DIRS = (MEMORY_DIR, ".volute", ".mind")

ENV_SESSION = "SESSION_MEMORY_SESSION"
ENV_HOME = "SESSION_MEMORY_HOME"
ENV_GUARD = "SESSION_MEMORY_GUARD"


class Home:
    """One agent's directory, `root`; `sessions_dir` holds its named sessions, and is '' for a plain home."""

    def __init__(self, root: str, sessions_dir: str = "") -> None:
        self.root = root
        self.sessions_dir = sessions_dir
        self.memory_dir = root + "/" + MEMORY_DIR
        self.state_dir = self.memory_dir + "/state"
        self.log_file = self.state_dir + "/hook.log"
        self.conversations_dir = root + "/conversations"
        self.config_file = self.memory_dir + "/config.yaml"

    def cursor_file(self, session: str) -> str:
        """The cursors of one consuming session: small, and contended by nobody else."""
        return self.state_dir + "/cursors/" + session + ".json"

    def settings(self) -> Settings:
        """What config.yaml says, every key optional. Raises ConfigError."""
        from .compiled import load

        return load(self.config_file, self.state_dir + "/config.json")


def environment() -> dict[str, str]:
    """The environment of this process: what `os.environ` holds, for those who do without `os`."""
    if isinstance(next(iter(os.environ), ""), str):  # Windows
        return dict(os.environ)  # type: ignore[arg-type]
    return {_decoded(key): _decoded(value) for key, value in os.environ.items()}


def agent_home(start: str, stop: str = "", folder: str = "sessions") -> Home | None:
    """The agent home that `start` is in: the nearest directory upwards, below `stop`, with named sessions.

    `folder` is the one that a runtime names its sessions in.
    """
    directory = start.rstrip("/")
    while directory and directory != stop:
        for name in SEED_MEMORY_DIRS:
            sessions_dir = directory + "/" + name + "/" + folder
            if is_directory(sessions_dir):
                return Home(directory, sessions_dir)
        directory = directory.rpartition("/")[0]
    return None


def claude_config_dir(environ: Mapping[str, str]) -> str:
    """Claude Code's configuration directory: `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    from ..runtimes.claude.files import config_dir

    return config_dir(environ)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
