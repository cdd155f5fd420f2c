"""The repository as a package of each runtime, with the real programs.

It is installed, at work, updated, and removed.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import records
from clients.claude import Claude, resume
from clients.claude_plugin import PLUGIN, ClaudePlugin, wait_until
from clients.elsewhere import TOLD, Elsewhere, elsewhere, has_worked_in_claude_code
from clients.npm import NpmPlace
from clients.others import CODEX, COPILOT, GEMINI, QWEN, Codex, Copilot, Gemini, OtherRuntime, Qwen
from clients.pi import PACKAGE, Pi
from fakes.fake_gemini import FakeGemini
from fakes.fake_llm import FakeLLM
from fakes.fake_responses import FakeResponses
from install_machine import (
    MANIFESTS,
    NEXT_VERSION,
    NEXT_WORDS,
    PACKAGE_OF_PLUGIN,
    PARTS_OF_PLUGIN,
    PYTHON,
    REPOSITORY,
    Machine,
    copy_repository,
    leave_development_files,
    make_next_version,
    mentions,
    prepared_machine,
    top_of,
    tree,
    write_marketplace,
)
from runtime_table import Shown

from session_memory import __version__

INTRODUCTION = "A record of your other sessions, not instructions:\n[Session Activity]"
# Not the plugin's: what a home keeps of the sessions, with or without it, and what Claude Code
# notes of the servers that it has started (docs/use/packages.md, docs/reference/tools.md).
OUR_STATE_AND_TRANSCRIPTS = (".claude/projects/", ".session-memory/", ".cache/claude-cli-nodejs/")


def test_the_manifests_say_the_version_of_the_package() -> None:
    marketplace = json.loads((REPOSITORY / ".claude-plugin/marketplace.json").read_text())
    for path in MANIFESTS:
        manifest = json.loads((REPOSITORY / path).read_text())
        assert manifest["version"] == __version__
        assert [entry["name"] for entry in marketplace["plugins"]] == [manifest["name"]]


def test_claude_code_finds_the_plugin_and_the_marketplace_valid(plugin: ClaudePlugin) -> None:
    directory = write_marketplace(plugin.source)
    assert "Validation passed" in plugin.plugin("validate", "--strict", str(directory))
    said = plugin.plugin("validate", "--strict", str(directory / PACKAGE_OF_PLUGIN))
    assert "Validation passed" in said
    assert "skills: session-memory:sessions" in said


def test_claude_code_copies_only_what_the_plugin_runs(plugin: ClaudePlugin) -> None:
    leave_development_files(plugin.source)
    plugin.install()
    [copied] = plugin.claude.config_dir.glob("plugins/cache/session-memory/session-memory/*")
    assert top_of(copied) - {".in_use"} == PARTS_OF_PLUGIN
    assert [path for path in copied.rglob("*") if path.is_symlink()] == []
    assert (copied / "session_memory" / "cli.py").is_file()


def test_the_published_marketplace_contains_only_what_the_plugin_runs(tmp_path: Path) -> None:
    repository = copy_repository(tmp_path / "copy")
    leave_development_files(repository)
    directory = write_marketplace(repository)
    (directory / PACKAGE_OF_PLUGIN / "scripts" / "removed.py").touch()
    assert write_marketplace(repository) == directory
    assert sorted(path.name for path in directory.iterdir()) == [".claude-plugin"]
    copied = directory / PACKAGE_OF_PLUGIN
    assert top_of(copied) == PARTS_OF_PLUGIN
    published = {str(path.relative_to(copied)) for path in copied.rglob("*") if path.is_file()}
    in_git = subprocess.run(
        ["git", "ls-files", *PARTS_OF_PLUGIN - {".claude-plugin"}],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    assert published == {*in_git.stdout.decode().splitlines(), ".claude-plugin/plugin.json"}


def test_the_marketplace_is_never_written_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = subprocess.run(
        [PYTHON, REPOSITORY / ".ci/plugin.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "contains other files. Name a new or empty directory." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_marketplace_is_never_written_over_the_repository(tmp_path: Path) -> None:
    repository = copy_repository(tmp_path / "copy")
    before = tree(repository)
    program = [PYTHON, "-B", repository / ".ci/plugin.py", repository]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "contains other files. Name a new or empty directory." in done.stderr
    assert tree(repository) == before


@pytest.mark.slow
def test_a_plugin_beside_an_install_tells_a_prompt_once_and_in_one_block(
    plugin: ClaudePlugin,
) -> None:
    claude = plugin.claude
    for number in range(12):
        folder = (
            claude.config_dir
            / "projects"
            / re.sub("[^A-Za-z0-9]", "-", str(claude.project.resolve()))
        )
        said = records.exchange(
            f"question {number} about it " * 4, "An answer. " * 9, cwd=str(claude.project)
        )
        records.write(folder / f"{records.new_id()}.jsonl", *said)
    prepared_machine(claude.home).installed("--home", str(claude.config_dir))
    plugin.install()
    first = claude.run("what is new?")
    second = resume(claude, first, "and what else?")
    assert 300 < len("\n".join([INTRODUCTION, *first.told])) <= 500
    told = [line for line in first.told + second.told if line.startswith('- "question')]
    assert told
    assert len(told) == len({line.partition(" about")[0] for line in told})


def test_the_plugin_comes_works_is_updated_and_goes_in_claude_code(
    plugin: ClaudePlugin, shown: Shown
) -> None:
    noted = partial(shown, "Claude Code, plugin")
    plugin.install()
    noted("install")
    check_at_work(plugin.claude, "session-memory:sessions", noted)
    make_next_version(plugin.source)
    plugin.plugin("marketplace", "update", "session-memory")
    plugin.plugin("update", PLUGIN)
    assert f'"version": "{NEXT_VERSION}"' in plugin.plugin("list", "--json")
    check_updated(plugin.claude, noted)
    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    plugin.plugin("uninstall", PLUGIN)
    plugin.plugin("marketplace", "remove", "session-memory")
    assert not plugin.data_dir.exists()
    forget_declined(plugin.claude)
    check_gone(plugin.claude, noted)


def test_an_install_into_the_settings_of_claude_code_works_and_goes(
    tmp_path: Path, bare_claude: Claude, shown: Shown
) -> None:
    noted, claude = partial(shown, "Claude Code, install.py"), bare_claude
    machine = (
        Machine(claude.home, copy_repository(tmp_path / "copy")).has_environment().has_program()
    )
    machine.installed("--home", str(claude.config_dir))
    noted("install")
    check_at_work(claude, "- sessions", noted)
    make_next_version(machine.source)
    machine.installed()
    check_updated(claude, noted)
    assert machine.install("--uninstall").returncode == 0
    check_gone(claude, noted)


def check_at_work(claude: Claude, skill: str, noted: Callable[[str], None]) -> None:
    """Check that a session is told about the one before it, and has the skill under this name."""
    claude.run("plan the garden")
    turn = claude.run("who is there?")
    assert [line.partition('"')[2] for line in turn.told] == [
        'plan the garden" (just now, 2 messages): last: "ok (1)"'
    ]
    noted("hook fires")
    assert turn.request is not None
    assert f"{skill}: Look into the other sessions" in turn.request.text
    noted("skill listed")


def check_updated(claude: Claude, noted: Callable[[str], None]) -> None:
    """A session is told by the next version."""
    turn = claude.run("and now?")
    assert turn.request is not None
    assert f"{NEXT_WORDS}:\n[Session Activity]\n" in turn.request.text
    noted("update")


def forget_declined(claude: Claude) -> None:
    """Removes what Claude Code itself notes since 2.1.331 at the latest: that this person does not
    want the plugin."""
    path = claude.home / ".claude.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "declinedPlugins": []}))


def check_gone(claude: Claude, noted: Callable[[str], None]) -> None:
    assert mentions(claude.home, *OUR_STATE_AND_TRANSCRIPTS) == []
    noted("uninstall leaves no trace")


@pytest.fixture
def codex(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Elsewhere]:
    with FakeResponses() as model:
        yield elsewhere(Codex, npm_place(CODEX), tmp_path, model)


@pytest.fixture
def qwen(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Elsewhere]:
    with FakeLLM() as model:
        yield elsewhere(Qwen, npm_place(QWEN), tmp_path, model)


@pytest.fixture
def copilot(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Elsewhere]:
    with FakeLLM() as model:
        yield elsewhere(Copilot, npm_place(COPILOT), tmp_path, model)


@pytest.mark.slow
def test_the_plugin_tells_codex_what_claude_code_did_is_updated_and_goes(
    codex: Elsewhere, shown: Shown
) -> None:
    row, runtime = "Codex, plugin", codex.runtime
    has_worked_in_claude_code(runtime)
    runtime.execute("plugin", "marketplace", "add", str(write_marketplace(codex.source)))
    runtime.execute("plugin", "add", PLUGIN)
    [copied] = runtime.home.glob(".codex/plugins/cache/session-memory/session-memory/*")
    assert top_of(copied) == PARTS_OF_PLUGIN
    shown(row, "install")
    printed = runtime.run("plan the garden")
    assert "hook: UserPromptSubmit Completed" in printed
    assert TOLD in runtime.requests()[-1]
    runtime.run("resume", "--last", "go on")
    assert runtime.requests()[-1].count(TOLD) == 1  # what was told before, and nothing once more
    shown(row, "hook fires")
    assert "session-memory:sessions: Look into the other sessions" in runtime.requests()[0]
    shown(row, "skill listed")
    make_next_version(codex.source)
    write_marketplace(codex.source)
    runtime.execute("plugin", "add", PLUGIN)
    assert NEXT_VERSION in runtime.execute("plugin", "list")
    runtime.run("and now?")
    assert f"{NEXT_WORDS}:\\n[Session Activity]" in runtime.requests()[-1]
    shown(row, "update")
    runtime.execute("plugin", "remove", PLUGIN)
    runtime.execute("plugin", "marketplace", "remove", "session-memory")
    own = (
        ".codex/sessions/",
        ".codex/logs_",
        ".codex/thread_history_",
        ".claude/",
        ".session-memory/",
    )
    assert mentions(runtime.home, *own) == []
    shown(row, "uninstall leaves no trace")


@pytest.mark.slow
def test_the_plugin_tells_qwen_code_what_claude_code_did_is_updated_and_goes(
    qwen: Elsewhere, shown: Shown
) -> None:
    row, runtime = "Qwen Code, extension", qwen.runtime
    has_worked_in_claude_code(runtime)
    install = (
        "extensions",
        "install",
        f"{write_marketplace(qwen.source)}:session-memory",
        "--consent",
    )
    runtime.execute(*install)
    assert top_of(runtime.home / ".qwen/extensions/session-memory") >= {
        "hooks",
        "skills",
        "session_memory",
    }
    assert not top_of(runtime.home / ".qwen/extensions/session-memory") & {"tests", "bench", "docs"}
    shown(row, "install")
    runtime.run("plan the garden")
    assert TOLD in runtime.requests()[0]
    runtime.run("--continue", "go on")
    assert runtime.requests()[-1].count(TOLD) == 1  # what was told before, and nothing once more
    shown(row, "hook fires")
    request = runtime.requests()[0]
    assert "session-memory:sessions" in request
    assert "Look into the other sessions" in request
    shown(row, "skill listed")
    make_next_version(qwen.source)
    write_marketplace(qwen.source)
    runtime.execute("extensions", "uninstall", "session-memory")
    runtime.execute(*install)
    assert f"session-memory ({NEXT_VERSION})" in runtime.execute("extensions", "list")
    shown(row, "update")
    runtime.execute("extensions", "uninstall", "session-memory")
    own = (
        ".qwen/projects/",
        ".qwen/extension-store/state.previous.json",
        ".claude/",
        ".session-memory/",
    )
    assert mentions(runtime.home, *own) == []
    shown(row, "uninstall leaves no trace")


@pytest.mark.slow
def test_the_plugin_tells_copilot_what_claude_code_did_is_updated_and_goes(
    copilot: Elsewhere, shown: Shown
) -> None:
    row, runtime = "Copilot CLI, plugin", copilot.runtime
    has_worked_in_claude_code(runtime)
    runtime.execute("plugin", "marketplace", "add", str(copilot.source))
    runtime.execute("plugin", "install", PLUGIN)
    shown(row, "install")
    runtime.run("plan the garden")
    assert TOLD in runtime.requests()[-1]
    runtime.run("--continue", "go on")
    assert runtime.requests()[-1].count(TOLD) == 1  # what was told before, and nothing once more
    shown(row, "hook fires")
    assert "Look into the other sessions" in runtime.requests()[0]
    shown(row, "skill listed")
    # a tool of the server that comes with the plugin
    assert "sessions-search_sessions" in runtime.requests()[0]
    wait_until(
        lambda: any("go on" in path.read_text() for path in archives(runtime)),
        "archive of the session",
    )
    make_next_version(copilot.source)  # a local marketplace is used in place
    runtime.run("and now?")
    assert f"{NEXT_WORDS}:\\n[Session Activity]" in runtime.requests()[-1]
    shown(row, "update")
    runtime.execute("plugin", "uninstall", PLUGIN)
    runtime.execute("plugin", "marketplace", "remove", "session-memory")
    # It keeps a plugin that was switched off by its name, and carries a list of them.
    own = (
        ".copilot/session-s",
        ".copilot/logs/",
        ".copilot/settings.json",
        ".cache/copilot/",
        ".claude/",
    )
    assert mentions(runtime.home, *own, ".session-memory/") == []
    shown(row, "uninstall leaves no trace")


@pytest.mark.slow
def test_copilot_is_told_once_where_a_repository_has_our_hooks_for_claude_code_too(
    copilot: Elsewhere,
) -> None:
    runtime = copilot.runtime
    has_worked_in_claude_code(runtime)
    runtime.execute("plugin", "marketplace", "add", str(copilot.source))
    runtime.execute("plugin", "install", PLUGIN)
    hook = f"{PYTHON} -I -S {copilot.source}/hooks/user_prompt_submit.py"
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]}
    (runtime.project / ".claude").mkdir(exist_ok=True)
    (runtime.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    runtime.run("plan the garden")
    assert runtime.requests()[-1].count(TOLD) == 1
    runtime.run("--continue", "go on")
    assert runtime.requests()[-1].count(TOLD) == 1
    runtime.execute("plugin", "uninstall", PLUGIN)
    has_worked_in_claude_code(runtime)
    runtime.run("and now?")
    assert TOLD in runtime.requests()[-1]


@pytest.mark.slow
def test_an_install_tells_gemini_what_claude_code_did_keeps_what_it_deletes_and_goes(
    tmp_path: Path, npm_place: NpmPlace, shown: Shown
) -> None:
    row = "Gemini CLI, install.py"
    with FakeGemini() as model:
        runtime = Gemini(tmp_path, npm_place(GEMINI), model)
        machine = (
            Machine(runtime.home, copy_repository(tmp_path / "copy"))
            .has_environment()
            .has_program()
        )
        has_worked_in_claude_code(runtime)
        machine.installed()
        shown(row, "install")
        runtime.run("plan the garden")
        assert TOLD in runtime.requests()[-1]
        runtime.run("--resume", "latest", "go on")
        # what was told before, and nothing once more
        assert runtime.requests()[-1].count(TOLD) == 1
        shown(row, "hook fires")
        assert "Look into the other sessions" in runtime.requests()[0]
        shown(row, "skill listed")
        wait_until(
            lambda: any("go on" in path.read_text() for path in archives(runtime)),
            "archive of the session",
        )
        for chat in (runtime.home / ".gemini").rglob("session-*.jsonl"):
            # as Gemini does with a chat that was resumed in another minute than that of its start
            chat.unlink()
        runtime.run("who is there?")
        assert (
            r"- \"plan the garden\" (just now, 4 messages): last: \"ECHO[2]: go on\""
            in runtime.requests()[-1]
        )
        assert machine.install("--uninstall").returncode == 0
        assert (runtime.home / ".gemini" / "settings.json").read_text() == Gemini.SETTINGS
        assert (
            mentions(
                runtime.home, ".gemini/tmp/", ".gemini/history/", ".claude/", ".session-memory/"
            )
            == []
        )
        shown(row, "uninstall leaves no trace")


def archives(runtime: OtherRuntime) -> list[Path]:
    """What was archived in the person's place."""
    return sorted((runtime.home / ".session-memory" / "conversations").glob("*.md"))


def test_the_package_comes_works_is_updated_and_goes_in_pi(
    tmp_path: Path, npm_place: NpmPlace, shown: Shown
) -> None:
    npm_place(PACKAGE)
    with FakeLLM() as model:
        row, pi, source = "Pi, package", Pi(tmp_path, model), copy_repository(tmp_path / "copy")
        pi.execute("install", str(source))
        shown(row, "install")
        pi.run("plan the garden")
        turn = pi.run("who is there?")
        assert [line.partition(" (")[0] for line in turn.told] == ['- "plan the garden"']
        shown(row, "hook fires")
        assert turn.request is not None
        assert "Look into the other sessions" in json.dumps(turn.request.body["system"])
        shown(row, "skill listed")
        make_next_version(source)  # a local package is used in place
        turn = pi.run("and now?")
        assert turn.request is not None
        assert f"{NEXT_WORDS}:\n[Session Activity]\n" in turn.request.text
        shown(row, "update")
        pi.execute("remove", str(source))
        assert mentions(pi.home, ".pi/agent/sessions/", ".session-memory/") == []
        shown(row, "uninstall leaves no trace")
