"""The runtimes whose sessions are remembered: one line in the table, and one folder with four modules each.

`records` says what a line of a transcript means, `files` which sessions there are and where their transcripts lie,
`hooks` what an event of the runtime says and how it is answered, `install` what goes where in its settings.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .claude import files as claude_files
    from .claude import hooks as claude_hooks
    from .claude import install as claude_install
    from .claude import records as claude_records
    from .contract import RuntimeFiles, RuntimeHooks, RuntimeInstall, RuntimeRecords
    from .pi import files as pi_files
    from .pi import hooks as pi_hooks
    from .pi import install as pi_install
    from .pi import records as pi_records


class Runtime:
    """One runtime: `name` is what archives and the store call it, and each module of its folder is a part of it.

    A part is loaded when it is first asked for: a prompt that finds nothing new needs no RECORDS, and never INSTALL.
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

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self._folder = folder


_TABLE = {
    "agent-sdk": Runtime("claude-code", "claude"),
    "pi": Runtime("pi", "pi"),
}

if TYPE_CHECKING:
    _RECORDS: list[RuntimeRecords] = [claude_records, pi_records]
    _FILES: list[RuntimeFiles] = [claude_files, pi_files]
    _HOOKS: list[RuntimeHooks] = [claude_hooks, pi_hooks]
    _INSTALL: list[RuntimeInstall] = [claude_install, pi_install]


def runtime(format: str) -> Runtime:
    """The runtime of a transcript format: `agent-sdk` (Claude Code and claude-agent-sdk) or `pi`. Raises ValueError."""
    try:
        return _TABLE[format]
    except KeyError:
        raise ValueError(f"unknown transcript format {format!r}: it is one of {', '.join(_TABLE)}") from None


def all_runtimes() -> list[Runtime]:
    """Every runtime of the table."""
    return list(_TABLE.values())
