"""The wall around a group's agent: what bubblewrap (`bwrap`) shows it of the machine.

The agent sees read-only system directories, its runtime, the Python of our hooks, and its group's
directories at their usual paths. Everything else does not exist for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import session_memory

from ...common.errors import SessionMemoryError
from ...common.system.files import user_dir
from ...sessions.settings.host_layout import GLOBAL, Group, Layout
from ...sessions.settings.program import source_dir

PROGRAM = "bwrap"
TRIAL_SECONDS = 20.0
ERROR_CHARACTERS = 300
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/run/current-system/sw",
    "/var/lib/ca-certificates",
)
# the files in /etc that programs need: names of machines, certificates, the time zone
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl",
    "static",
)
_NOT_INSTALLED = (
    "install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install "
    "bubblewrap; Arch: pacman -S bubblewrap). macOS and Windows have none: use host.agent_command "
    "there"
)
_NOT_PERMITTED = (
    "allow unprivileged user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
    "user.max_user_namespaces above 0, an AppArmor profile for bwrap (Ubuntu 24.04: "
    "/etc/apparmor.d/bwrap, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0); in a "
    "container also its seccomp profile"
)


class SandboxError(SessionMemoryError):
    """An agent cannot be started behind its wall, and is therefore not started at all."""


class Mount(NamedTuple):
    """A directory or file that an agent sees at the path `target`."""

    source: str
    target: str
    is_writable: bool = False


def group_mounts(layout: Layout, group: Group) -> list[Mount]:
    """Return a group's directories, at their usual paths.

    Main also sees the directories of all groups and the host's skills, read-only."""
    writable = [Mount(path, path, True) for path in (group.root, group.home, group.ipc_dir)]
    shared = (
        [layout.groups_dir, f"{layout.root}/data/sessions", f"{layout.root}/data/ipc"]
        if group.is_main
        else [f"{layout.groups_dir}/{GLOBAL}"]
    )
    skills = [layout.skills_dir] if group.is_main else []
    there = [path for path in (*shared, *skills) if os.path.isdir(path)]
    return [*(Mount(path, path) for path in there), *writable]


def wall(layout: Layout, mounts: Iterable[Mount], runtime: str, *, has_network: bool) -> list[str]:
    """Return the command of bubblewrap, without the command that it runs.

    `mounts` are the group's, `runtime` is the path of the agent's program. Raises SandboxError if
    bubblewrap is missing."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxError(f"host.sandbox: {PROGRAM} is not installed", _NOT_INSTALLED)
    words = [
        program,
        "--die-with-parent",
        "--new-session",
        # with a user namespace of its own and no capability, also for root
        *("--unshare-user", "--cap-drop", "ALL"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *([] if has_network else ["--unshare-net"]),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"),
        *("--setenv", "TMPDIR", "/tmp", "--setenv", "CLAUDE_CODE_TMPDIR", "/tmp"),
    ]
    home = os.path.realpath(user_dir(os.environ) or layout.root)
    shown = [*_system(), *_programs(runtime, home, layout.root)]
    hidden = [path for path in dict.fromkeys((home, layout.root)) if path != "/"]
    # Shallow paths first, because a deeper path replaces part of a shallower one.
    order = sorted(
        [
            *((_steps(mount.target), 0, [*_bind(mount)]) for mount in shown),
            *((_steps(path), 1, ["--tmpfs", path]) for path in hidden),
            *((_steps(mount.target), 2, [*_bind(mount)]) for mount in mounts),
        ]
    )
    for _, _, option in order:
        words += option
    for path in (*hidden, "/"):  # the empty parts take no files
        words += ["--remount-ro", path]
    return words


def try_out(words: Sequence[str], runtime: str, environ: Mapping[str, str]) -> None:
    """Run a command behind the wall that does nothing but look for the runtime.

    Raises SandboxError with what to install or to allow."""
    command = [*words, "/bin/sh", "-c", 'test -x "$1" && echo inside', "sh", runtime]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(
            f"host.sandbox: {words[0]} does not work: {error}", _NOT_PERMITTED
        ) from None
    if done.returncode or done.stdout != b"inside\n":
        said = done.stderr.decode(errors="replace").strip()[-ERROR_CHARACTERS:]
        why = said or f"it ended with {done.returncode} before the agent's program"
        raise SandboxError(f"host.sandbox: {words[0]} does not work: {why}", _NOT_PERMITTED)


def _bind(mount: Mount) -> tuple[str, str, str]:
    return "--bind" if mount.is_writable else "--ro-bind", mount.source, mount.target


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step]


def _system() -> list[Mount]:
    """Return the system's directories that exist; a link becomes the directory that it names."""
    paths = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC)]
    return [Mount(os.path.realpath(path), path) for path in paths if os.path.exists(path)]


def _programs(runtime: str, home: str, host: str) -> list[Mount]:
    """Return the directories of the runtime, of Python and of our hooks.

    None contains the person's home or the host: those would be shown with it."""
    paths = [
        Path(runtime),
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(session_memory.__file__).parent,
        *(source_dir() / name for name in ("hooks", "scripts")),
    ]
    with open(runtime, "rb") as program:
        is_script = program.read(2) == b"#!"
    if is_script:  # a program of npm: its other files are beside it, and node runs it
        node = shutil.which("node")
        paths += [Path(runtime).parent, *([Path(node).resolve().parents[1]] if node else [])]
    wanted = dict.fromkeys(str(path) for path in paths if path.exists())
    return [
        Mount(os.path.realpath(path), path)
        for path in wanted
        if not any(f"{inner}/".startswith(f"{os.path.realpath(path)}/") for inner in (home, host))
    ]
