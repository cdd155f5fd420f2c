"""The install into Qwen Code: its hooks and skills, and the commands that its user types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ....common.system.files import user_dir
from ..install import Hook, SettingsHooks


class QwenCodeInstall(SettingsHooks):
    """Hooks in settings.json; of the hooks for tools, only the one for failed calls."""

    HOME_FOLDER = ".qwen"
    HOOKS_ARE_OFF = "disableAllHooks"
    MANAGED_SETTINGS = {
        "darwin": "/Library/Application Support/QwenCode/settings.json",
        "linux": "/etc/qwen-code/settings.json",
    }
    MCP_FILES, MCP_KEY = ("settings.json",), "mcpServers"
    HAS_COMMENTS = True
    HAS_BOM = True
    COMMAND = "qwen"
    STATUS_LINE = ("ui", "statusLine")
    RESUME = "qwen --resume {id}"
    START = "qwen -i {prompt}"

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return `~/.qwen`; `$QWEN_RUNTIME_DIR` moves only the chats."""
        return f"{user_dir(environ)}/{self.runtime.USUAL_DIR}"

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        return [plugin] if os.path.isdir(f"{settings_dir}/extensions/{plugin}") else []

    def adapted(self, hook: Hook) -> Hook | None:
        if hook.event == self.runtime.FAILED_EVENT:
            return Hook(hook.event, "|".join(self.runtime.FAILING_TOOLS), hook.entry)
        return hook if hook.event != self.runtime.TOOL_EVENT and self.answers(hook.event) else None

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        return {
            **event,
            "permission_mode": "default",
            "prompt_id": str(uuid4()),
            "submitted_prompt": prompt,
        }
