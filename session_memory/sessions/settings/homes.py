"""The paths of everything kept for a person, an agent, or a separate runtime directory.

A *person's* place is `~/.session-memory/` for all runtimes; `SESSION_MEMORY_DIR` moves it. It
contains settings, state, store, memories and archives (`conversations/`). A runtime's directory
that is not the usual one (as `CLAUDE_CONFIG_DIR` names it) has a similar place below that:
`~/.session-memory/homes/<name>-<checksum>/`.

An *agent home* is a directory that the person registered (see registry.py) and whose sessions have
names (`.session-memory/sessions/<name>.json`, for Pi `.session-memory/pi-sessions/<name>/`, or with
`.volute/` or `.mind/` instead). Its settings, state and store are in its `.session-memory/`, its
memories and archives beside that. A host's settings for one of its groups are at the host:
`<host>/.session-memory/groups/<group>.yaml`."""

from __future__ import annotations

from ...common.system.files import (
    is_directory,
    is_file,
    names_in,
    os,
    read_whole,
    real_path,
    status_at,
)
from ...common.system.files import user_dir as user_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from .compiled import Settings

MEMORY_DIR = ".session-memory"
FORGOTTEN = ".forgotten.jsonl"  # appended to a store's path: the file of its forgotten sessions
# Appended likewise: the file with hashes of its forgotten messages
FORGOTTEN_MESSAGES = ".forgotten.messages"
FORGETTING = ".forgetting.json"  # appended to a store's path: the remaining steps of `forget`
STORE_FILE = "store/memory.db"  # below the `memory_dir` of a home, or below a host
SEED_MEMORY_DIRS = (MEMORY_DIR, ".volute", ".mind")

ENV_DIR = "SESSION_MEMORY_DIR"
ENV_SESSION = "SESSION_MEMORY_SESSION"
ENV_HOME = "SESSION_MEMORY_HOME"
ENV_GUARD = "SESSION_MEMORY_GUARD"

_CHECKSUM_PRIME = (1 << 61) - 1
_TOKEN_CHARACTERS = 16
_MOST_ENV_BYTES = 1 << 20


