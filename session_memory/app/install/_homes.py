"""Finds the homes to install into, and the paths of their settings, skills and transcripts.

Each runtime on the machine is installed into its user's settings. An agent's home, and a project
with settings of its own, are homes of `RUNTIME`.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ... import NAME
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError
from ...common.system.files import expanded, user_dir
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes, runtime
from ...sessions.settings.homes import (
    SEED_MEMORY_DIRS,
    Home,
    home_at,
    named_home,
    person_home,
    runtime_home,
)
from ...sessions.settings.registry import agent_home
from ...sessions.transcripts.entries import Session

# the folder, in a home directory or a project, of skills for several runtimes
SHARED_SKILLS_FOLDER = ".agents"
RUNTIME = runtime("agent-sdk")


class NoHomeError(SessionMemoryError):
    """A path that is not a home of any known kind."""


@dataclass(frozen=True)
class Target:
    """A home to install into.

    `kind` is *agent* (its sessions have names), *runtime* (a user's settings of the runtime),
    *project* (one project's settings of the runtime), *template* (made from a template; its agent
    asks for updates itself, without hooks in settings) or *skills* (a user's skills that several
    runtimes share; nothing else in it matters). `settings_dir` contains the settings and skills,
    `project` is the directory in which its sessions run ('' for any), and `config_dir` the
    runtime's directory with their transcripts. `home` is where we keep settings and state for it.
    """

    kind: str
    root: str
    settings_dir: str
    project: str
    config_dir: str
    home: Home
    runtime: Runtime = RUNTIME

    @property
    def settings_file(self) -> Path | None:
        """The file that the hooks are put in; None where there is none."""
        name = self.runtime.install.SETTINGS_FILE
        return Path(self.settings_dir, name) if name and self.kind != "skills" else None

    @property
    def plugins(self) -> list[str]:
        """Our plugins that are switched on in its settings."""
        return self.runtime.install.plugins_named(self.settings_dir, NAME)

    @property
    def status_line_file(self) -> Path:
        return Path(self.settings_dir, self.runtime.install.STATUS_LINE_FILE)

    @property
    def skills_dir(self) -> Path | None:
        """The directory for the home's own skills; None if it shares others' skills."""
        if self.kind == "skills":
            return Path(self.settings_dir, "skills")
        name = self.runtime.install.SKILLS_FOLDER
        return Path(self.settings_dir, name) if name else None

    @property
    def shared_skills_dir(self) -> Path:
        """The directory, beside `settings_dir`, of skills that several runtimes share."""
        return Path(self.settings_dir).parent / SHARED_SKILLS_FOLDER / "skills"

    @property
    def title(self) -> str:
        name = self.runtime.TITLE
        return {
            "agent": "agent home",
            "runtime": name,
            "project": f"{name}, one project",
            "template": "made from a template",
            "skills": "skills for all runtimes",
        }[self.kind]

    @property
    def transcripts_dir(self) -> str:
        """The directory of the sessions' transcripts, or of several projects' such directories."""
        if self.project:
            return self.runtime.project_dir(self.config_dir, self.project)
        return self.runtime.transcripts_dir(self.config_dir)

    def sessions(self) -> list[Session]:
        """Return an agent home's named sessions, or the sessions with a transcript of other homes.

        Named sessions need no transcript."""
        if self.kind == "agent":
            return self.runtime.named_sessions(
                self.home.sessions_dir, self.config_dir, self.project
            )
        scope = "project" if self.project else "all"
        return self.runtime.other_sessions("", self.config_dir, f"{self.transcripts_dir}/", scope)


def runtime_called(name: str) -> Runtime | None:
    """Return the runtime with a name (`claude-code`) or command (`claude`), or None."""
    return next(
        (candidate for candidate in all_runtimes() if name in (candidate.name, candidate.PROGRAM)),
        None,
    )


def identify(path: str, environ: Mapping[str, str]) -> Target:
    """Return the home at `path`, or the one whose settings are there. Raises NoHomeError."""
    root = os.path.abspath(expanded(path, os.environ))
    if not os.path.isdir(root):
        raise NoHomeError(
            f"{path}: this directory does not exist", "give the path of an existing directory"
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise NoHomeError(f"{path}: it cannot be read", "see who owns it: ls -ld shows that")
    for candidate in all_runtimes():
        if candidate is not RUNTIME and candidate.install.is_settings_dir(root, environ):
            return _settings_at(candidate, root, environ)
    folder = RUNTIME.install.HOME_FOLDER
    is_settings_dir = os.path.basename(root) == folder
    if _is_agent_home(root):
        return _agent(root, environ)
    if is_settings_dir and _is_agent_home(os.path.dirname(root)):
        return _agent(os.path.dirname(root), environ)
    if not is_settings_dir and os.path.isdir(os.path.join(root, folder)):
        return _runtime_or_project(os.path.join(root, folder), environ)
    has_settings = os.path.isfile(os.path.join(root, RUNTIME.install.SETTINGS_FILE))
    if is_settings_dir or has_settings or os.path.isdir(RUNTIME.transcripts_dir(root)):
        return _runtime_or_project(root, environ)
    for candidate in all_runtimes():
        settings_dir = candidate.install.settings_dir(environ)
        is_inside = settings_dir.startswith(f"{root}/")
        if is_inside and os.path.basename(root) == candidate.install.HOME_FOLDER:
            raise NoHomeError(
                f"{path}: the directory of {candidate.TITLE} is {settings_dir}",
                f"give that: --home {shlex.quote(settings_dir)}",
            )
    first, *others = [f"{name}/{RUNTIME.SESSIONS_FOLDER}/" for name in SEED_MEMORY_DIRS]
    raise NoHomeError(
        f"{path}: it is neither an agent home nor a configuration directory of {RUNTIME.TITLE}",
        f"an agent home has {first} (or {', '.join(others)}); a configuration directory has "
        f"{RUNTIME.install.SETTINGS_FILE} or {os.path.basename(RUNTIME.transcripts_dir(root))}/, "
        f"or is called {folder}",
    )


def find(
    ledger: InstallLedger, environ: Mapping[str, str], current_dir: str, but: Collection[str] = ()
) -> list[Target]:
    """Return the homes that can be found without being named.

    They are the homes of the runtimes on this machine, those in the ledger, and the current one.
    The paths `but` are left out."""
    targets = [
        settings_of(candidate, environ)
        for candidate in all_runtimes()
        if is_here(candidate, environ)
    ]
    home = agent_home(current_dir, environ, stop=user_dir(environ))
    for path in [*ledger.records, *([home.root] if home else [])]:
        target = None if path in but else known_home(path, ledger, environ)
        targets += [target] if target else []
    return list(
        {os.path.realpath(target.settings_dir): target for target in reversed(targets)}.values()
    )[::-1]


def known_home(path: str, ledger: InstallLedger, environ: Mapping[str, str]) -> Target | None:
    """Return a home in the ledger, or the one at that path; None if it is no longer a home."""
    record = ledger.records.get(path)
    if record is not None and record.runtime != RUNTIME.name:
        if not os.path.isdir(path):
            return None
        if record.runtime == SHARED_SKILLS_FOLDER:
            return shared_skills(environ, path)
        runtime = runtime_called(record.runtime)
        return _settings_at(runtime, path, environ) if runtime else None
    try:
        return identify(path, environ)
    except NoHomeError:
        return None


def home_named(path: str, ledger: InstallLedger, environ: Mapping[str, str]) -> Target:
    """Return the home at a path that a person gave. Raises NoHomeError."""
    known = known_home(os.path.abspath(expanded(path, os.environ)), ledger, environ)
    return known or identify(path, environ)


def is_here(runtime: Runtime, environ: Mapping[str, str]) -> bool:
    """Check if a runtime with hooks is on this machine.

    Its user must have settings for it, or be able to start it."""
    if not runtime.PROMPT_EVENT:
        return False
    command = runtime.install.COMMAND
    is_found = bool(command and shutil.which(command, path=environ.get("PATH", "")))
    return is_found or os.path.isdir(runtime.install.settings_dir(environ))


def only_read(environ: Mapping[str, str]) -> list[tuple[Runtime, str]]:
    """Return the runtimes here that run no hooks of ours, each with its directory."""
    places = [
        (runtime, runtime.config_dir(environ))
        for runtime in all_runtimes()
        if not runtime.PROMPT_EVENT
    ]
    return [(runtime, place) for runtime, place in places if os.path.isdir(place)]


def settings_of(runtime: Runtime, environ: Mapping[str, str]) -> Target:
    """Return the home of a user's settings for a runtime, which need not exist."""
    return _settings_at(runtime, runtime.install.settings_dir(environ), environ)


def shared_skills(environ: Mapping[str, str], root: str = "") -> Target:
    """Return the folder of a user's skills for several runtimes, which need not exist."""
    root = root or f"{user_dir(environ)}/{SHARED_SKILLS_FOLDER}"
    return Target("skills", root, root, "", "", person_home(environ))


def _settings_at(runtime: Runtime, settings_dir: str, environ: Mapping[str, str]) -> Target:
    """Return the home of the runtime's settings in `settings_dir`."""
    if runtime is RUNTIME and os.path.isdir(settings_dir):
        return _runtime_or_project(settings_dir, environ)
    is_usual = settings_dir == runtime.install.settings_dir(environ)
    # as with the variable that named it during the install: a profile may have a directory above it
    named = environ if is_usual else {**environ, runtime.CONFIG_VARIABLE: settings_dir}
    is_named = is_usual or runtime.install.settings_dir(named) == settings_dir
    config_dir = runtime.config_dir(named) if is_named else settings_dir
    home = runtime_home(config_dir, runtime.USUAL_DIR, environ)
    return Target("runtime", settings_dir, settings_dir, "", config_dir, home, runtime)


def _is_agent_home(root: str) -> bool:
    folders = {
        candidate.SESSIONS_FOLDER for candidate in all_runtimes() if candidate.SESSIONS_FOLDER
    }
    return any(
        os.path.isdir(os.path.join(root, name, folder))
        for name in SEED_MEMORY_DIRS
        for folder in folders
    )


def _agent(root: str, environ: Mapping[str, str]) -> Target:
    """Return the agent home at `root`.

    Its runtime is started there, or in `home/` below it if the seed's project made the home."""
    folder = RUNTIME.install.HOME_FOLDER
    below = os.path.join(root, "home")
    is_below = os.path.isdir(os.path.join(below, folder)) and not os.path.isdir(
        os.path.join(root, folder)
    )
    project = below if is_below else root
    settings_dir = os.path.join(project, folder)
    has_own_transcripts = os.path.isdir(RUNTIME.transcripts_dir(settings_dir))
    config_dir = settings_dir if has_own_transcripts else RUNTIME.config_dir(environ)
    home = named_home(root, environ, RUNTIME.SESSIONS_FOLDER) or home_at(root, environ)
    return Target("agent", root, settings_dir, project, config_dir, home)


def _runtime_or_project(root: str, environ: Mapping[str, str]) -> Target:
    """Return the home of the runtime's own directory, or of a project's settings at `root`."""
    config_dir = RUNTIME.config_dir(environ)
    is_named = os.path.basename(root) == RUNTIME.install.HOME_FOLDER
    has_transcripts = os.path.isdir(RUNTIME.transcripts_dir(root))
    if is_named and not has_transcripts and os.path.realpath(root) != os.path.realpath(config_dir):
        project = os.path.dirname(root)
        if os.path.realpath(project) != os.path.realpath(user_dir(environ)):
            home = runtime_home(config_dir, RUNTIME.USUAL_DIR, environ)
            return Target("project", root, root, project, config_dir, home)
    return Target("runtime", root, root, "", root, runtime_home(root, RUNTIME.USUAL_DIR, environ))
