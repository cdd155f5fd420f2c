"""Which homes there are to install into, and where in each the settings, the skills and the transcripts lie.

Installed are hooks that are entries of a runtime's settings file: those of `RUNTIME`. The other runtimes take the pack
as a package (docs/packages.md) or run an agent that a template made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..runtimes import runtime
from ..settings.homes import SEED_MEMORY_DIRS, Home, agent_home, home_at, runtime_home

if TYPE_CHECKING:
    from ..transcripts.entries import Session

RUNTIME = runtime("agent-sdk")
_FILES, _INSTALL = RUNTIME.FILES, RUNTIME.INSTALL


class NoHomeError(SessionMemoryError):
    """A path that is no home of any kind that we know."""


@dataclass(frozen=True)
class Target:
    """A home to install into.

    `kind` is *agent* (its sessions have names), *runtime* (the runtime's own directory), *project* (one project's
    settings of the runtime) or *template* (made from a template; its agent asks by itself, without hooks in settings).
    `settings_dir` holds its settings and skills, `project` is the directory its sessions run in ('' for any), and
    `config_dir` the runtime's directory that has their transcripts. `home` is where our settings and state for it lie.
    """

    kind: str
    root: str
    settings_dir: str
    project: str
    config_dir: str
    home: Home

    @property
    def settings_file(self) -> Path:
        """The file that the hooks are put in."""
        return Path(self.settings_dir, _INSTALL.SETTINGS_FILE)

    @property
    def skills_dir(self) -> Path:
        """Where the skills are copied to."""
        return Path(self.settings_dir, _INSTALL.SKILLS_FOLDER)

    @property
    def shared_skills_dir(self) -> Path:
        """Where Codex, Qwen Code, Pi and others look for skills too: beside `settings_dir`."""
        return Path(self.settings_dir).parent / ".agents" / "skills"

    @property
    def title(self) -> str:
        """The kind in a few words."""
        return {
            "agent": "agent home",
            "runtime": _INSTALL.TITLE,
            "project": f"{_INSTALL.TITLE}, one project",
            "template": "made from a template",
        }[self.kind]

    @property
    def transcripts_dir(self) -> str:
        """Where the transcripts of its sessions are expected: in it, or, where they run in any project, below it."""
        if self.project:
            return _FILES.project_dir(self.config_dir, self.project)
        return f"{self.config_dir}/{_FILES.PROJECTS_FOLDER}"

    def sessions(self) -> list[Session]:
        """An agent home's named sessions, with or without a transcript; else all that have one."""
        if self.kind == "agent":
            return _FILES.named_sessions(self.home.sessions_dir, self.config_dir, self.project)
        scope = "project" if self.project else "all"
        return _FILES.other_sessions("", self.config_dir, f"{self.transcripts_dir}/", scope)


def identify(path: str, environ: Mapping[str, str]) -> Target:
    """The home that `path` is, or that has its settings in `path`. Raises NoHomeError."""
    root = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(root):
        raise NoHomeError(f"{path}: there is no such directory", "give the path of one that is there")
    if not os.access(root, os.R_OK | os.X_OK):
        raise NoHomeError(f"{path}: it cannot be read", "see who owns it: ls -ld shows that")
    folder = _INSTALL.HOME_FOLDER
    is_settings_dir = os.path.basename(root) == folder
    if _is_agent_home(root):
        return _agent(root, environ)
    if is_settings_dir and _is_agent_home(os.path.dirname(root)):
        return _agent(os.path.dirname(root), environ)
    if not is_settings_dir and os.path.isdir(os.path.join(root, folder)):
        return _runtime_or_project(os.path.join(root, folder), environ)
    has_settings = os.path.isfile(os.path.join(root, _INSTALL.SETTINGS_FILE))
    if is_settings_dir or has_settings or os.path.isdir(os.path.join(root, _FILES.PROJECTS_FOLDER)):
        return _runtime_or_project(root, environ)
    first, *others = [f"{name}/{_FILES.SESSIONS_FOLDER}/" for name in SEED_MEMORY_DIRS]
    raise NoHomeError(
        f"{path}: it is no agent home and no configuration directory of {_INSTALL.TITLE}",
        f"an agent home has {first} (or {', '.join(others)}); a configuration directory has "
        f"{_INSTALL.SETTINGS_FILE} or {_FILES.PROJECTS_FOLDER}/, or is called {folder}",
    )


def find(known: Iterable[str], environ: Mapping[str, str], current_dir: str) -> list[Target]:
    """The homes that are found without being named: the runtime's own, those of the ledger, and the one we are in."""
    found: list[Target] = []
    config_dir = _FILES.config_dir(environ)
    if os.path.isdir(config_dir):
        found.append(_runtime_or_project(config_dir, environ))
    home = agent_home(current_dir, environ, stop=environ.get("HOME", ""))
    for path in [*known, *([home.root] if home else [])]:
        try:
            found.append(identify(path, environ))
        except NoHomeError:  # one of the ledger's that is no home any more
            continue
    return list({os.path.realpath(target.settings_dir): target for target in reversed(found)}.values())[::-1]


def _is_agent_home(root: str) -> bool:
    return any(os.path.isdir(os.path.join(root, name, _FILES.SESSIONS_FOLDER)) for name in SEED_MEMORY_DIRS)


def _agent(root: str, environ: Mapping[str, str]) -> Target:
    """An agent's runtime is started in the root, or, in homes that the seed's project made, in `home/` below it."""
    folder = _INSTALL.HOME_FOLDER
    below = os.path.join(root, "home")
    is_below = os.path.isdir(os.path.join(below, folder)) and not os.path.isdir(os.path.join(root, folder))
    project = below if is_below else root
    settings_dir = os.path.join(project, folder)
    has_own_transcripts = os.path.isdir(os.path.join(settings_dir, _FILES.PROJECTS_FOLDER))
    config_dir = settings_dir if has_own_transcripts else _FILES.config_dir(environ)
    home = agent_home(root, environ, stop=os.path.dirname(root)) or home_at(root, environ)
    return Target("agent", root, settings_dir, project, config_dir, home)


def _runtime_or_project(root: str, environ: Mapping[str, str]) -> Target:
    """The runtime's own directory, or the one in a project that has its settings for that project alone."""
    config_dir = _FILES.config_dir(environ)
    is_named = os.path.basename(root) == _INSTALL.HOME_FOLDER
    has_transcripts = os.path.isdir(os.path.join(root, _FILES.PROJECTS_FOLDER))
    if is_named and not has_transcripts and os.path.realpath(root) != os.path.realpath(config_dir):
        project = os.path.dirname(root)
        if os.path.realpath(project) != os.path.realpath(environ.get("HOME", "")):
            home = runtime_home(config_dir, _FILES.USUAL_DIR, environ)
            return Target("project", root, root, project, config_dir, home)
    return Target("runtime", root, root, "", root, runtime_home(root, _FILES.USUAL_DIR, environ))
