"""The start of a group's agent: directly, behind a wall, or by the operator's command.

An example of a command is `docker run`. The SDK starts one program and adds its arguments. With a
wall or a command, that program is a small shell script in the host's store, which no agent can
write.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...common.system.files import make_private_dir, write_private
from ...sessions.settings.host_layout import Group, Layout
from ._sandbox import Mount, SandboxError, group_mounts, try_out, wall
from .settings import HostSettings

RUNTIME = "claude"
RUNNER = str(Path(__file__).with_name("_runner.py"))
# The host's environment may contain secrets of its own, such as a channel's token.
_PASSED = ("LANG", "LANGUAGE", "PATH", "TERM", "TZ", "SSL_CERT_DIR", "SSL_CERT_FILE")
_PASSED_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "LC_", "DISABLE_", "API_TIMEOUT_", "NODE_EXTRA_CA_")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "CLOUD_ML_", "VERTEX_"),
}
# set by the SDK beside the host's own variables
_OF_THE_SDK = (
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
)
_NOT_IN_A_CONTAINER = ("PATH", "TMPDIR", "CLAUDE_CODE_TMPDIR")


class Launch(NamedTuple):
    """A way to start an agent.

    `program` is for the SDK, '' to let it choose; `wall` is the command of bubblewrap, [] without
    one."""

    program: str
    wall: list[str]
    runtime: str

    def check(self) -> None:
        """Try the wall. Raises SandboxError."""
        if self.wall:
            try_out(self.wall, self.runtime, os.environ)


def launch(layout: Layout, group: Group, config: HostSettings, variables: Iterable[str]) -> Launch:
    """Return how the host's settings start the agent of a group.

    The agent gets `variables` in addition to the host's own. Raises SandboxError, OSError."""
    command = list(config.agent_command)
    if command and config.sandbox != "none":
        raise SandboxError(
            "host.sandbox and host.agent_command are both set",
            "set only one of them: agent_command isolates the agent itself",
        )
    if command == [""]:
        raise SandboxError("host.agent_command is not a list of words", "repair it in config.yaml")
    mounts = group_mounts(layout, group)
    if command:
        mounts += [Mount(RUNNER, RUNNER)] if config.prompts == "files" else []
        words = _filled(command, group, mounts, variables)
        return Launch(_script(layout, group, [], words), [], "")
    if config.prompts == "files":
        raise SandboxError(
            "host.prompts is files, but host.agent_command is not set",
            "set both, or neither",
        )
    if config.sandbox == "none":
        return Launch("", [], "")
    runtime = _runtime()
    words = wall(layout, mounts, runtime, has_network=config.network == "shared")
    script = _script(layout, group, _withheld(os.environ), [*words, runtime])
    return Launch(script, words, runtime)


def _runtime() -> str:
    """Return the path of the program that the SDK would start. Raises SandboxError."""
    spec = find_spec("claude_agent_sdk")
    bundled = Path(spec.origin).parent / "_bundled" / RUNTIME if spec and spec.origin else None
    if bundled and bundled.is_file():
        return str(bundled)
    program = shutil.which(RUNTIME)
    if program is None:
        raise SandboxError(
            f"{RUNTIME} is not installed", "install Claude Code, or a newer claude-agent-sdk"
        )
    return os.path.realpath(program)


def is_passed(name: str, environ: Mapping[str, str]) -> bool:
    """Return whether an agent behind a wall gets a variable of the host."""
    clouds = [prefixes for flag, prefixes in _CLOUDS.items() if environ.get(flag)]
    return (
        name in _PASSED
        or name.lower() in _PROXIES
        or name.startswith((*_PASSED_PREFIXES, *chain(*clouds)))
    )


def _withheld(environ: Mapping[str, str]) -> list[str]:
    kept = ("HOME", "PWD")  # which the SDK sets anew
    return [name for name in environ if name not in kept and not is_passed(name, environ)]


def _filled(
    command: list[str], group: Group, mounts: list[Mount], variables: Iterable[str]
) -> list[str]:
    """Return the operator's command with its placeholders filled in."""
    names = [name for name in os.environ if is_passed(name, os.environ)]
    passed = dict.fromkeys([*names, *variables, *_OF_THE_SDK])
    several = {
        "{mounts}": [word for mount in mounts for word in ("-v", _volume(mount))],
        "{env}": [
            word for name in passed if name not in _NOT_IN_A_CONTAINER for word in ("-e", name)
        ],
    }
    single = {
        "{group}": group.name,
        "{cwd}": group.root,
        "{home}": group.home,
        "{ipc}": group.ipc_dir,
        "{runner}": RUNNER,
        "{uid}": str(os.getuid()),
        "{gid}": str(os.getgid()),
    }
    words: list[str] = []
    for word in command:
        if word in several:
            words += several[word]
            continue
        for placeholder, value in single.items():
            word = word.replace(placeholder, value)
        words.append(word)
    return words


def _volume(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}:{'rw' if mount.is_writable else 'ro'}"


def _script(layout: Layout, group: Group, withheld: list[str], words: list[str]) -> str:
    """Write the program that the SDK starts for a group; return its path."""
    directory = f"{layout.store_dir}/agents"
    path = f"{directory}/{group.name}"
    lines = ["#!/bin/sh", *(f"unset {name}" for name in withheld if name.isidentifier())]
    lines.append(f'exec {shlex.join(words)} "$@"')
    make_private_dir(directory)
    write_private(f"{path}.new", ("\n".join(lines) + "\n").encode())
    os.chmod(f"{path}.new", 0o700)
    os.replace(f"{path}.new", path)
    return path
