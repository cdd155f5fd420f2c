"""A memory comes where one word shows its relevance, and nowhere else.

That is with the prompt, or with the git or package command that does what the memory is about.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from git_scene import repository
from hooks_scene import ROOT, PlainUser, run
from memories_scene import MemoryDirectory, fact, told_with_prompt
from own_process import plain_environment, run_here
from records import new_id
from stored import Stored

from session_memory.common.text.acting_commands import PACKAGE_PROGRAMS
from session_memory.memory.prompt_memories import PromptedSession
from session_memory.memory.strategy import Memory

LINT = ("preference", "Always run npm run lint before you commit")
STAGING = ("fact", "The staging database is read-only on Fridays")
LUXON = ("decision", "We use luxon for dates, not dayjs")
MAIN = ("preference", "Never push to main without a review")
RELEASE = ("preference", "Update CHANGELOG.md before each release")
MIGRATIONS = ("preference", "Back up the database before running migrations")
PACKAGES = ("decision", "Ask before you install a new dependency")
SQUASH = ("preference", "Squash the fixups when you merge")
HTTPX = ("decision", "HTTP calls go through httpx instead of requests")
DEPLOY = ("preference", "Deploy only after the smoke tests have passed")
MESSAGES = ("preference", "Commit messages are in English and name the ticket")
EVERYTHING = (
    LINT,
    STAGING,
    LUXON,
    MAIN,
    RELEASE,
    MIGRATIONS,
    PACKAGES,
    SQUASH,
    HTTPX,
    DEPLOY,
    MESSAGES,
)


class Remembering:
    """A user's repository, in which they noted memories with the command, before anything else of the
    program ran."""

    def __init__(self, root: Path) -> None:
        self.plain = PlainUser(root)
        self.cwd = str(repository(root / "project", app="1\n"))
        for kind, text in EVERYTHING:
            self.remember(text, "--kind", kind)

    def remember(self, *words: str) -> None:
        environ = plain_environment(self.plain.root)
        done = run_here(["remember", *words], environ, Path(self.cwd))
        assert done.returncode == 0, done.stderr

    def told(self, prompt: str = "", command: str = "") -> str:
        """The memories that a new session gets with a prompt or a command."""
        fields: dict[str, Any] = {"cwd": self.cwd, "session_id": new_id()}
        if prompt:
            return added(self.plain.run(prompt=prompt, **fields))
        fields |= {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": "toolu_1",
        }
        event = self.plain.event(hook_event_name="PreToolUse", **fields)
        return added(run(event, self.plain.root, "pre_tool_use"))


def added(output: bytes) -> str:
    return (
        str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output.strip() else ""
    )


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Remembering:
    return Remembering(tmp_path_factory.mktemp("person"))


@pytest.mark.parametrize(
    ("prompt", "memory"),
    [
        ("commit this", LINT),
        ("commit and push the change", LINT),
        ("please commit, but lint first", LINT),
        ("why can I not write to staging today?", STAGING),
        ("which date library do we use?", LUXON),
        ("push it", MAIN),
        ("prepare the release", RELEASE),
        ("write a migration for the new column", MIGRATIONS),
        ("can you merge this branch?", SQUASH),
        ("deploy it please", DEPLOY),
        ("add dayjs for the calendar", LUXON),
        ("install a library for charts", PACKAGES),
    ],
)
def test_a_prompt_gets_what_its_one_word_is_about(
    person: Remembering, prompt: str, memory: tuple[str, str]
) -> None:
    assert memory[1] in person.told(prompt)


@pytest.mark.parametrize(
    ("command", "memory"),
    [
        ("git commit -am x", LINT),
        ("cd app && git add -A && git commit -m 'Round the sums'", LINT),
        ("git -c core.pager=cat commit --amend --no-edit", MESSAGES),
        ("git push origin main", MAIN),
        ("git merge --no-ff feature", SQUASH),
        ("git push staging HEAD", STAGING),
        ("npm install dayjs", LUXON),
        ("npm i --save-dev dayjs@1.11", LUXON),
        ("pnpm add -D left-pad", PACKAGES),
        ("python3 -m pip install 'requests>=2'", HTTPX),
        ("uv pip install requests", HTTPX),
        ("sudo npm run deploy", DEPLOY),
        ("yarn release", RELEASE),
    ],
)
def test_a_command_gets_what_it_does(
    person: Remembering, command: str, memory: tuple[str, str]
) -> None:
    assert memory[1] in person.told(command=command)


@pytest.mark.parametrize(
    "prompt",
    [
        "rename the variable in line 40",
        "why is the page so slow?",
        "fix the failing test",
        "what does this function do?",
        "yes, go on",
        "add a button to the settings page that opens the profile of the customer",
        "the footer of the invoice is cut off in the print view, and the logo is missing",
        "look at the log of the last run and explain the error",
    ],
)
def test_a_prompt_about_something_else_gets_nothing(person: Remembering, prompt: str) -> None:
    assert person.told(prompt) == ""


@pytest.mark.parametrize(
    "command",
    [
        "git status --short",
        "git log --oneline -5 main",
        "git diff HEAD~1",
        "git show --stat",
        "git add -A",
        "git checkout -b fix/footer",
        "git log --grep commit",
        "npm test",
        "npm install",
        "pip install -r requirements.txt",
        "npm run lint",
        "npm run build && ls dist",
        "cargo check",
        "go test ./...",
        "echo git; grep -rn dayjs src",
        "cat package.json | grep npm ",
        "pip list",
    ],
)
def test_a_command_that_does_something_else_gets_nothing(person: Remembering, command: str) -> None:
    assert person.told(command=command) == ""


def test_the_message_of_a_commit_is_not_what_it_does(person: Remembering) -> None:
    told = person.told(command="git commit -m 'Use staging for dayjs'")
    assert STAGING[1] not in told
    assert LUXON[1] not in told


def test_a_package_with_a_longer_name_is_another_one(person: Remembering) -> None:
    assert LUXON[1] not in person.told(command="npm install dayjs-calendar-widget")
    assert HTTPX[1] not in person.told(command="pip install requests-toolbelt")


def test_one_word_is_not_enough_in_another_project(memory_dir: MemoryDirectory) -> None:
    memory_dir.keep(Memory(*STAGING, ""), strategy="person")  # in /srv/app
    prompt = "why can I not write to staging today?"
    here, elsewhere = (PromptedSession(None, place) for place in ("/srv/app", "/srv/other"))
    assert STAGING[1] in told_with_prompt(memory_dir.directory, prompt, session=here)
    assert told_with_prompt(memory_dir.directory, prompt, session=elsewhere) == ""


def test_a_word_that_is_common_in_the_project_is_not_enough(memory_dir: MemoryDirectory) -> None:
    prompt = "why does the voucher look odd?"
    memory_dir.keep(fact("Every voucher is rounded down at night", ""))
    assert "rounded" in told_with_prompt(memory_dir.directory, prompt)
    stored = Stored(Path(memory_dir.database))
    stored.add(*[f"where is voucher {number}?" for number in range(9)], cwd="/srv/app/shop")
    stored.close()
    memory_dir.keep(fact("The mails of the shop are sent at night", ""))
    assert told_with_prompt(memory_dir.directory, prompt) == ""
    assert "mails" in told_with_prompt(memory_dir.directory, "are the mails late?")


@pytest.mark.parametrize("extension", ["hooks/pi/index.ts", "hooks/entries.mjs"])
def test_extensions_ask_about_the_same_commands(extension: str) -> None:
    programs = "|".join(PACKAGE_PROGRAMS)
    assert rf"const MAY_ACT = /git|\b(?:{programs}) /;" in (ROOT / extension).read_text()
