"""The files of Codex's sessions: rollouts, including compressed and archived ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ....common.system.files import Closing
from ....common.system.zstd import decompressed_file
from ..backup import Backup, FilesOfSession, SessionFile, files_below
from .copies import ARCHIVED, COMPRESSED, SESSIONS

_PARENT = re.compile(rb'"parent_thread_id":"([0-9a-f-]{36})"')


class CompressedRollout(SessionFile):
    """A rollout that is kept as it was before it was compressed."""

    def open(self, confined_to: str = "") -> int:
        with Closing(super().open(confined_to)) as descriptor:
            return decompressed_file(descriptor)


class CodexBackup(Backup):
    """Rollouts, kept at the path from before archiving, where Codex resumes them.

    Sub-agents have their own sessions, which name their parent."""

    HAS_SUB_AGENT_SESSIONS = True

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        paths_by_place: dict[str, str] = {}
        for folder in (ARCHIVED, SESSIONS):  # if both have a session, the rollout in use wins
            # if both exist, the uncompressed one wins
            for path in sorted(files_below(f"{config_dir}/{folder}"), reverse=True):
                plain = path.removesuffix(COMPRESSED)
                place = self.runtime.place_of(os.path.basename(plain))
                if place and folder == SESSIONS:
                    place = os.path.relpath(plain, f"{config_dir}/{SESSIONS}")
                if place:
                    paths_by_place[f"{SESSIONS}/{place}"] = path
        for place, path in paths_by_place.items():
            kind = CompressedRollout if path.endswith(COMPRESSED) else SessionFile
            yield FilesOfSession(self.runtime.session_id_of(place), [kind(place, path)])

    def parent_in(self, head: bytes) -> str:
        parent = _PARENT.search(head.partition(b"\n")[0])
        return parent[1].decode() if parent else ""
