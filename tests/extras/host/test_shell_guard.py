"""Shell commands that would reveal other groups, which a group's agent may not run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from host_scene import HostMachine, about

from session_memory.extras.host._callbacks import OF_THE_MACHINE, OUTSIDE, refusal

ROOT = "/srv/host/groups/garden"
BEYOND = (
    "du ../..",
    "du -a ..",
    "echo ../*",
    "echo ~/../*",
    "echo ~",
    "test -e ../family",
    "readlink -f a/../../b",
    "stat -c %n /srv/host/groups/*",
    "ls /srv/host/groups/gardener",
    f"ls {ROOT}/../family",
    "echo ${PWD%/*}/*",
    "echo $HOME",
    "echo $(dirname x)",
    "echo `dirname x`",
    "echo .?/*",
    "echo .*/*",
    "echo .[.]/*",
    "echo .{.,}/*",
    "echo {..,x}/*",
    "echo \\../*",
    "echo .\\./*",
    'echo .""./*',
    "echo '..'/*",
    'echo "."./*',
    "du $'\\x2e\\x2e'",
    "cat < ../x",
    "ls >/tmp/x",
    "diff <(ls) x",
    "grep --file=../x y",
    "git -C .. log",
    "a=..; ls",
    "find / -name x",
)
OF_ALL = (
    "ps",
    "ps aux",
    "ls; ps",
    "ls | ps",
    "ls && ps -ef",
    "\\ps",
    "'ps'",
    "timeout 5 ps",
    "X=1 ps",
    "sudo -n pgrep -a claude",
    "lsof -p 1",
    "df -a",
    "w",
    "top -bn1",
    "ss -xap",
    "(ps)",
    "xargs -n 1 pwdx",
    "if ps; then ls; fi",
    "{ ps; }",
    "ls;\nps",
)
HARMLESS = (
    "ls",
    "ls -la conversations",
    f"cat {ROOT}/CLAUDE.md",
    f"ls {ROOT}",
    "du -a .",
    "grep -rn 'ps aux' .",
    "echo ps",
    "git log --oneline",
    "git show HEAD~2",
    "find . -name '*.md'",
    "wc -l notes/*.md 2>/dev/null",
    "cat .env",
    "ls .config/*",
    "echo wait...",
    'grep "foo$" a.md',
    "echo 50%",
    "cat a..b",
    "git diff HEAD..main",
)


def test_what_reaches_beyond_the_directory_or_shows_the_machine_is_refused_and_nothing_else() -> (
    None
):
    for commands, expected in ((BEYOND, OUTSIDE), (OF_ALL, OF_THE_MACHINE), (HARMLESS, "")):
        assert [command for command in commands if refusal(command, ROOT) != expected] == []


def test_what_the_owner_allows_is_allowed() -> None:
    for entry, command, is_allowed in (
        ("Bash", "du ../..", True),
        ("Bash(du:*)", "du ../..", True),
        ("Bash(du *)", "du ../..", True),
        ("Bash(ps aux)", "ps aux", True),
        ("Bash(ps aux)", "ps auxe", False),
        ("Bash(du:*)", "ps", False),
        ("WebSearch", "ps", False),
    ):
        assert (refusal(command, ROOT, ["WebSearch", entry]) == "") == is_allowed, (entry, command)


def test_an_agent_does_not_learn_that_there_are_other_groups(host: HostMachine, group: str) -> None:
    # as of an owner who keeps the host under version control
    repository = Path(host.layout.root, ".git")
    repository.mkdir(exist_ok=True)
    (repository / "HEAD").write_text("ref: refs/heads/work-of-all\n")
    (repository / "objects").mkdir(exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    commands = [
        "du -a ../..",
        "ps aux",
        "echo ../*",
        "lsof",
        "df -a",
        "git status",
        "readlink -f ../x",
    ]
    tools = [{"name": "Bash", "input": {"command": command}} for command in commands]
    tools.append(
        {
            "name": "Monitor",
            "input": {"command": "echo ../*", "description": "look", "timeout_ms": 1000},
        }
    )
    host.api.replies = [{"tools": tools}, "Looked."]
    host.ask(group, "look m-bed-1")
    seen = json.dumps([request.body for request in host.api.prompts() if "m-bed-1" in request.text])
    assert len(about(host, "m-bed-1")) == 1
    assert seen.count("Not allowed: ") >= len(tools) - 1
    assert set(re.findall(r"\bg[0-9]+\b", seen)) <= {group}
    assert "work-of-all" not in seen
