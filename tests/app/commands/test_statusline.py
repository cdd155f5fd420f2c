"""`session-memory statusline`: the line of the latest session in a directory, and tmux showing it."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from completion_scene import put_program
from hooks_scene import PlainUser
from own_process import plain_environment, run_here
from records import append, assistant, user, write

from session_memory.app.commands.statusline import EPILOG
from session_memory.awareness.activity.collisions.facts import SLACK_SECONDS

ODD_NAME = "#[dim]#{pid}#(touch m)"


class Scene:
    """A project whose session was told with its last prompt that discord edited the same file."""

    def __init__(self, root: Path, file: str = "app", rules: str = "") -> None:
        self.root, self.directory = root, root / "it's $(touch m)"
        self.directory.mkdir()
        self.user = PlainUser(root)
        self.user.config(f"statusline: true\n{rules}")
        folder = re.sub("[^A-Za-z0-9]", "-", str(self.directory))
        other = self.user.session(
            {"type": "custom-title", "customTitle": "discord"}, project=folder
        )
        mine = other.with_name(f"{self.user.session_id}.jsonl")
        for transcript in (mine, other):
            (append if transcript.exists() else write)(
                transcript, user("go on", cwd=str(self.directory))
            )
        self.user.run(cwd=str(self.directory), transcript_path=str(mine))
        for transcript in (mine, other):
            time.sleep(2 * SLACK_SECONDS)  # a sooner edit may be the same
            self._edit(transcript, self.directory / file)
        self.user.run(cwd=str(self.directory), transcript_path=str(mine))

    def _edit(self, transcript: Path, path: Path) -> None:
        id = f"toolu_{time.time_ns()}"
        call = {"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": str(path)}}
        append(transcript, assistant(call, cwd=str(self.directory)))
        path.write_text(f"{id}\n")
        result = {"tool_use_id": id, "type": "tool_result", "content": "Done."}
        append(transcript, user([result], cwd=str(self.directory)))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_here(["statusline", *words], plain_environment(self.root), self.root)


def without_ages(text: str) -> str:
    return re.sub(r"\((just now|\d+[mh])\)", "(…)", text)


def test_it_prints_the_line_of_the_latest_session_in_the_directory(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    done = scene.run(str(scene.directory))
    assert (done.returncode, done.stderr) == (0, "")
    assert without_ages(done.stdout) == '1 other active (…) · app also edited by "discord" (…)\n'


def test_it_prints_nothing_where_no_session_is(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (tmp_path / "empty").mkdir()
    done = scene.run(str(tmp_path / "empty"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_prints_nothing_of_an_excluded_session(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.user.config("statusline: true\nsessions: {discord: {ignore: true}}\n")
    assert scene.run(str(scene.directory)).stdout == ""


def test_it_says_how_to_switch_the_line_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.user.config("")
    done = scene.run(str(scene.directory))
    assert (done.returncode, done.stdout) == (1, "")
    assert "session-memory config statusline on" in done.stderr


def test_tmux_shows_a_file_s_name_as_it_is_and_runs_nothing(tmp_path: Path) -> None:
    tmux = shutil.which("tmux")
    if tmux is None:
        pytest.skip("tmux is not installed here")
    scene = Scene(tmp_path, ODD_NAME)
    environ = {
        **plain_environment(tmp_path),
        **put_program(tmp_path),
        "TMUX_TMPDIR": str(tmp_path),
        "TERM": "xterm",
    }
    config = tmp_path / "tmux.conf"
    config.write_text("\n".join(re.findall("set -g .*", EPILOG)))

    def run(*words: str) -> str:
        command = [tmux, "-L", "line", "-f", str(config), *words]
        return subprocess.run(
            command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
        ).stdout

    try:
        # a status line needs a terminal
        inner = f"{tmux} -L inner -f {config} new-session 'sleep 60'"
        run("new-session", "-d", "-x", "200", "-y", "5", "-c", str(scene.directory), inner)
        shown, deadline = "", time.monotonic() + 30
        while "also edited" not in shown and time.monotonic() < deadline:
            time.sleep(0.2)
            shown = run("capture-pane", "-p")
        assert f"{ODD_NAME} also edited by" in shown
        assert not list(tmp_path.rglob("m"))
    finally:
        run("kill-server")
        subprocess.run(
            [tmux, "-L", "inner", "kill-server"], env=environ, capture_output=True, check=False
        )
