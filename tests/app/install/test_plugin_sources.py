"""Each source of a plugin install, with the real programs.

Sources are a clone, its address, the published branch, and a directory written by `.ci/plugin.py`.
test_packages.py has the others: Claude Code and Copilot CLI with a clone, Codex and Qwen Code with
such a directory.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from clients.claude_plugin import PLUGIN, ClaudePlugin
from clients.elsewhere import TOLD, elsewhere, has_worked_in_claude_code
from clients.npm import NpmPlace
from clients.others import CODEX, COPILOT, QWEN, Codex, Copilot, OtherRuntime, Qwen
from fakes.fake_llm import FakeLLM
from fakes.fake_responses import FakeResponses
from install_machine import PACKAGE_OF_PLUGIN, leave_development_files, top_of, write_marketplace

# git reads a directory in its place: Source
ADDRESS = "https://git.example.invalid/OWNER/session-memory.git"
BRANCH = "plugin"
DEVELOPMENT = {"tests", "bench", "docs", "findings", "templates"}

pytestmark = pytest.mark.slow


@dataclass
class Source:
    """What a user names to install from: a `place`, and a `branch` if it is not the default branch."""

    place: str
    branch: str = ""

    @property
    def place_and_branch(self) -> str:
        return f"{self.place}#{self.branch}" if self.branch else self.place

    @property
    def options(self) -> list[str]:
        return ["--ref", self.branch] if self.branch else []


def source_of(kind: str, repository: Path, home: Path) -> Source:
    """Publish a copy of the repository as a release does, and return how a user with this home
    names a source."""
    leave_development_files(repository)
    commit(repository, "main", home)
    generated = write_marketplace(repository)
    if kind == "generated":
        return Source(str(generated))
    commit(generated, BRANCH, home)
    git(generated, "push", "--quiet", str(repository), BRANCH, home=home)
    (home / ".gitconfig").write_text(f'[url "file://{repository}"]\n\tinsteadOf = {ADDRESS}\n')
    sources = {
        "clone": Source(str(repository)),
        "address": Source(ADDRESS),
        "branch": Source(ADDRESS, BRANCH),
    }
    return sources[kind]


def commit(directory: Path, branch: str, home: Path) -> None:
    """Make a directory a repository that has all its files on one branch."""
    git(directory, "init", "--quiet", "--initial-branch", branch, home=home)
    git(directory, "add", "--all", home=home)
    author = ("-c", "user.name=release", "-c", "user.email=release@example.invalid")
    git(directory, *author, "commit", "--quiet", "--message", "Release", home=home)


def git(directory: Path, *words: str, home: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    subprocess.run(["git", *words], cwd=directory, env=environment, check=True)


def check_told(runtime: OtherRuntime) -> None:
    """The hooks fire: a prompt is told of the session in Claude Code, and has the skills."""
    has_worked_in_claude_code(runtime)
    runtime.run("plan the garden")
    assert TOLD in runtime.requests()[-1]
    assert "Look into the other sessions" in runtime.requests()[0]


@pytest.mark.parametrize("source", ["address", "branch", "generated"])
def test_claude_code_gets_a_plugin_that_works_without_development_files(
    plugin: ClaudePlugin, source: str
) -> None:
    claude = plugin.claude
    given = source_of(source, plugin.source, claude.home)
    plugin.plugin("marketplace", "add", given.place_and_branch)
    plugin.plugin("install", PLUGIN)
    [copied] = claude.config_dir.glob("plugins/cache/session-memory/session-memory/*")
    assert not top_of(copied) & DEVELOPMENT
    claude.run("plan the garden")
    turn = claude.run("who is there?")
    assert [line.partition(" (")[0] for line in turn.told] == ['- "plan the garden"']


@pytest.mark.parametrize("source", ["clone", "address", "branch"])
def test_codex_gets_a_plugin_that_works(tmp_path: Path, npm_place: NpmPlace, source: str) -> None:
    with FakeResponses() as model:
        codex = elsewhere(Codex, npm_place(CODEX), tmp_path, model)
        given = source_of(source, codex.source, codex.runtime.home)
        codex.runtime.execute("plugin", "marketplace", "add", given.place, *given.options)
        codex.runtime.execute("plugin", "add", PLUGIN)
        [copied] = codex.runtime.home.glob(".codex/plugins/cache/session-memory/session-memory/*")
        # it drops links, so both get what the repository has
        is_whole = source in {"clone", "address"}
        assert (top_of(copied) & DEVELOPMENT) == (DEVELOPMENT if is_whole else set())
        check_told(codex.runtime)


@pytest.mark.parametrize("source", ["clone", "address", "branch", "package of the clone"])
def test_qwen_code_gets_an_extension_that_works(
    tmp_path: Path, npm_place: NpmPlace, source: str
) -> None:
    with FakeLLM() as model:
        qwen = elsewhere(Qwen, npm_place(QWEN), tmp_path, model)
        if source == "package of the clone":
            given = Source(str(qwen.source / PACKAGE_OF_PLUGIN))
        else:
            given = source_of(source, qwen.source, qwen.runtime.home)
            given.place += ":session-memory"
        qwen.runtime.execute("extensions", "install", given.place, *given.options, "--consent")
        copied = qwen.runtime.home / ".qwen/extensions/session-memory"
        # where it finds qwen-extension.json, which it reads first
        is_whole = source in {"clone", "address"}
        assert (top_of(copied) & DEVELOPMENT) == (DEVELOPMENT if is_whole else set())
        assert [path for path in copied.rglob("*") if path.is_symlink()] == []
        check_told(qwen.runtime)


@pytest.mark.parametrize("source", ["address", "branch", "generated"])
def test_copilot_gets_a_plugin_that_works(tmp_path: Path, npm_place: NpmPlace, source: str) -> None:
    with FakeLLM() as model:
        copilot = elsewhere(Copilot, npm_place(COPILOT), tmp_path, model)
        given = source_of(source, copilot.source, copilot.runtime.home)
        copilot.runtime.execute("plugin", "marketplace", "add", given.place_and_branch)
        copilot.runtime.execute("plugin", "install", PLUGIN)
        copied = copilot.runtime.home / ".copilot/installed-plugins/session-memory/session-memory"
        is_in_place = source == "generated"  # as each directory on this machine
        assert copied.exists() != is_in_place
        assert is_in_place or not top_of(copied) & DEVELOPMENT
        assert [path for path in copied.rglob("*") if path.is_symlink()] == []
        check_told(copilot.runtime)