class Home:
    """The paths of one agent, one person or one directory of a runtime.

    `root` is that directory. `memory_dir` contains settings, state and store, `content_dir`
    memories and archives. `sessions_dir` contains an agent's named sessions, and is '' for others.
    `rules_files` are the settings whose rules for sessions count here too. `user_dir` is the
    person's home directory, '' for an agent or host. A home that `is_confined` may not set the keys
    in sections.py. Its settings are compiled in the person's place, because an agent or a
    repository could write such a file in the home."""

    def __init__(
        self,
        root: str,
        memory_dir: str,
        content_dir: str,
        *,
        sessions_dir: str = "",
        rules_files: tuple[str, ...] = (),
        user_dir: str = "",
        is_confined: bool = False,
    ) -> None:
        self.root = root
        self.memory_dir = memory_dir
        self.sessions_dir = sessions_dir
        self.rules_files = rules_files
        self.user_dir = user_dir
        self.is_confined = is_confined
        self.state_dir = memory_dir + "/state"
        self.remote_dir = self.state_dir + "/team"
        self.remote_starts = self.remote_dir + "/starts"
        self.inbox_file = self.state_dir + "/conflicts.json"  # the name in 0.4.2, which had no more
        self.log_file = self.state_dir + "/hook.log"
        self.config_file = memory_dir + "/config.yaml"
        # not 0.2.0's name: that file has other keys
        self.compiled_file = self.state_dir + "/settings.json"
        self.conversations_dir = content_dir + "/conversations"
        self.memories_dir = content_dir + "/memories"

    def cursor_file(self, session: str) -> str:
        """The cursors of one consuming session: a small file that no other session uses."""
        return self.state_dir + "/cursors/" + session + ".json"

    def project_index(self, start: str) -> str:
        """The index of the project of sessions that are started in the directory `start`."""
        return f"{self.state_dir}/projects/{_name_and_checksum(start, may_hold_token=True)}.json"

    def folder_list(self, folder: str) -> str:
        """The list of the recent transcripts in a runtime's `folder`, by whatever path."""
        name = _name_and_checksum(real_path(folder), may_hold_token=True)
        return f"{self.state_dir}/folders/{name}.list"

    def ref_notes(self, common_dir: str) -> str:
        """The file with notes on stashes, branches and worktrees of the repository at
        `common_dir`."""
        return f"{self.state_dir}/git/{_name_and_checksum(common_dir.removesuffix('/.git'))}.json"

    @property
    def shared_root(self) -> str:
        """The directory of several isolated homes that this one is or is part of, '' for none."""
        return host_of(self.root)

    @property
    def is_isolated(self) -> bool:
        """Check if this is one of several homes that must not see each other, as a host's
        groups."""
        return self.shared_root not in ("", self.root)

    @property
    def waiting_file(self) -> str:
        """The file that says which sessions waited for their user when they were last counted."""
        return self.state_dir + "/waiting.json"

    @property
    def repositories_file(self) -> str:
        """The file that says at which path each repository was seen."""
        return self.state_dir + "/repositories.json"

    @property
    def upkeep_lock(self) -> str:
        """The lock file of the upkeep of this home's store, written when upkeep begins."""
        return self.state_dir + "/upkeep.lock"

    @property
    def inbox_lock(self) -> str:
        """The lock file for changes of the inbox."""
        return self.state_dir + "/inbox.lock"

    @property
    def conflicts_lock(self) -> str:
        """The lock file of a search for conflicts that a prompt started, written when the search
        begins."""
        return self.state_dir + "/conflicts.lock"

    @property
    def path(self) -> str:
        """The path by which `store.location.find_location` finds this home's store."""
        return self.memory_dir if self.user_dir and not self.rules_files else self.root

    def remote_start(self, start: str) -> str:
        """The file that names the place of a team's activity in a project.

        It is the project of sessions that start in `start`."""
        return f"{self.remote_starts}/{_name_and_checksum(start, may_hold_token=True)}"

    def forgotten_files(self) -> list[tuple[str, str]]:
        """Return the files, existing or not, with forgotten sessions that count here.

        Each comes with its sessions' group, '' for none. They belong to this home's store, or its
        host's, and to the person's store."""
        host, is_group, name = self.config_file.removesuffix(".yaml").partition(
            f"/{MEMORY_DIR}/groups/"
        )
        places = [(host, name) if is_group else (self.memory_dir, "")]
        places += [(path.rpartition("/")[0], "") for path in self.rules_files[:1]]
        return [(f"{place}/{STORE_FILE}{FORGOTTEN}", group) for place, group in places]

    def has_forgotten(self) -> bool:
        """Check if any of these files exists."""
        return any([is_file(path) for path, _ in self.forgotten_files()])

    def settings(self) -> Settings:
        """Return the settings in config.yaml, all optional, with the rules of `rules_files`."""
        from .compiled import load

        settings = load(self.config_file, self.compiled_file, self.rules_files)
        if settings is None:
            from .check import compile_files

            root = self.root if self.is_confined else ""
            settings = compile_files(self.config_file, self.compiled_file, self.rules_files, root)
        return settings


def private_beside(directory: str) -> str:
    """Return the directory for excluded parts of a directory with archives or memories.

    It is hidden beside that directory, so a search through the directory does not find it."""
    parent, _, name = directory.rpartition("/")
    return parent + "/.private-" + name


def environment() -> dict[str, str]:
    """Return this process's environment without variables that a project's `.env` sets.

    The processes it starts get the same environment."""
    if isinstance(next(iter(os.environ), ""), str):  # Windows
        variables: dict[str, str] = dict(os.environ)  # type: ignore[arg-type]
    else:
        variables = {_decoded(key): _decoded(value) for key, value in os.environ.items()}
    for name in drop_set_by_project(variables):
        os.unsetenv(name)
    return variables


