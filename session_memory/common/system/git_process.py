"""Starts git for the whole package. A repository's own files cannot name a program to run.

Git reads no settings of the repository or the person. It gets a common directory of ours
(GIT_COMMON_DIR), with the repository's refs and objects, and our settings. That directory has no
hooks, attributes, remotes or programs, whatever a later git may read there. Only `PersonPlace` has
all settings, for questions that run no program.
"""

from __future__ import annotations

from .files import expanded, names_in, os, read_whole, real_path
from .git_directories import GitDirectory, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from subprocess import CompletedProcess

_KILL = 9
SECONDS = 5.0  # for one question; a slower one is not answered
_SWITCHES = ("--no-pager", "--no-replace-objects")
QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NO_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
}
_OF_WORKTREE = ("info/attributes", "info/exclude")  # neither names a program
_LINKED = ("refs", "packed-refs", "reftable", "logs", "shallow")
_USUAL = (
    "\tbare = true\n\tquotePath = false\n\tautocrlf = false\n\tlogAllRefUpdates = true\n"
    "[diff]\n\trenames = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
)
# Extensions of a repository's format (gitformat-repository) that describe its storage, or do not
# matter to a reader.
_FORMATS = ("objectformat", "compatobjectformat", "refstorage", "relativeworktrees")
_OTHER_EXTENSIONS = ("noop", "noop-v1", "preciousobjects", "partialclone", "worktreeconfig")
_LARGEST_SETTINGS = 4 * 1024 * 1024
_NONE: dict[str, str] = {}


class GitUnavailableError(Exception):
    """Git is not there, refuses, fails, or takes too long."""


class GitPlace:
    """A place for git to work in: its first arguments, and the variables to add."""

    def __init__(self, switches: tuple[str, ...], given: Mapping[str, str], kept: str = "") -> None:
        """Take git's variables from `given`, and from this process those that begin with `kept`."""
        self.switches = switches
        self._given = given
        self._kept = kept

    def environment(self) -> dict[str, str]:
        """Return the variables of git's process."""
        kept = {
            name: value
            for name, value in variables().items()
            if not name.startswith("GIT_") or (self._kept and name.startswith(self._kept))
        }
        return {**kept, **QUIET, **self._given}


class PersonPlace(GitPlace):
    """The directory `directory` as the person's own git sees it, with all settings.

    It is for questions that run no program."""

    def __init__(self, directory: str) -> None:
        super().__init__(("-C", directory), {}, "GIT_CONFIG_")


class TrialPlace(GitPlace):
    """A repository of ours with our settings, and the files of `worktree`.

    `more` are further variables for git."""

    def __init__(self, directory: str, worktree: str, more: Mapping[str, str]) -> None:
        home = {
            "GIT_DIR": directory,
            "GIT_WORK_TREE": worktree,
            "HOME": directory,
            "XDG_CONFIG_HOME": directory,
        }
        super().__init__(("-C", worktree, "--literal-pathspecs"), {**_NO_SETTINGS, **home, **more})


