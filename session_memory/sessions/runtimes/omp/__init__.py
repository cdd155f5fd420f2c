"""omp, a fork of Pi."""

from __future__ import annotations

from ....common.system.files import real_path, user_dir
from ....common.system.json import as_object, as_string
from ...settings.homes import environment
from ...transcripts.edits import part_id
from ...transcripts.entries import ToolUse, called, in_directory
from ..base import transcripts_in
from ..pi import Pi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..base import Event

_TEMPORARY = ("TMPDIR", "TMP", "TEMP")  # variables with the directory for temporary files


class Omp(Pi):
    """omp: sessions are as Pi's, with a title that is rewritten in place before the header.

    The folder of a directory is named after its path from the user's home, or from the directory
    for temporary files, or else as Pi's. A sub-agent's session is in a folder beside its
    session's."""

    name = "omp"
    TITLE = "omp"
    USUAL_DIR = ".omp/agent"
    SESSIONS_FOLDER = "omp-sessions"
    PROGRAM = "omp"
    PACKAGE = "@oh-my-pi/pi-coding-agent"
    SERVERS = ("acp", "auth-broker", "auth-gateway", "browser", "update", "plugin", "stats")
    OWN_ID_VARIABLE = "OMP_SESSION_ID"  # our extension sets it
    AGENT_VARIABLE = "OMPCODE"
    HAS_DATABASE = True
    PARTS = ("records", "install")

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return omp's directory; a profile has its own below `~/.omp/profiles`."""
        profile = (environ.get("OMP_PROFILE") or "").strip()
        if profile and profile != "default" and "/" not in profile:
            return f"{user_dir(environ)}/.omp/profiles/{profile}/agent"
        return super().config_dir(environ)

    def asks_for_approval(self, words: Sequence[str]) -> bool:
        from ._approval import asks

        return asks(words, self.config_dir(environment()))

    def folder_name(self, directory: str) -> str:
        return self._folder_name(directory, user_dir(environment()))

    def project_dir(self, config_dir: str, cwd: str) -> str:
        name = self._folder_name(cwd, self._home_of(config_dir))
        return f"{self.transcripts_dir(config_dir)}/{name}"

    def is_folder_of(self, folder: str, directory: str) -> bool:
        above, mark, _ = folder.rpartition(f"/{self.TRANSCRIPTS}/")
        return bool(mark) and folder == self.project_dir(above, directory)

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        """Return the folders of these directories and of those inside.

        These are all folders if a directory contains one after which others are named."""
        home = self._home_of(config_dir)
        below = tuple([f"{real_path(directory).rstrip('/')}/" for directory in directories])
        if any([above.startswith(below) for above, _ in self._named_above(home)]):
            return list(self.all_folders(config_dir))
        names = {self._folder_name(directory, home) for directory in directories}
        inside = tuple([self.name_inside(name) for name in names])
        return [
            folder
            for folder in self.all_folders(config_dir)
            if (name := folder.rpartition("/")[2]) in names or name.startswith(inside)
        ]

    def name_inside(self, name: str) -> str:
        return super().name_inside(name) if name.endswith("--") else f"{name.rstrip('-')}-"

    def _folder_name(self, directory: str, home: str) -> str:
        directory = real_path(directory.rstrip("/") or "/")
        for above, prefix in self._named_above(home):
            if directory == above:
                return prefix
            if directory.startswith(f"{above}/"):
                inside = directory[len(above) + 1 :].replace("/", "-").replace(":", "-")
                return f"{prefix.rstrip('-')}-{inside}"
        return super().folder_name(directory)

    def _home_of(self, config_dir: str) -> str:
        """Return the home directory of the user of a directory of omp."""
        home = config_dir.removesuffix(f"/{self.USUAL_DIR}")
        return home if home != config_dir else user_dir(environment())

    @staticmethod
    def _named_above(home: str) -> list[tuple[str, str]]:
        """Return the directories after which folders are named, each with the folders' prefix."""
        environ = environment()
        temporary = next((environ[key] for key in _TEMPORARY if environ.get(key)), "/tmp")
        places = ((home, "-"), (temporary, "-tmp"))
        return [(real_path(place).rstrip("/"), prefix) for place, prefix in places if place]

    def sub_agents_beside(self, path: str) -> list[str]:
        return transcripts_in(self.folder_beside(path))

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory above `sessions/<folder>/` if the session's file is there.

        Otherwise return the usual directory."""
        path = as_string(event.get("transcript_path"))
        above, _, name = path.rpartition("/")[0].rpartition("/")
        if name.startswith("-") and above.endswith(f"/{self.TRANSCRIPTS}"):
            return above[: -len(self.TRANSCRIPTS) - 1]
        return self.config_dir(environ)

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edit or command; for a patch of several files an edit per file."""
        given = as_object(event.get("tool_input"))
        paths = given.get("paths")
        uses = called(event, self.TOOLS)
        if isinstance(paths, list) and uses and uses[0].kind == "edit":
            named = [path for path in paths if isinstance(path, str)]
            return self.edits_of(uses[0], named)
        return tuple([in_directory(use, given.get("cwd")) for use in uses])

    @staticmethod
    def edits_of(use: ToolUse, paths: list[str]) -> tuple[ToolUse, ...]:
        """Return an edit for each file of an edit with several."""
        return tuple(
            [
                ToolUse(use.name, path, use.kind, part_id(use.call_id, at))
                for at, path in enumerate(dict.fromkeys(paths))
            ]
        )


RUNTIME = Omp()