def drop_set_by_project(environ: MutableMapping[str, str]) -> list[str]:
    """Remove variables for a place, home or session that a project's `.env` sets; return them.

    The `.env` file may be in the project or above it. Several runtimes load such a file, and a
    repository can contain one. The person's own file, in their home directory, is trusted."""
    named = [name for name in (ENV_DIR, ENV_HOME, ENV_SESSION) if environ.get(name)]
    if not named:
        return []
    starts = {value for key, value in environ.items() if key.endswith("_PROJECT_DIR")}
    try:
        starts.add(os.getcwd())
    except OSError:  # it is gone
        pass
    texts = [text for start in starts for text in _env_files(start, user_dir(environ))]
    dropped = [name for name in named if any(name.encode() in text for text in texts)]
    for name in dropped:
        del environ[name]
    return dropped


def _env_files(start: str, stop: str) -> Iterator[bytes]:
    """Yield the contents of `.env*` files from `start` upwards, below `stop`.

    Files in hidden directories there count too."""
    directory, stops = start.rstrip("/"), ("", stop, stop and real_path(stop))
    while directory not in stops:
        hidden = [name for name in names_in(directory) if name.startswith(".")]
        for name in hidden:
            path = f"{directory}/{name}" if name.startswith(".env") else f"{directory}/{name}/.env"
            if is_file(path):
                try:
                    yield read_whole(real_path(path), _MOST_ENV_BYTES)
                except OSError:  # too large or unreadable: assume that it names them
                    yield b" ".join([ENV_DIR.encode(), ENV_HOME.encode(), ENV_SESSION.encode()])
        directory = directory.rpartition("/")[0]


def required_user_dir(environ: Mapping[str, str]) -> str:
    """Return `user_dir`. Raises SessionMemoryError if it is unknown."""
    directory = user_dir(environ)
    if not directory:
        from ...common.errors import SessionMemoryError

        raise SessionMemoryError("no home directory is known", "set HOME")
    return directory


def person_home(environ: Mapping[str, str]) -> Home:
    """Return the home of the person with this environment."""
    place, user = _person_dir(environ), user_dir(environ)
    return Home(user, place, place, user_dir=user)


def runtime_home(config_dir: str, usual_dir: str, environ: Mapping[str, str]) -> Home:
    """Return the home of people who start a runtime by hand.

    It is the person's if the runtime's directory `config_dir` is the usual one, `usual_dir` below
    their home directory. Otherwise it is a separate place that shares only the person's rules."""
    place, user = _person_dir(environ), user_dir(environ)
    usual = f"{user}/{usual_dir}"
    config_status, usual_status = status_at(config_dir), status_at(usual)
    if config_dir == usual or (
        config_status
        and usual_status
        and (config_status.st_dev, config_status.st_ino)
        == (usual_status.st_dev, usual_status.st_ino)
    ):
        return Home(config_dir, place, place, user_dir=user)
    directory = f"{place}/homes/{_name_and_checksum(_absolute(config_dir.rstrip('/'), ''))}"
    return Home(
        config_dir,
        directory,
        directory,
        rules_files=(f"{place}/config.yaml",),
        user_dir=user,
    )


def home_at(
    root: str,
    environ: Mapping[str, str],
    *,
    sessions_dir: str = "",
    host: str = "",
    is_host: bool = False,
) -> Home:
    """Return the home in the directory `root` of an agent, a host's group or a host.

    `host` is the directory of the group's host. With `is_host`, the settings are the host
    operator's."""
    place = _person_dir(environ)
    rules_files = [f"{place}/config.yaml"]
    if host:
        rules_files.append(f"{host}/{MEMORY_DIR}/config.yaml")
    home = Home(
        root,
        f"{root}/{MEMORY_DIR}",
        root,
        sessions_dir=sessions_dir,
        rules_files=tuple(rules_files),
        is_confined=not host and not is_host,
    )
    # the group's agent may write in its directory, and could stop its host or omit the host's rules
    # there
    if host:
        name = root.rpartition("/")[2]
        home.config_file = f"{host}/{MEMORY_DIR}/groups/{name}.yaml"
        home.compiled_file = f"{host}/{MEMORY_DIR}/state/groups/{name}.settings.json"
    elif not is_host:
        home.compiled_file = f"{place}/state/homes/{_name_and_checksum(root)}.settings.json"
    return home


