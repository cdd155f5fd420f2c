"""Which homes there are to install into, and where in each the settings, the skills and the transcripts lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import SessionMemoryError
from ..runtimes.claude import files as claude
from ..settings.homes import MEMORY_DIR, SEED_MEMORY_DIRS, Home, agent_home, home_at, runtime_home


class NoHomeError(SessionMemoryError):
    """A path that is no home of any kind that we know."""


@dataclass(frozen=True)
class Target:
    """A home to install into.

    `kind` is *agent* (its sessions have names), *claude* (a configuration directory of Claude Code), *project* (the
    `.claude` of one project) or *composed* (made from a template, without hooks in settings). `claude_dir` is where its
    settings and skills lie, `project` the directory its sessions run in ('' for all), `config_dir` the configuration
    directory under whose `projects/` their transcripts lie. `home` is where the user's configuration and the hook's
    state lie.
    """

    kind: str
    root: str
    claude_dir: str
    project: str
    config_dir: str
    home: Home

    @property
    def settings_file(self) -> Path:
        """The settings.json that the hooks are put in."""
        return Path(self.claude_dir, "settings.json")

    @property
    def skills_dir(self) -> Path:
        """Where the skills are copied to."""
        return Path(self.claude_dir, "skills")

    @property
    def shared_skills_dir(self) -> Path:
        """Where Codex, Qwen Code, Pi and others look for skills too: beside `.claude`, for a user or a project."""
        return Path(self.claude_dir).parent / ".agents" / "skills"

    @property
    def sessions_dir(self) -> str:
        """Where an agent home's sessions are named; '' for the others."""
        home = agent_home(self.root, os.environ) if self.kind == "agent" else None
        return home.sessions_dir if home else ""

    @property
    def memory_dir(self) -> Path:
        """Where the user's configuration and the hook's state lie."""
        return Path(self.home.memory_dir)

    @property
    def title(self) -> str:
        """The kind in a few words."""
        return {
            "agent": "agent home",
            "claude": "Claude Code",
            "project": "Claude Code, one project",
            "composed": "made from a template",
        }[self.kind]


def identify(path: str, environ: Mapping[str, str]) -> Target:
    """The home that `path` is, or that lies in its `.claude`. Raises NoHomeError."""
    root = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(root):
        raise NoHomeError(f"{path}: there is no such directory", "give the path of one that is there")
    if not os.access(root, os.R_OK | os.X_OK):
        raise NoHomeError(f"{path}: it cannot be read", "see who owns it: ls -ld shows that")
    is_claude_dir = os.path.basename(root) == ".claude"
    if _is_agent_home(root):
        return _agent_target(root, environ)
    if is_claude_dir and _is_agent_home(os.path.dirname(root)):
        return _agent_target(os.path.dirname(root), environ)
    if not is_claude_dir and os.path.isdir(os.path.join(root, ".claude")):
        return _claude_target(os.path.join(root, ".claude"), environ)
    has_settings = os.path.isfile(os.path.join(root, "settings.json"))
    if is_claude_dir or has_settings or os.path.isdir(os.path.join(root, "projects")):
        return _claude_target(root, environ)
    raise NoHomeError(
        f"{path}: it is no agent home and no configuration directory of Claude Code",
        f"an agent home has {MEMORY_DIR}/sessions/ (or {', '.join(f'{n}/sessions/' for n in SEED_MEMORY_DIRS[1:])}); "
        "a configuration directory has settings.json or projects/, or is called .claude",
    )


def find(known: Iterable[str], environ: Mapping[str, str], current_dir: str) -> list[Target]:
    """The homes that are there without being named: Claude Code's, those of the ledger, and the one we are in."""
    found: list[Target] = []
    config_dir = claude.config_dir(environ)
    if os.path.isdir(config_dir):
        found.append(_claude_target(config_dir, environ))
    home = agent_home(current_dir, environ, stop=environ.get("HOME", ""))
    for path in [*known, *([home.root] if home else [])]:
        try:
            found.append(identify(path, environ))
        except NoHomeError:  # one of the ledger's that is no home any more
            continue
    return list({os.path.realpath(target.claude_dir): target for target in reversed(found)}.values())[::-1]


def _is_agent_home(root: str) -> bool:
    return any(os.path.isdir(os.path.join(root, name, "sessions")) for name in SEED_MEMORY_DIRS)


def _agent_target(root: str, environ: Mapping[str, str]) -> Target:
    """An agent's runtime is started in the root, or, in homes that the seed's project made, in `home/` below it."""
    project = root
    below = os.path.join(root, "home")
    if os.path.isdir(os.path.join(below, ".claude")) and not os.path.isdir(os.path.join(root, ".claude")):
        project = below
    claude_dir = os.path.join(project, ".claude")
    has_own_transcripts = os.path.isdir(os.path.join(claude_dir, "projects"))
    config_dir = claude_dir if has_own_transcripts else claude.config_dir(environ)
    home = agent_home(root, environ, stop=os.path.dirname(root)) or home_at(root, environ)
    return Target("agent", root, claude_dir, project, config_dir, home)


def _claude_target(root: str, environ: Mapping[str, str]) -> Target:
    config_dir = claude.config_dir(environ)
    is_project = os.path.basename(root) == ".claude" and not os.path.isdir(os.path.join(root, "projects"))
    if is_project and os.path.realpath(root) != os.path.realpath(config_dir):
        project = os.path.dirname(root)
        if os.path.realpath(project) != os.path.realpath(environ.get("HOME", "")):
            home = runtime_home(config_dir, claude.USUAL_DIR, environ)
            return Target("project", root, root, project, config_dir, home)
    return Target("claude", root, root, "", root, runtime_home(root, claude.USUAL_DIR, environ))
