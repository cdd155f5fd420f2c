"""Installs or removes the hooks of one runtime, in a copy of the core.

The first argument is the copy's root, the second the settings file; `--remove` removes the hooks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from session_memory.awareness.install.ledger import InstallLedger
from session_memory.awareness.install.plan import HookPlan, InstalledPaths
from session_memory.awareness.install.settings_file import SettingsFile
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.program import ProgramPaths


def main(app: Path, settings: Path, *options: str) -> None:
    """Install, or remove."""
    paths = ProgramPaths(app.parent, app.parent / "bin")
    assert paths.app == app
    ledger, install = InstallLedger.read(paths.ledger_file), runtime("agent-sdk").install
    root, is_ours = str(settings.parent), ledger.recogniser()
    plan = HookPlan(root, None)
    if options:
        plan.restore(
            ledger.records[root],
            lambda content: SettingsFile(content, settings, install).without_hooks(is_ours).content,
        )
        plan.make_removal(ledger)
    else:
        hooks = InstalledPaths(app, sys.executable, paths).hooks_for(install)
        plan.put_hooks(settings, hooks, install, is_ours)
        plan.make(ledger)


main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