def host_of(directory: str) -> str:
    """Return the host at `directory`, or the host of the group there; '' if there is neither."""
    parts = directory.rsplit("/", 2)
    for host in (directory, parts[0] if parts[1:-1] == ["groups"] else ""):
        if host and is_directory(f"{host}/groups") and is_file(f"{host}/store/messages.db"):
            return host
    return ""


def named_home(root: str, environ: Mapping[str, str], folder: str = "sessions") -> Home | None:
    """Return the agent home `root`, named by the person, a hook or the registry; None without
    sessions."""
    for name in SEED_MEMORY_DIRS:
        sessions_dir = f"{root}/{name}/{folder}"
        if is_directory(sessions_dir):
            return home_at(root, environ, sessions_dir=sessions_dir)
    return None


def naming(path: str | None, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return `environ` with `path`, a directory from the command line, as the requested home."""
    return {**environ, ENV_HOME: path} if path else environ


def homes_above(start: str, environ: Mapping[str, str], stop: str, folder: str) -> Iterator[Home]:
    """Yield each directory from `start` upwards, below `stop`, that looks like an agent home.

    It need not be registered."""
    directory = start.rstrip("/")
    stops = ("", stop, stop and real_path(stop))
    while directory not in stops:
        home = named_home(directory, environ, folder)
        if home is not None:
            yield home
        directory = directory.rpartition("/")[0]


def settings_above(start: str, home: Home) -> bool:
    """Return whether an agent home other than `home` has settings or tombstones for `start`."""
    directory = start.rstrip("/")
    while directory and directory not in (home.user_dir, home.root):
        place = f"{directory}/{MEMORY_DIR}"
        if is_directory(place) and (
            is_file(f"{place}/config.yaml") or is_file(f"{place}/{STORE_FILE}{FORGOTTEN}")
        ):
            return True
        directory = directory.rpartition("/")[0]
    return False


def _person_dir(environ: Mapping[str, str]) -> str:
    """Return `SESSION_MEMORY_DIR`, by default `~/.session-memory`, as an absolute path.

    A relative path starts in the user's home directory. Raises SessionMemoryError if there is no
    such directory."""
    path, user = environ.get(ENV_DIR, "").rstrip("/") or MEMORY_DIR, user_dir(environ)
    place = _absolute(path.removeprefix("~/"), user)
    if not user and place != path:
        from ...common.errors import SessionMemoryError

        raise SessionMemoryError(
            "no home directory is known", f"set HOME, or {ENV_DIR} to an absolute path"
        )
    return place


def _absolute(path: str, base: str) -> str:
    """Return a path as an absolute one, below `base` if relative.

    If `base` is '', it is below the current directory."""
    if path.startswith("/") or path[1:2] == ":":
        return path
    try:
        return f"{base or os.getcwd()}/{path}"
    except OSError:  # the current directory is gone
        return path


def _name_and_checksum(path: str, may_hold_token: bool = False) -> str:
    """Return a unique name for the directory `path` that people recognise.

    With `may_hold_token`, words as long as a token are left out."""
    checksum = int.from_bytes(path.encode("utf-8", "surrogateescape"), "little") % _CHECKSUM_PRIME
    name = "".join([c if c.isalnum() or c in "._-" else "-" for c in path.rpartition("/")[2]])
    if may_hold_token:
        name = "-".join([word for word in name.split("-") if len(word) < _TOKEN_CHARACTERS])
    return f"{name.lstrip('.')[:40] or 'home'}-{checksum:016x}"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
