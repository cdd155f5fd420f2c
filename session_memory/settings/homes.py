"""Where everything of ours lies: what is kept for a person, for an agent, or for a runtime's directory of its own.

A *person's* place is `~/.session-memory/`, whatever the runtimes; `SESSION_MEMORY_DIR` moves it. Settings, state,
store, memories and archives (`conversations/`) all lie in it. A runtime's directory that is not the usual one (as
`CLAUDE_CONFIG_DIR` names it) has a place like it below that: `~/.session-memory/homes/<name>-<checksum>/`.

An *agent home* is a directory whose sessions have names (`.session-memory/sessions/<name>.json`, for Pi
`.session-memory/pi-sessions/<name>/`, or `.volute/`, `.mind/` in its place). Its settings, state and store lie in its
`.session-memory/`, its memories and archives beside that. What a host goes by for one of its groups lies with the host:
`<host>/.session-memory/groups/<group>.yaml`.
"""

from __future__ import annotations

from ..system.files import is_directory, is_file, os, status_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .compiled import Settings

MEMORY_DIR = ".session-memory"
STORE_FILE = "store/memory.db"  # below the `memory_dir` of a home, or below a host
PROMPT_INDEX = ".prompt-index"  # below the `memories_dir` of a home
SEED_MEMORY_DIRS = (MEMORY_DIR, ".volute", ".mind")

ENV_DIR = "SESSION_MEMORY_DIR"
ENV_SESSION = "SESSION_MEMORY_SESSION"
ENV_HOME = "SESSION_MEMORY_HOME"
ENV_GUARD = "SESSION_MEMORY_GUARD"

_CHECKSUM_PRIME = (1 << 61) - 1


class Home:
    """The paths of one agent, one person or one directory of a runtime.

    `root` is the directory that it is of. `memory_dir` holds its settings, state and store, `content_dir` its memories
    and archives. `sessions_dir` holds an agent's named sessions, and is '' for others. `rules_files` are the settings
    whose rules for sessions count here too. `user_dir` is the home directory of the person, '' for an agent or host.
    """

    def __init__(
        self, root: str, memory_dir: str, content_dir: str, *, sessions_dir: str = "",
        rules_files: tuple[str, ...] = (), user_dir: str = "",
    ) -> None:  # fmt: skip
        self.root = root
        self.memory_dir = memory_dir
        self.sessions_dir = sessions_dir
        self.rules_files = rules_files
        self.user_dir = user_dir
        self.state_dir = memory_dir + "/state"
        self.team_dir = self.state_dir + "/team"
        self.team_starts = self.team_dir + "/starts"
        self.log_file = self.state_dir + "/hook.log"
        self.config_file = memory_dir + "/config.yaml"
        self.compiled_file = self.state_dir + "/config.json"
        self.conversations_dir = content_dir + "/conversations"
        self.memories_dir = content_dir + "/memories"

    def cursor_file(self, session: str) -> str:
        """The cursors of one consuming session: small, and contended by nobody else."""
        return self.state_dir + "/cursors/" + session + ".json"

    def project_index(self, start: str) -> str:
        """The index of the project of sessions that are started in the directory `start`."""
        return f"{self.state_dir}/projects/{_name_and_checksum(start)}.json"

    def team_start(self, start: str) -> str:
        """The file that says where is kept what a team did in the project of sessions that are started in `start`."""
        return f"{self.team_starts}/{_name_and_checksum(start)}"

    def settings(self) -> Settings:
        """What config.yaml says, every key optional, with the rules of `rules_files`."""
        from .compiled import load

        settings = load(self.config_file, self.compiled_file, self.rules_files)
        if settings is None:
            from .check import compile_files

            settings = compile_files(self.config_file, self.compiled_file, self.rules_files)
        return settings


def private_beside(directory: str) -> str:
    """Where what rules exclude of a directory with archives or memories lies: hidden beside it, so that whoever looks
    through the directory does not find it."""
    parent, _, name = directory.rpartition("/")
    return parent + "/.private-" + name


def environment() -> dict[str, str]:
    """The environment of this process: what `os.environ` holds, for those who do without `os`."""
    if isinstance(next(iter(os.environ), ""), str):  # Windows
        return dict(os.environ)  # type: ignore[arg-type]
    return {_decoded(key): _decoded(value) for key, value in os.environ.items()}


def user_dir(environ: Mapping[str, str]) -> str:
    """Return the home directory of the person who runs this; '' where neither HOME nor the system knows one, as for
    the made-up user of a container."""
    home = environ.get("HOME")
    if not home:
        from os.path import expanduser

        home = expanduser("~").removeprefix("~")
    return home.rstrip("/")