class RepositoryPlace(GitPlace):
    """The repository at `git_dir`, with its HEAD and index, until `remove`."""

    def __init__(self, git_dir: str, more: Mapping[str, str] = _NONE, root: str = "") -> None:
        """With `root`, the attributes and ignored files of its worktree apply too.

        Raises GitUnavailableError, OSError."""
        common_dir = common_dir_of(git_dir)
        settings = format_of(common_dir)
        self._common = GitDirectory()
        path = self._common.path
        try:
            descriptor = os.open(f"{path}/config", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, settings_text(settings, _USUAL).encode())
            os.close(descriptor)
            for name in _LINKED:
                os.symlink(f"{common_dir}/{name}", f"{path}/{name}")
            if root:
                os.mkdir(f"{path}/info")
                for name in _OF_WORKTREE:
                    os.symlink(f"{common_dir}/{name}", f"{path}/{name}")
        except OSError:
            self.remove()
            raise
        # not through a link, because git opens some of them only after everything else was read
        objects = f"{common_dir}/objects"
        places = {
            "GIT_COMMON_DIR": path,
            "GIT_OBJECT_DIRECTORY": objects,
            "HOME": path,
            "XDG_CONFIG_HOME": path,
        }
        where = ("-C", root, f"--work-tree={root}") if root else ("--bare",)
        super().__init__((*where, f"--git-dir={git_dir}"), {**_NO_SETTINGS, **places, **more})

    def __enter__(self) -> RepositoryPlace:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the common directory; a git that has already answered may continue."""
        self._common.remove()


def _command(place: GitPlace, arguments: tuple[str, ...]) -> list[str]:
    """Return git's command line, for every caller that starts git.

    Raises GitUnavailableError if git is missing, or if an argument cannot be passed to it."""
    if any(["\0" in argument for argument in arguments]):
        raise GitUnavailableError("git: an argument contains a NUL character")
    return [_program(), *_SWITCHES, *place.switches, *arguments]


def run(
    place: GitPlace, arguments: tuple[str, ...], given: bytes = b"", seconds: float = SECONDS
) -> CompletedProcess[bytes]:
    """Run git for at most `seconds`, and return its exit code and output.

    Raises GitUnavailableError."""
    import subprocess  # too slow for a prompt

    words = _command(place, arguments)
    try:
        return subprocess.run(
            words,
            input=given,
            env=place.environment(),
            cwd="/",
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitUnavailableError(f"git {arguments[0]}: not done within {seconds:.2g} s") from None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise GitUnavailableError(f"git {arguments[0]}: {error}") from error


def start(
    place: GitPlace, arguments: tuple[str, ...], stdin: int, stdout: int, stderr: int = -1
) -> int:
    """Start git for a prompt with these descriptors (-1: none), and return its process id.

    Raises GitUnavailableError, OSError, and on Windows AttributeError."""
    words = _command(place, arguments)
    actions = [
        (os.POSIX_SPAWN_DUP2, descriptor, at)
        if descriptor >= 0
        else (os.POSIX_SPAWN_OPEN, at, "/dev/null", os.O_RDWR, 0)
        for at, descriptor in enumerate((stdin, stdout, stderr))
    ]
    process: int = os.posix_spawn(words[0], words, place.environment(), file_actions=actions)
    return process


class QuickAnswer:
    """The answer of a git process that is started for a prompt, from its stdout or stderr.

    `answers` is the descriptor to read it from. `status` is git's exit status, None while it runs.
    Use it in a `with` block, whose end kills a running git. Raises GitUnavailableError, OSError,
    and on Windows AttributeError."""

    def __init__(
        self, place: GitPlace, arguments: tuple[str, ...], *, is_of_stderr: bool = False
    ) -> None:
        self.status: int | None = None
        self.answers, written = os.pipe()
        try:
            outputs = (-1, written) if is_of_stderr else (written, -1)
            self._process = start(place, arguments, -1, *outputs)
        except BaseException:
            os.close(self.answers)
            raise
        finally:
            os.close(written)

    def __enter__(self) -> QuickAnswer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self._process, _KILL)
            os.waitpid(self._process, 0)
        os.close(self.answers)

    def wait(self) -> int:
        """Wait until git ends, and return its exit status."""
        _, self.status = os.waitpid(self._process, 0)
        return self.status

    def has_ended(self) -> bool:
        """Check, without waiting, if git has ended."""
        if self.status is None:
            ended, status = os.waitpid(self._process, os.WNOHANG)
            self.status = status if ended else None
        return self.status is not None


def refusal_of_git(directory: str) -> str:
    """Return git's words if it refuses to work in a directory, or ''.

    Git checks the owner itself, with the person's and the system's `safe.directory`. This is fast
    enough for a prompt."""
    question = ("rev-parse", "--git-dir")
    try:
        with QuickAnswer(PersonPlace(directory), question, is_of_stderr=True) as git:
            said = b""
            while block := os.read(git.answers, 4096):
                said += block
            if git.wait() == 0:
                return ""
            return said.decode("utf-8", "replace").strip() or "git refuses to work here"
    except (OSError, GitUnavailableError) as error:
        return str(error)
    except AttributeError:  # Windows, which has other owners
        return ""


def common_dir_of(git_dir: str) -> str:
    """Return the directory that a worktree's `git_dir` shares with the other worktrees."""
    try:
        shared = (
            read_whole(f"{git_dir}/commondir", 4096)
            .partition(b"\n")[0]
            .decode("utf-8", "surrogateescape")
            .strip()
        )
    except OSError:
        return git_dir
    return real_path(
        shared if shared.startswith("/") or shared[1:2] == ":" else f"{git_dir}/{shared}"
    )


