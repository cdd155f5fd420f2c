"""`python -m bench.unasked HOME...`: what hooks tell a session of Claude Code about another one.

Nobody asks for it. Each HOME has the hooks of one tool in `.claude/settings.json`, as its installer
wrote them. One session reads `src/cart.py`, another one changes the clone, and then the first gets
a prompt, edits that file, or commits. The table has the hooks' reaction: `told` names the file or
branch, `refused` and `asks` stop the call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from session_memory.sessions.runtimes.claude import encode_cwd

from .command import run
from .scratch import scratch_directory

Call = tuple[str, dict[str, Any]]
EDIT: Call = (
    "Edit",
    {"file_path": "src/cart.py", "old_string": "slot = 1", "new_string": "slot = 2"},
)
OTHER_EDIT: Call = ("Edit", {"file_path": "README.md", "old_string": "shop", "new_string": "store"})
CHANGES: dict[str, tuple[Call, str, str]] = {
    "edits the file": (EDIT, "sed -i s/1/2/ src/cart.py", "src/cart.py"),
    "runs `sed -i` on it": (("Bash", {"command": "sed -i s/1/2/ src/cart.py"}), "", "src/cart.py"),
    "switches the branch": (("Bash", {"command": "git switch -qc fix/slots"}), "", "fix/slots"),
    "edits another file": (OTHER_EDIT, "sed -i s/shop/store/ README.md", "README.md"),
}
PROBES: dict[str, Call] = {
    "prompt": ("", {}),
    "edit": EDIT,
    "`git commit -a`": ("Bash", {"command": "git commit -am slots"}),
}
PAUSE_SECONDS = 4.0  # cc looks at most every three


class Session(NamedTuple):
    """A session of Claude Code in a clone: its hooks run, and its transcript grows."""

    home: Path
    clone: Path
    id: str
    pid: int

    @property
    def transcript(self) -> Path:
        return self.home / ".claude/projects" / encode_cwd(str(self.clone)) / f"{self.id}.jsonl"

    def start(self) -> None:
        registry = self.home / ".claude/sessions" / f"{self.pid}.json"
        registry.parent.mkdir(parents=True, exist_ok=True)
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        registry.write_text(
            json.dumps({"pid": self.pid, "sessionId": self.id, "cwd": str(self.clone)})
        )
        self.hooks("SessionStart", "startup", {"source": "startup"})

    def prompt(self, text: str) -> list[str]:
        answers = self.hooks("UserPromptSubmit", "", {"prompt": text})
        self.write("user", text)
        return answers

    def call(self, call: Call, command: str = "") -> list[str]:
        """Make a call, whose work `command` does, and return what the hooks before it answered."""
        tool, given = call[0], dict(call[1])
        if "file_path" in given:
            given["file_path"] = str(self.clone / given["file_path"])
        event = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{uuid.uuid4().hex}"}
        answers = self.hooks("PreToolUse", tool, event)
        self.write(
            "assistant",
            [{"type": "tool_use", "id": event["tool_use_id"], "name": tool, "input": given}],
        )
        if command:
            subprocess.run(["sh", "-c", command], cwd=self.clone, check=True)
        self.write(
            "user", [{"type": "tool_result", "tool_use_id": event["tool_use_id"], "content": "ok"}]
        )
        self.hooks(
            "PostToolUse",
            tool,
            {**event, "tool_response": {"filePath": given.get("file_path", "")}},
        )
        return answers

    def write(self, role: str, content: Any) -> None:
        message = {
            "role": role,
            "content": content,
            **({"id": uuid.uuid4().hex} if role == "assistant" else {}),
        }
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        record: dict[str, Any] = {
            "type": role,
            "message": message,
            "uuid": str(uuid.uuid4()),
            "parentUuid": None,
        }
        record |= {
            "sessionId": self.id,
            "cwd": str(self.clone),
            "isSidechain": False,
            "userType": "external",
        }
        record |= {"version": "2.1.332", "timestamp": now.replace("+00:00", "Z")}
        with self.transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def hooks(self, name: str, target: str, given: dict[str, Any]) -> list[str]:
        """Run the hooks of an event and return what they print, exit codes of 2 included."""
        event = {
            "hook_event_name": name,
            "session_id": self.id,
            "transcript_path": str(self.transcript),
        }
        event |= {"cwd": str(self.clone), "permission_mode": "default", **given}
        commands = self._commands(name, target)
        return [self._run(command, json.dumps(event)) for command in commands]

    def _run(self, command: str, text: str) -> str:
        path = f"{self.home}/.local/bin{os.pathsep}{os.defpath}"
        environment = {
            "HOME": str(self.home),
            "CLAUDE_PROJECT_DIR": str(self.clone),
            "CLAUDE_PID": str(self.pid),
        }
        environment |= {"PATH": path, "LANG": "C.UTF-8", "CLAUDE_CODE_ENTRYPOINT": "cli"}
        arguments = ["/bin/sh", "-c", command]
        done = subprocess.run(
            arguments,
            input=text,
            cwd=self.clone,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return f"exit {done.returncode} {done.stdout}{done.stderr if done.returncode == 2 else ''}"

    def _commands(self, name: str, target: str) -> Iterator[str]:
        settings = json.loads((self.home / ".claude/settings.json").read_text())
        for group in settings["hooks"].get(name, []):
            if group.get("matcher", "") in ("", "*") or re.fullmatch(group["matcher"], target):
                yield from (hook["command"] for hook in group["hooks"])


def verdict(answers: list[str], name: str) -> str:
    """Return what hooks that answered so do with the session."""
    text = "".join(answers)
    if "exit 2" in text or '"deny"' in text:
        return "refused"
    return "asks" if '"ask"' in text else "told" if name in text else "-"


def scene(home: Path, root: Path, change: str, probe: str) -> str:
    """Play one change with the hooks of a home, then one act of the first session; return its
    verdict."""
    copy, clone = root / "home", root / "shop"
    shutil.copytree(home, copy, symlinks=True, ignore=shutil.ignore_patterns("share"))
    (clone / "src").mkdir(parents=True)
    (clone / "src/cart.py").write_text("slot = 1\n")
    (clone / "README.md").write_text("shop\n")
    git = "git -c user.name=a -c user.email=a@b"
    subprocess.run(
        f"git init -qb main && git add . && {git} commit -qm base",
        shell=True,
        cwd=clone,
        check=True,
    )
    first, other = (
        Session(copy, clone, str(uuid.uuid4()), pid) for pid in (os.getpid(), os.getppid())
    )
    first.start()
    first.prompt("show me how the cart works")
    first.call(("Read", {"file_path": "src/cart.py"}))
    other.start()
    other.prompt("let people choose a slot")
    time.sleep(PAUSE_SECONDS)
    call, command, name = CHANGES[change]
    other.call(call, command or call[1]["command"])
    return verdict(
        first.prompt("now add a second slot") if probe == "prompt" else first.call(PROBES[probe]),
        name,
    )


def main(*homes: Path) -> None:
    print(f"| hooks of | another session | {' | '.join(PROBES)} |\n|{'---|' * (len(PROBES) + 2)}")
    for home in homes:
        for change in CHANGES:
            verdicts = [_played(home, change, probe) for probe in PROBES]
            print(f"| {home.name} | {change} | {' | '.join(verdicts)} |", flush=True)


def _played(home: Path, change: str, probe: str) -> str:
    with scratch_directory() as root:
        return scene(home, root, change, probe)


if __name__ == "__main__":
    run(main)