def person_home(environ: Mapping[str, str]) -> Home:
    """What is kept for the person who runs this."""
    place, user = _person_dir(environ), user_dir(environ)
    return Home(user, place, place, user_dir=user)


def runtime_home(config_dir: str, usual_dir: str, environ: Mapping[str, str]) -> Home:
    """What is kept for those who start a runtime by hand: the person's where its directory `config_dir` is the usual
    one, `usual_dir` below their home directory; else a place of its own, which shares the person's rules alone."""
    place, user = _person_dir(environ), user_dir(environ)
    usual = f"{user}/{usual_dir}"
    if config_dir == usual or _are_same(config_dir, usual):
        return Home(config_dir, place, place, user_dir=user)
    own = f"{place}/homes/{_name_and_checksum(_absolute(config_dir.rstrip('/'), os.getcwd()))}"
    return Home(config_dir, own, own, rules_files=(f"{place}/config.yaml",), user_dir=user)


def home_at(root: str, environ: Mapping[str, str], *, sessions_dir: str = "", host: str = "") -> Home:
    """What is kept in the directory `root` of an agent or a host, or of a group of the host in the directory `host`."""
    rules_files = [f"{_person_dir(environ)}/config.yaml"]
    if host:
        rules_files.append(f"{host}/{MEMORY_DIR}/config.yaml")
    home = Home(root, f"{root}/{MEMORY_DIR}", root, sessions_dir=sessions_dir, rules_files=tuple(rules_files))
    if host:  # a group's agent may write in its directory, and could stop its host or leave out the host's rules there
        name = root.rpartition("/")[2]
        home.config_file = f"{host}/{MEMORY_DIR}/groups/{name}.yaml"
        home.compiled_file = f"{host}/{MEMORY_DIR}/state/groups/{name}.json"
    return home


def host_of(directory: str) -> str:
    """The host that `directory` is, or is a group of; '' if it is neither."""
    parts = directory.rsplit("/", 2)
    for host in (directory, parts[0] if parts[1:-1] == ["groups"] else ""):
        if host and is_directory(f"{host}/groups") and is_file(f"{host}/store/messages.db"):
            return host
    return ""


def agent_home(start: str, environ: Mapping[str, str], *, stop: str = "", folder: str = "sessions") -> Home | None:
    """The agent home that `start` is in: the nearest directory upwards, below `stop`, with named sessions.

    `folder` is the one that a runtime names its sessions in.
    """
    directory = start.rstrip("/")
    while directory and directory != stop:
        for name in SEED_MEMORY_DIRS:
            sessions_dir = directory + "/" + name + "/" + folder
            if is_directory(sessions_dir):
                return home_at(directory, environ, sessions_dir=sessions_dir)
        directory = directory.rpartition("/")[0]
    return None


def settings_above(start: str, home: Home) -> bool:
    """Whether an agent home other than `home` has settings that count for what is started in `start`."""
    directory = start.rstrip("/")
    while directory and directory not in (home.user_dir, home.root):
        if is_file(f"{directory}/{MEMORY_DIR}/config.yaml"):
            return True
        directory = directory.rpartition("/")[0]
    return False


def _person_dir(environ: Mapping[str, str]) -> str:
    """Return `SESSION_MEMORY_DIR`, from the user's home directory on where it is relative; `~/.session-memory` by
    default. Raises SessionMemoryError where there is no such directory."""
    path, user = environ.get(ENV_DIR, "").rstrip("/") or MEMORY_DIR, user_dir(environ)
    place = _absolute(path.removeprefix("~/"), user)
    if not user and place != path:
        from ..errors import SessionMemoryError

        raise SessionMemoryError("no home directory is known", f"set HOME, or {ENV_DIR} to an absolute path")
    return place


def _absolute(path: str, base: str) -> str:
    return path if path.startswith("/") or path[1:2] == ":" else f"{base}/{path}"


def _are_same(path: str, other: str) -> bool:
    """Whether two paths lead to one directory."""
    one, two = status_at(path), status_at(other)
    return one is not None and two is not None and (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)


def _name_and_checksum(path: str) -> str:
    """A name for the directory `path` that no other has, and that people recognise."""
    checksum = int.from_bytes(path.encode("utf-8", "surrogateescape"), "little") % _CHECKSUM_PRIME
    name = "".join([c if c.isalnum() or c in "._-" else "-" for c in path.rpartition("/")[2]])
    return f"{name.lstrip('.')[:40] or 'home'}-{checksum:016x}"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
