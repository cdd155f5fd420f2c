"""No command prints escapes or invisible characters to a terminal or a pipe.

They are in every field that a repository, a transcript or a file name can set.
"""

from __future__ import annotations

import json
import os
import pty
import random
import re
import sys
import time
from pathlib import Path

import pytest
import share
from checkpoint_branch import BRANCH
from fork_server import Forked
from git_scene import git, repository
from records import assistant, codex_exchange, codex_line, new_id, record, tool_result, user, write
from store_scene import ROOT, StoreUser
from terminal_scene import printed_on

from session_memory.cli import COMMANDS
from session_memory.common.text.sanitize import plain

# A style that we never print, a title, a clipboard, a device string, C1 codes, bidi marks,
# controls, nothings, a tag.
MARKS = (
    "\x1b[35m\x1b]0;PWN\x07\x1b]52;c;QUFB\x1b\\\x1bPq#0\x1b\\\x9b35m\x9d0;x\x9c\u202e\u2066\x01\x08\x7f\u200b\u2060\ufeff"
    "\U000e0041\u2028FAKE\rFAKE"
)
NAME = f"od{MARKS}d"  # of what is shown within a line
FILE = f"od{MARKS}\nFAKEd.py".replace("/", "")
TEXT = f"please {MARKS.replace('FAKE', '')} it"  # a message may begin lines
REF = "od\x9b35m\u202e\u2066\u200b\U000e0041d"  # git allows no more in a name
IN_JSON = f"od{MARKS}\x00\ud800d"
OURS = re.compile("\x1b\\[(?:0|1|2|3|4|31|32|33|34|36)m")
STATUS = re.compile("\r[^\r\n\x1b]*\x1b\\[K")
USAGE = {"input_tokens": 100, "output_tokens": 100}
LINE = "one line of the cart's code here"

CALLS = """
agents --all
agents --all --json
archive --all --dry-run
archive --all
completion bash
config
config scope
conflicts
conflicts --all --json
since 30w
since 30w --json
since 30w --markdown
sessions --conversations
sessions --conversations --json
costs --by session
costs --by model
deliveries
deliveries SESSION
doctor
doctor store
errors boom
export SESSION --dry-run
export nothingNAME
forget SESSION --dry-run
forget nothingNAME
graph search NAME
handoff SESSION
handoff SESSION --to codex
host status --at HOST
host tasks --at HOST
host say main NAME --at HOST
ingest --dry-run
ingest --file NAME
install --dry-run
mcp --ipc NAME
memories
memories show MEMORY
memories search cart
memories search NAME
new NAME --template pi --dry-run
page --export SESSION --out PAGE
patterns
process --dry-run
process
proof
read SESSION --tools
read oddNAME
read nothingNAME
remember NAME
rescue
rescue --list --unknown
rescue --json --unknown
rescue NAME
rescue --session SESSION
restore
restore NAME
search please
search NAME
search please --json
search please --project NAME
sessions
sessions --all
sessions --json --all
read 1
read 2
read 3
read --conversation oddNAME
statusline
statusline --format tmux
team status
team join NAME
uninstall --dry-run
watch --once
why FILE:1
why cart.py:1
why HEAD
why TAG
why HEAD --json
why NAME:1
NAME
costs --NAME
"""


def in_yaml(text: str) -> str:
    """Return a text as YAML may have it: such characters only as escapes."""
    return '"' + "".join([c if c.isalnum() else f"\\U{ord(c):08x}" for c in text]) + '"'


