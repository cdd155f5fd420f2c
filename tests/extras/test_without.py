"""Each extra can be deleted: its folder, and its rows of `extension_points`."""

from __future__ import annotations

import ast
import http.client
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from copied_program import SINGLE_FILES, copy_parts, failures_in
from own_process import plain_environment
from records import exchange
from store_scene import COMMAND, StoreUser

from session_memory.extension_points import TOOLS

EXTRAS = ("conformance", "graph", "host", "page", "proof", "team")
COMMANDS = ("graph", "host", "page", "proof", "team")
# Tests of what calls a row of an extra or lies beside it: they pass in a copy without the extra.
NEIGHBOURS = {
    "conformance": (
        "sessions/runtimes/test_claude_records.py",
        "sessions/runtimes/test_codex_records.py",
    ),
    "graph": (
        "memory/test_queue.py",
        "memory/test_summary.py",
        "app/upkeep/test_steps.py",
        "app/tools/test_tools.py -k 'not these_tools and not documentation_lists'",
    ),
    "host": (
        "app/commands/test_status.py -k 'not of_a_host'",
        "app/upkeep/test_upkeep.py",
        "memory/test_private_memories.py",
        "awareness/events/test_isolation.py",
    ),
    "page": (
        "extras/proof/test_proof.py -k 'not the_page'",
        "app/commands/test_search_output.py -k 'not to_a_dash'",
        "app/commands/test_costs.py",
        "history/patterns/test_why.py",
    ),
    "proof": (
        "extras/page/test_states.py",
        "extras/page/test_session.py",
        "app/commands/test_deliveries.py",
        "history/patterns/test_patterns.py",
    ),
    "team": (
        "app/commands/test_search_output.py",
        "history/patterns/test_handoff.py",
        "history/test_conflicts.py",
        "history/store/test_search.py -k 'not postgres'",
        "memory/test_memory_keeping.py",
        "extras/page/test_memories_view.py",
        "extras/page/test_search_view.py",
        "extras/host/test_host_parts.py",
        "awareness/activity/test_conflict_lines.py",
    ),
}
SESSION = "8f3a-cart"
HOOKS = ("session_start", "user_prompt_submit", "pre_tool_use", "pre_compact", "session_end")


def without(extra: str, rows: ast.Module) -> ast.Module:
    """Return the tables of `extension_points` without the rows that lead to an extra."""
    for node in ast.walk(rows):
        if isinstance(node, ast.Dict):
            kept = [
                (key, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if f"'extras.{extra}." not in ast.unparse(value) or isinstance(value, ast.Dict)
            ]
            node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
    return rows


class Copy:
    """A copy of the program without an extra, and a user of it with a session."""

    def __init__(self, folder: Path, extra: str, *, with_rows: bool = False) -> None:
        self.root = folder / "copy"
        self.root.mkdir(parents=True)
        copy_parts(("session_memory", "hooks", "scripts", "skills", "templates"), self.root)
        copy_parts(SINGLE_FILES, self.root)
        shutil.rmtree(self.root / "session_memory" / "extras" / extra)
        table = self.root / "session_memory" / "extension_points.py"
        if not with_rows:
            table.write_text(ast.unparse(without(extra, ast.parse(table.read_text()))))
            assert f"extras.{extra}." not in table.read_text()
        self.user = StoreUser(folder / "home")
        self.project = self.user.home / "project"
        self.project.mkdir()
        self.transcript = self.user.session(SESSION, *exchange("Show me how the cart works", "So."))
        self.environment = {**plain_environment(self.user.home), "PYTHONPATH": str(self.root)}

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            env=self.environment,
            cwd=self.project,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("-c", COMMAND, *words)

    def hook(self, name: str) -> subprocess.CompletedProcess[str]:
        event = {
            "session_id": SESSION,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": name,
            "prompt": "How are carts stored?",
            "tool_name": "Edit",
            "tool_input": {"file_path": str(self.project / "cart.py")},
            "trigger": "manual",
            "source": "startup",
        }
        script = self.root / "hooks" / f"{name}.py"
        return self.run("-I", "-S", str(script), given=json.dumps(event))


@pytest.mark.sample(2)
@pytest.mark.parametrize("extra", EXTRAS)
def test_all_others_import_and_answer_without_an_extra(extra: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path, extra)
    program = Path(__file__).with_name("without.py")
    done = copy.run(str(program), SESSION, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize("extra", EXTRAS)
def test_hooks_end_quietly_without_an_extra(extra: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path, extra)
    for name in HOOKS:
        done = copy.hook(name)
        assert (name, done.returncode, done.stderr) == (name, 0, "")
        assert name not in ("pre_compact", "session_end") or done.stdout == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_of_a_deleted_extra_is_not_listed(extra: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path, extra)
    listed = re.findall(r"^  ([a-z]+) ", copy.command("--help").stdout, re.MULTILINE)
    assert "search" in listed
    assert extra not in listed


@pytest.mark.sample(2)
@pytest.mark.parametrize("extra", EXTRAS)
def test_agents_lose_its_tools_and_keep_all_others(extra: str, tmp_path: Path) -> None:
    listing = (
        "from session_memory.app.tools.definitions import ALL; print(*[tool.name for tool in ALL])"
    )
    done = Copy(tmp_path, extra, with_rows=True).run("-c", listing)
    others = [name for name, place in TOOLS.items() if not place.startswith(f"extras.{extra}.")]
    assert (done.stdout.split(), done.stderr) == (others, "")


def test_an_option_of_an_extra_that_was_deleted_without_its_rows_says_so(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "team", with_rows=True)
    done = copy.command("search", "cart", "--team")
    assert (done.returncode, done.stdout) == (1, "")
    assert "this copy of session-memory lacks that feature" in done.stderr
    assert "team" not in re.findall(r"^  ([a-z]+) ", copy.command("--help").stdout, re.MULTILINE)


@pytest.mark.sample(1)
@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"page"}))
def test_the_page_shows_its_views_without_an_extra(extra: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path, extra)
    command = [sys.executable, "-u", "-c", COMMAND, "page", "--no-browser"]
    with subprocess.Popen(
        command, env=copy.environment, cwd=copy.project, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)(/[^/]+)(/enter\?token=\S+)", line)
            assert found, line
            assert statuses(int(found[1]), found[2], found[3], extra) == {}
        finally:
            process.terminate()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("extra", "words"), [(extra, file) for extra, files in NEIGHBOURS.items() for file in files]
)
def test_tests_of_its_neighbours_pass_without_an_extra(
    extra: str, words: str, tmp_path: Path
) -> None:
    assert failures_in(Copy(tmp_path, extra).root, *shlex.split(f"tests/{words}")) == ""


def statuses(port: int, root: str, entrance: str, extra: str) -> dict[str, int]:
    """Return the paths of views that are not shown, with their status."""
    cookie, paths = "", [entrance, "/", "/list", "/timeline", "/files", "/search?q=cart"]
    paths += ["/memories", "/patterns", "/branches", "/costs", f"/session/{SESSION}"]
    failed = {}
    for path in paths + ([] if extra == "proof" else ["/proof", "/proof/counted"]):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", root + path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        cookie = cookie or (answer.getheader("set-cookie") or "").partition(";")[0]
        answer.read()
        connection.close()
        if answer.status >= 400:
            failed[path] = answer.status
    return failed
