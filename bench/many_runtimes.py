"""Scenes with sessions of all runtimes that the hook reports."""

from __future__ import annotations

from pathlib import Path

from session_memory.sessions.runtimes.table import runtime

from .corpus import FORMATS, Author, texts_of, write_chat
from .opencode import LONG_AGO_SECONDS, LargeDatabase
from .scenes import MEGABYTE, SEED, Scene
from .sources import Source, generated_for
from .stopwatch import Command

MIRRORED = "opencode", "gemini"
BRING_MIRRORS = """
import sys
sys.path.append(sys.argv[1])
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import environment
for name in sys.argv[2:]:
    one = runtime(name)
    one.refresh(one.config_dir(environment()), True)
"""


class ManyRuntimes(Scene):
    """A scene with sessions of several runtimes in turn, in one project.

    They include Claude Code's."""

    def _add(self, source: Source, number: int, size: int) -> Path | None:
        if not number:
            self._others = {
                name: generated_for(SEED, name, str(self.agent_dir)) for name in FORMATS
            }
            self._texts = texts_of(SEED)
            self.database = self._open_code()
        names = [*FORMATS, *MIRRORED]
        name = names[number % len(names)]
        if name == "agent-sdk":
            return super()._add(source, number, size)
        config_dir = Path(runtime(name).config_dir({"HOME": str(self.root)}))
        if name in FORMATS:
            return self._others[name](config_dir, size, self.ended)
        author = self._author(f"{name}-{number}", size, self.ended)
        if name == "gemini":
            return write_chat(config_dir, author)
        assert self.database is not None
        self.database.add(author)
        return None

    def before_settling(self) -> list[Command]:
        """Bring the mirrors up to date, because a prompt makes none of long sessions."""
        return [self.program("-I", "-S", "-c", BRING_MIRRORS, str(self._app), *MIRRORED)]

    def _open_code(self) -> LargeDatabase:
        data_dir = runtime("opencode").config_dir({"HOME": str(self.root)})
        return LargeDatabase(Path(data_dir), str(self.agent_dir))

    def _author(self, seed: str, size: int, end: float) -> Author:
        author = Author(self._texts, f"{SEED}-{seed}", "alpha", size, end)
        author.cwd = str(self.agent_dir)
        return author


class ManyInDatabase(ManyRuntimes):
    """The same scene, with an OpenCode database of `size` bytes, filled with old sessions."""

    def __init__(self, root: Path, app: Path, source: Source, sizes: list[int], size: int) -> None:
        self._database_size = size
        super().__init__(root, app, source, sizes)

    def before_settling(self) -> list[Command]:
        """Do nothing: the reported sessions are short, and mirrors of old ones take a while."""
        return []

    def _open_code(self) -> LargeDatabase:
        database = super()._open_code()
        author = self._author(
            "old", min(MEGABYTE, self._database_size) // 2, self.ended - LONG_AGO_SECONDS
        )
        database.fill(author, self._database_size)
        return database