class Hostile:
    """A person, their repository and its worktree, with such names in all of them."""

    def __init__(self, root: Path) -> None:
        self.user = StoreUser(root / "home")
        self.root = repository(root / "repo", **{"cart.py": f"{LINE}\n", FILE: f"{LINE}\n"})
        part = repository(root / "part")
        git(self.root, "submodule", "add", "-q", str(part), f"su{MARKS}b".replace("/", ""))
        git(self.root, "add", "-A")
        author = f"an{MARKS}n".replace("\r", "") + " <a@b.example>"
        git(
            self.root,
            "commit",
            "-q",
            "--author",
            author,
            "-m",
            f"sub{MARKS}ject".replace("\x01", ""),
        )
        git(self.root, "tag", REF)
        self.worktree = root / "tree"
        git(self.root, "worktree", "add", "-q", "-b", f"{REF}2", str(self.worktree))
        git(self.root, "switch", "-q", "-c", REF)
        for directory, name in ((self.root, "seven"), (self.worktree, "three")):
            for path in ("cart.py", FILE):
                (directory / path).write_text(LINE.replace("one", name) + "\n")
        self.odd_directory = root / f"re{MARKS}po".replace("/", "")
        self.odd_directory.mkdir()
        self.sessions = [new_id(), f"evil{MARKS}\nFAKE{new_id()}".replace("/", ""), new_id()]
        self.directories = [self.root, self.odd_directory, self.worktree]
        for session, directory in zip(self.sessions, self.directories):
            self._session(session, directory)
        self._codex()
        self._trajectory()
        self._checkpoint()
        self._ours()
        self._kept()

    def _session(self, session: str, directory: Path) -> None:
        word = "three" if directory == self.worktree else "seven"
        edit = {
            "file_path": f"{directory}/{FILE}",
            "old_string": LINE,
            "new_string": LINE.replace("one", word),
        }
        fields = {"sessionId": session, "cwd": str(directory), "gitBranch": REF, "version": IN_JSON}
        now = time.time() - 60
        records = [
            record("custom-title", customTitle=f"{NAME}\nFAKE", sessionId=session),
            user(f"{TEXT} of the file", at=now, **fields),
            assistant(
                f"I did {TEXT}",
                ("Edit", edit),
                at=now + 1,
                message={"model": IN_JSON, "usage": USAGE},
                **fields,
            ),
            tool_result(f"done {TEXT}", at=now + 2, **fields),
            assistant(
                ("Edit", {**edit, "file_path": f"{directory}/cart.py"}), at=now + 2, **fields
            ),
            assistant(
                (f"To{NAME}ol", {"command": f"make {NAME}"}),
                ("Task", {"subagent_type": NAME}),
                at=now + 3,
                **fields,
            ),
            assistant(("Bash", {"command": f"make te{NAME}st"}), at=now + 4, **fields),
        ]
        failed = tool_result(f"Exit code 1\nboom {NAME}", at=now + 5, **fields)
        call = records[-1]["message"]["content"][-1]["id"]
        failed["message"]["content"][0] |= {"is_error": True, "tool_use_id": call}
        records += [failed, assistant(TEXT, at=now + 6, **fields)]
        folder = re.sub("[^a-zA-Z0-9]", "-", str(directory))
        write(self.user.projects / folder / f"{session}.jsonl", *records)

    def _codex(self) -> None:
        folder = self.user.home / ".codex/sessions/2026/01/01"
        head = {
            "id": new_id(),
            "cwd": str(self.odd_directory),
            "cli_version": IN_JSON,
            "originator": IN_JSON,
            "git": {"branch": REF},
        }
        path = folder / f"rollout-2026-01-01T10-00-00-{head['id']}.jsonl"
        write(
            path,
            codex_line("session_meta", head),
            *codex_exchange(TEXT, TEXT, cwd=str(self.odd_directory)),
        )

    def _trajectory(self) -> None:
        steps = [
            {"step_id": n, "source": who, "message": TEXT, "model_name": IN_JSON}
            for n, who in ((1, "user"), (2, "agent"))
        ]
        agent = {"name": IN_JSON, "version": IN_JSON, "model_name": IN_JSON}
        document = {
            "schema_version": "ATIF-v1.5",
            "session_id": IN_JSON,
            "agent": agent,
            "steps": steps,
            "notes": IN_JSON,
        }
        path = self.user.home / ".atif" / f"od{MARKS}d.json".replace("/", "")
        path.parent.mkdir()
        path.write_text(json.dumps(document))

    def _checkpoint(self) -> None:
        other = repository(self.user.home / "clone", readme="hello\n")
        git(other, "checkout", "-q", "--orphan", BRANCH)
        folder = other / "ab" / f"cd{MARKS}".replace("/", "") / "0"
        folder.mkdir(parents=True)
        (folder / "metadata.json").write_text(
            json.dumps({"session_id": IN_JSON, "agent": IN_JSON, "created_at": IN_JSON})
        )
        (folder / "full.jsonl").write_bytes(json.dumps(user(TEXT, sessionId=IN_JSON)).encode())
        git(other, "add", "-A")
        git(other, "commit", "-q", "-m", f"Checkpoint {REF}")
        git(other, "fetch", "-q", ".", f"{BRANCH}:refs/heads/kept")

    def _ours(self) -> None:
        """Pages of ours that somebody else may have written: settings, archives, memories, handoffs."""
        home = self.user.home / ".session-memory"
        odd = in_yaml(NAME)
        self.user.config(
            f"keep: whole\n{odd}: {odd}\nscope: {odd}\nsessions:\n  {in_yaml(f'x{NAME}')}: exclude\n"
        )
        for folder in ("conversations", "memories", "handoffs"):
            (home / folder).mkdir(parents=True, exist_ok=True)
            (home / folder / f"2026-01-01-{FILE}.md").write_text(
                f"---\nsession: {odd}\n---\n# {NAME}\n\n{TEXT}\n"
            )
        self.user.run("ingest", cwd=self.root)
        self.user.run("remember", f"the cart is {NAME}", "--file", FILE, cwd=self.root)
        for page in (home / "memories").rglob("*.md"):
            page.write_text(page.read_text() + f"\n{TEXT}\n")
        settings = {
            "model": IN_JSON,
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"true {IN_JSON}"}]}]},
        }
        (self.user.home / ".claude/settings.json").write_text(
            json.dumps(settings, indent=2, ensure_ascii=True)
        )
        self.user.run("host", "init", self.host)
        self.user.run("host", "set", "main", "--chat", NAME, "--trigger", NAME, "--at", self.host)
        self.user.run("host", "schedule", "main", NAME, "--every", "3600", "--at", self.host)

    def _kept(self) -> None:
        """Upkeep keeps the sessions; then their runtime deletes the one with the odd id."""
        self.upkeep()
        next(self.user.projects.rglob("evil*.jsonl")).unlink()
        os.utime(self.user.home / ".session-memory/state/upkeep.lock", (1, 1))
        self.upkeep()

    def upkeep(self) -> None:
        done = self.user.run_command(
            sys.executable, "-I", f"{ROOT}/hooks/upkeep.py", str(self.user.home)
        )
        assert done.returncode == 0, done.stderr

    @property
    def host(self) -> Path:
        return self.user.home / "host"

    def words(self, line: str) -> list[str]:
        names = {
            "SESSION": self.sessions[0],
            "NAME": NAME,
            "HOST": str(self.host),
            "MEMORY": "x",
            "PAGE": f"{self.host}/page.html",
            "FILE": FILE,
            "TAG": REF,
        }
        words = line.split(" ")
        return [re.sub("|".join(names), lambda found: names[found[0]], word) for word in words]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    return Hostile(tmp_path_factory.mktemp("hostile"))


