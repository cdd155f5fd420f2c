"""What several runtimes have in common as FILES: sessions that nobody names in an agent home, and transcripts that lie
in a folder for each directory. Their modules take the methods as their functions."""

from __future__ import annotations

from ..system.files import is_file, names_in, path_text
from .entries import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..runtimes.contract import Folders


class UnnamedSessions:
    """The sessions of a runtime that has none in agent homes, notes nothing of its processes, and compresses nothing
    (unless its module has another `copies_dir`)."""

    def copies_dir(self, config_dir: str) -> str:
        """Always '': nothing is compressed."""
        return ""

    def place_of(self, file: str) -> str:
        """Always '': names do not tell in which folder a transcript belongs."""
        return ""

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        """None: an agent home has no sessions of the runtime."""
        return []

    def session_names(self, sessions_dir: str) -> list[str]:
        """None, as above."""
        return []

    def live_session_id(self, config_dir: str, pid: int) -> str:
        """Always '': nothing is noted of processes."""
        return ""

    def live_processes(self, config_dir: str) -> list[tuple[int, str]]:
        """Always empty, as above."""
        return []


class SessionFolders(UnnamedSessions):
    """Transcripts at `<folder><inner>/<session>.jsonl`, with a folder for each directory that sessions are started in.

    `transcripts_dir` names the directory of the folders below a runtime's own, `folder_name` the folder for a
    directory. What lies in one for `/srv/app/lib` has a name that begins as that for `/srv/app`, and a `-`.
    """

    def __init__(
        self, transcripts_dir: Callable[[str], str], folder_name: Callable[[str], str], inner: str = ""
    ) -> None:  # fmt: skip
        self._transcripts_dir = transcripts_dir
        self._folder_name = folder_name
        self._inner = inner

    def project_dir(self, config_dir: str, cwd: str) -> str:
        """The folder for the transcripts of sessions that are started in `cwd`."""
        return f"{self._transcripts_dir(config_dir)}/{self._folder_name(cwd)}{self._inner}"

    def folders_below(self, config_dir: str, directory: str) -> list[str]:
        """The folders whose names begin as that of `directory` does."""
        root, name = self._transcripts_dir(config_dir), self._folder_name(directory)
        names = [one for one in names_in(root) if one == name or one.startswith(f"{name}-")]
        return [f"{root}/{one}{self._inner}" for one in names]

    def listed_dirs(self, config_dir: str) -> list[str]:
        """The directory of the folders."""
        return [self._transcripts_dir(config_dir)]

    def sessions_in(self, folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
        """The sessions whose transcripts lie in `folder`."""
        return [
            Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
            for file in names_in(folder)
            if file.endswith(".jsonl") and not file.startswith(".")
        ]

    def sub_agents(self, path: str) -> list[str]:
        """The transcripts of a session's sub-agents, which lie in `<session>/` beside its own."""
        folder = path.removesuffix(".jsonl")
        return [f"{folder}/{name}" for name in sorted(names_in(folder)) if name.endswith(".jsonl")]

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """The sessions of the project that the own transcript lies in, and in `folders`, or of all."""
        return [] if sessions_dir else self._sessions(config_dir, own_path.rpartition("/")[0], scope, folders)

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
        own_dir = self.transcript_of(config_dir, own_id).rpartition("/")[0] if own_id else ""
        return self._sessions(config_dir, own_dir or self.project_dir(config_dir, directory), scope, folders)

    def transcript_of(self, config_dir: str, session_id: str) -> str:
        """The transcript of a session, wherever that was started; '' where there is none yet."""
        paths = (f"{folder}/{session_id}.jsonl" for folder in self._folders(config_dir))
        return next((path for path in paths if is_file(path)), "")

    def session_id_of(self, path: str) -> str:
        """The id of the session whose transcript lies at `path`."""
        return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))

    def given_name(self, path: str) -> str:
        """Always '': a transcript holds its session's name."""
        return ""

    def _sessions(self, config_dir: str, own_dir: str, scope: str, folders: Folders) -> list[Session]:
        from .projects import sessions_of_project

        return sessions_of_project(own_dir, folders, scope, self._folders(config_dir), self.sessions_in)

    def _folders(self, config_dir: str) -> Iterator[str]:
        """The folders of all projects. What they lie in is listed when the first is asked for."""
        root = self._transcripts_dir(config_dir)
        for name in names_in(root):
            if not name.startswith("."):
                yield f"{root}/{name}{self._inner}"