def is_partial(common_dir: str) -> bool:
    """Check if a repository is a partial clone, which never fetched some of its objects."""
    return any([name.endswith(".promisor") for name in names_in(f"{common_dir}/objects/pack")])


def format_of(common_dir: str) -> dict[str, str]:
    """Return the settings about a repository's storage, by section and key.

    Raises GitUnavailableError for an unknown setting."""
    known = {"core.repositoryformatversion": "0"}
    for key, value in _settings(common_dir):
        section, _, name = key.partition(".")
        if key in ("core.repositoryformatversion", "core.sharedrepository"):
            is_plain = value.isalnum()
        elif section != "extensions" or name in _OTHER_EXTENSIONS:
            continue
        elif name not in _FORMATS:
            if known["core.repositoryformatversion"] == "0":
                continue  # as git does: of this format there were none
            raise GitUnavailableError(
                f"{common_dir}/config: unknown repository extension found: {name}"
            )
        else:
            is_plain = value.isalnum()
        if not is_plain:
            raise GitUnavailableError(f"{common_dir}/config: bad value of {key}")
        known[key] = value
    return known


def settings_text(values: Mapping[str, str], others: str) -> str:
    """Return the text of a settings file: `values` from `format_of`, then `others` in `core`."""
    lines = {"core": "[core]\n", "extensions": "[extensions]\n"}
    for key, value in values.items():
        section, _, name = key.partition(".")
        lines[section] += f"\t{name} = {value}\n"
    return lines["core"] + others + lines["extensions"]


def _settings(common_dir: str) -> list[tuple[str, str]]:
    """Return a repository's settings without a subsection, by their keys in lower case.

    Only `core` and `extensions` are read. As in git, included files do not count for the format."""
    try:
        text = read_whole(f"{common_dir}/config", _LARGEST_SETTINGS).decode("utf-8", "replace")
    except OSError:
        return []
    settings, section = [], ""
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            section, line = head.strip().lower(), line.strip()
        key, is_set, value = line.partition("=")
        if section in ("core", "extensions") and key and key[0] not in "#;":
            value = value.split("#")[0].split(";")[0].strip().strip('"') if is_set else "true"
            settings.append((f"{section}.{key.strip().lower()}", value))
    # The version decides what the extensions mean, wherever it stands.
    return sorted(settings, key=lambda setting: setting[0] != "core.repositoryformatversion")


def _program() -> str:
    """Return the path of git, but never one in the working directory.

    A PATH may name the working directory, which is the repository's. Raises GitUnavailableError."""
    path = variables().get("PATH", "/usr/local/bin:/usr/bin:/bin")
    if os.__name__ == "nt":
        return "git"
    for directory in path.split(":"):
        if directory.startswith("/") and os.access(f"{directory}/git", os.X_OK):
            return f"{directory}/git"
    raise GitUnavailableError("git is not installed, or not in a directory on PATH")


def ask_git(
    git_dir: str,
    *arguments: str,
    given: str = "",
    is_failure_fine: bool = False,
    seconds: float = SECONDS,
    more: Mapping[str, str] = _NONE,
    root: str = "",
) -> str:
    """Run git in the repository at `git_dir` for at most `seconds`, and return its output.

    Raises GitUnavailableError."""
    try:
        with RepositoryPlace(git_dir, more, root) as place:
            done = run(place, arguments, given.encode("utf-8", "surrogateescape"), seconds)
    except OSError as error:
        raise GitUnavailableError(f"git {arguments[0]}: {error}") from error
    if done.returncode and not is_failure_fine:
        raise GitUnavailableError(
            done.stderr.decode("utf-8", "replace").strip() or f"git {arguments[0]}: failed"
        )
    return done.stdout.decode("utf-8", "surrogateescape")


def usual_path(name: str) -> str:
    """Return the path of a file that git reads if the person's settings do not name another."""
    environ = variables()
    return f"{environ.get('XDG_CONFIG_HOME') or expanded('~/.config', environ)}/git/{name}"


def ask_person(directory: str, *arguments: str) -> str:
    """Return git's output in a directory, with the person's, the system's and its own settings.

    Raises GitUnavailableError with git's words."""
    done = run(PersonPlace(directory), arguments)
    if done.returncode:
        raise GitUnavailableError(
            done.stderr.decode("utf-8", "replace").strip() or f"git {arguments[0]}: failed"
        )
    return done.stdout.decode("utf-8", "surrogateescape")