def on_terminal(hostile: Hostile, words: list[str]) -> str:
    """What a command prints to a terminal of its own, both streams."""
    master, slave = pty.openpty()
    environ = {**hostile.user.environment, "TERM": "xterm", "COLUMNS": "100"}
    with open(os.devnull, "rb") as nothing, open(slave, "wb", buffering=0) as out:
        started = Forked(words, environ, hostile.root, "cli", [nothing, out, out])
    printed = printed_on(master)
    started.wait(60)
    return printed


def test_every_command_is_called() -> None:
    called = {line.split()[0] for line in CALLS.strip().splitlines()}
    assert set(COMMANDS) - called == set()


def faults_in(text: str) -> list[str]:
    """Return the lines that hold what is not plain, or that a name begins."""
    return [line for line in text.split("\n") if plain(line) != line or line.startswith("FAKE")]


def test_the_names_are_shown(hostile: Hostile) -> None:
    """Else nothing would be tried."""
    for line in (
        "sessions --all",
        "conflicts",
        "restore",
        "handoff SESSION",
        "costs --by session",
        "memories",
        "search please",
        "read 2",
    ):
        assert "od0;x" in hostile.user.run(*hostile.words(line), cwd=hostile.root).stdout, line


def test_nothing_but_plain_characters_reaches_a_pipe(hostile: Hostile) -> None:
    wrong = {}
    for line in CALLS.strip().splitlines():
        done = hostile.user.run(*hostile.words(line), cwd=hostile.root)
        if found := faults_in(done.stdout) + faults_in(done.stderr):
            wrong[line] = found
        if "Traceback" in done.stderr:
            wrong[f"{line}: traceback"] = [done.stderr[-1500:]]
    assert not wrong, "\n".join(f"{line}: {found[:3]!a}" for line, found in wrong.items())


def test_nothing_but_plain_characters_and_our_styles_reaches_a_terminal(hostile: Hostile) -> None:
    wrong = {}
    lines = CALLS.strip().splitlines()
    seed = random.randrange(2**32)
    for line in random.Random(seed).sample(lines, share.some(len(lines), 20)):
        printed = on_terminal(hostile, hostile.words(line))
        if found := faults_in(OURS.sub("", STATUS.sub("", printed))):
            wrong[line] = found
    assert not wrong, f"seed {seed}: " + "\n".join(
        f"{line}: {found[:3]!a}" for line, found in wrong.items()
    )
