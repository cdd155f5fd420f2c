"""The first screen of the README, done word for word: its picture and its first command, in a fresh
home with two real clients and their fake models."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import ExitStack
from html import unescape
from pathlib import Path

from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from git_scene import git
from install_machine import PYTHON, copy_repository, directory_of
from runtimes_scene import EDIT, READ

WRITER, READER = "codex", "claude-code"
ROOT = Path(__file__).resolve().parents[3]
MOST_SECONDS = 300  # from `git clone` on


def test_what_the_first_screen_says_brings_the_line_that_it_shows(
    tmp_path: Path, npm_place: NpmPlace
) -> None:
    origin = copy_repository(tmp_path / "origin")
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "published")
    screen = (origin / "README.md").read_text().partition("## What it costs")[0]
    (picture,) = re.findall(r"^!\[.*\]\((.*)\)$", screen, re.M)
    texts = re.findall(r"<text[^>]*>(.*?)</text>", (ROOT / picture).read_text(), re.S)
    shown = " ".join(" ".join(unescape(re.sub("<[^>]+>", "", text)) for text in texts).split())
    file, prompt = re.findall(
        r'! (\S+): edited \w+ ago by "([^"]*)" \(Codex\), after you read it', shown
    )[0]
    command = re.findall(r"^    (git clone .*)$", screen, re.M)[0]
    with ExitStack() as stack:
        users = {}
        for name in (WRITER, READER):
            client = CLIENTS[name]
            model = stack.enter_context(client.model())
            place = npm_place(client.package)
            users[name] = User(name, client.program(tmp_path, place, model), model)
        project = users[READER].program.project
        path = project / file
        path.parent.mkdir(parents=True)
        path.write_text("one slot\n")
        programs = {
            "python3": PYTHON,
            "claude": users[READER].program.executable,
            "codex": users[WRITER].program.command[0],
        }
        paths = directory_of(tmp_path / "bin", programs)

        started = time.monotonic()
        script = re.sub(r"https://\S+", str(origin / ".git") + " session-memory", command)
        environment = {
            "HOME": str(tmp_path / "home"),
            "PATH": f"{paths}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }
        environment |= {
            name: value for name, value in os.environ.items() if name.startswith("PIP_")
        }
        done = subprocess.run(
            ["/bin/sh", "-ec", script],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        reader, writer = users[READER], users[WRITER]
        reader.orders("Show me how the cart works.", reader.call(READ, str(path)))
        reader.ask("Show me how the cart works.")
        writer.orders(prompt, writer.call(EDIT, str(path), "one slot", "any slot"))
        writer.ask(prompt)
        assert path.read_text() == "any slot\n"
        reader.ask("Now add a second slot.")
        assert time.monotonic() - started < MOST_SECONDS
    line = f'! {file}: edited just now by \\"{prompt}\\" (Codex), after you read it'
    (transcript,) = (tmp_path / "home" / ".claude" / "projects").rglob("*.jsonl")
    assert line in transcript.read_text()
