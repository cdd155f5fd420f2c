"""The runtimes whose sessions are remembered: one line in the table, and one folder with four modules each.

`records` says what a line of a transcript means, `files` which sessions there are and where their transcripts lie,
`hooks` what an event of the runtime says and how it is answered, `install` what goes where in its settings.
"""

from __future__ import annotations

from ..system.files import is_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .claude import files as claude_files
    from .claude import hooks as claude_hooks
    from .claude import install as claude_install
    from .claude import records as claude_records
    from .codex import files as codex_files
    from .codex import hooks as codex_hooks
    from .codex import install as codex_install
    from .codex import records as codex_records
    from .contract import RuntimeFiles, RuntimeHooks, RuntimeInstall, RuntimeRecords
    from .copilot import files as copilot_files
    from .copilot import hooks as copilot_hooks
    from .copilot import install as copilot_install
    from .copilot import records as copilot_records
    from .gemini import files as gemini_files
    from .gemini import hooks as gemini_hooks
    from .gemini import install as gemini_install
    from .gemini import records as gemini_records
    from .opencode import files as opencode_files
    from .opencode import hooks as opencode_hooks
    from .opencode import install as opencode_install
    from .opencode import records as opencode_records
    from .pi import files as pi_files
    from .pi import hooks as pi_hooks
    from .pi import install as pi_install
    from .pi import records as pi_records
    from .qwen import files as qwen_files
    from .qwen import hooks as qwen_hooks
    from .qwen import install as qwen_install
    from .qwen import records as qwen_records


class Runtime:
    """One runtime: `name` is what archives and the store call it, and each module of its folder is a part of it.

    Its own directory is `usual_dir` in a user's home, or what the variable `dir_variable` names. A part is loaded when
    it is first asked for: a prompt that finds nothing new needs no RECORDS, and never INSTALL.
    """

    if TYPE_CHECKING:
        RECORDS: RuntimeRecords
        FILES: RuntimeFiles
        HOOKS: RuntimeHooks
        INSTALL: RuntimeInstall
    else:

        def __getattr__(self, part):
            if part not in ("RECORDS", "FILES", "HOOKS", "INSTALL"):
                raise AttributeError(part)
            module = __import__(f"{__name__}.{self._folder}.{part.lower()}", fromlist=["*"])
            setattr(self, part, module)
            return module

    def __init__(self, name: str, folder: str, usual_dir: str, dir_variable: str) -> None:
        self.name = name
        self._folder = folder
        self._usual_dir = usual_dir
        self._dir_variable = dir_variable

    def may_be_here(self, environ: Mapping[str, str]) -> bool:
        """Whether the runtime may have been used by whose environment this is, without loading any part of it."""
        return self._dir_variable in environ or is_directory(f"{environ.get('HOME', '')}/{self._usual_dir}")


_TABLE = {
    "agent-sdk": Runtime("claude-code", "claude", ".claude", "CLAUDE_CONFIG_DIR"),
    "pi": Runtime("pi", "pi", ".pi", "PI_CODING_AGENT_DIR"),
    "codex": Runtime("codex", "codex", ".codex", "CODEX_HOME"),
    "qwen": Runtime("qwen-code", "qwen", ".qwen", "QWEN_RUNTIME_DIR"),
    "copilot": Runtime("copilot", "copilot", ".copilot", "COPILOT_HOME"),
    "opencode": Runtime("opencode", "opencode", ".local/share/opencode", "XDG_DATA_HOME"),
    "gemini": Runtime("gemini", "gemini", ".gemini", "GEMINI_CLI_HOME"),
}

if TYPE_CHECKING:
    _RECORDS: list[RuntimeRecords] = [
        claude_records,
        pi_records,
        codex_records,
        qwen_records,
        copilot_records,
        opencode_records,
        gemini_records,
    ]
    _FILES: list[RuntimeFiles] = [
        claude_files,
        pi_files,
        codex_files,
        qwen_files,
        copilot_files,
        opencode_files,
        gemini_files,
    ]
    _HOOKS: list[RuntimeHooks] = [
        claude_hooks,
        pi_hooks,
        codex_hooks,
        qwen_hooks,
        copilot_hooks,
        opencode_hooks,
        gemini_hooks,
    ]
    _INSTALL: list[RuntimeInstall] = [
        claude_install,
        pi_install,
        codex_install,
        qwen_install,
        copilot_install,
        opencode_install,
        gemini_install,
    ]


def runtime(format: str) -> Runtime:
    """The runtime of a transcript format: `agent-sdk` (Claude Code and claude-agent-sdk), `pi`, `codex`,
    `qwen`, `copilot`, `opencode`, `gemini`. Raises ValueError."""
    try:
        return _TABLE[format]
    except KeyError:
        raise ValueError(f"unknown transcript format {format!r}: it is one of {', '.join(_TABLE)}") from None


def sender_of(event: Mapping[str, Any], environ: Mapping[str, str], expected: Runtime) -> Runtime | None:
    """The runtime that sent an event to a hook of the runtime `expected`: this one, or another that takes its plugins
    or runs the hooks in its settings. None where none is known to have, or the event is not to be answered."""
    if "cursor_version" in event or "conversation_id" in event:  # Cursor, of which too little is known to answer it
        return None
    if expected.HOOKS.is_own(event, environ):
        return expected
    return next((other for other in all_runtimes() if other.HOOKS.is_own(event, environ)), None)


def all_runtimes() -> list[Runtime]:
    """Every runtime of the table."""
    return list(_TABLE.values())
