"""The files of Qwen Code's sessions: the chat, and those of its sub-agents with what describes them."""

from __future__ import annotations

from ..backup import Backup, files_below


class QwenCodeBackup(Backup):
    """A session is `chats/<id>.jsonl` and all in `subagents/<id>/` beside the chats. Qwen Code deletes neither: its
    `cleanupPeriodDays` is about `file-history/` and logs."""

    def files_beside(self, path: str) -> list[str]:
        project = path.rpartition("/")[0].rpartition("/")[0]
        return files_below(f"{project}/subagents/{self.runtime.session_id_of(path)}")
