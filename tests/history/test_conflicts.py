"""Conflicts between branches with live sessions: found by upkeep and command, reported once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from session_memory.app.upkeep.runner import do_upkeep
from session_memory.sessions.runtimes.claude import encode_cwd

from ..git_scene import GIT_ENVIRONMENT, git, repository
from ..hooks_scene import PlainUser, run, told
from ..own_process import plain_environment, run_here
from ..page_scene import ServedPage
from ..records import append, assistant, tool_result, user, write
from ..store_scene import StoreUser

CART = "".join(f"line {number}\n" for number in range(1, 41))


def changed(number: int, words: str) -> str:
    return CART.replace(f"line {number}\n", f"{words}\n")


class Person:
    """A person with a session in each of two worktrees; the hook runs for the one in `main`."""

    def __init__(self, root: Path) -> None:
        self.home, self.main, self.fix = root / "home", root / "shop", root / "shop-fix"
        self.user = PlainUser(self.home)
        repository(self.main, cart=CART, other="1\n")
        git(self.main, "worktree", "add", "-q", "-b", "fix/login", str(self.fix))
        self.own = self.transcript(self.main, self.user.session_id)
        self.other = self.transcript(self.fix, "00000000-0000-4000-8000-0000000000aa")

    def transcript(self, root: Path, session_id: str) -> Path:
        return self.user.config_dir / "projects" / encode_cwd(str(root)) / f"{session_id}.jsonl"

    def says(
        self, path: Path, root: Path, request: str, file: str = "cart", at: float | None = None
    ) -> None:
        edit = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Edit",
            "input": {"file_path": str(root / file)},
        }
        fields: dict[str, Any] = {"cwd": str(root), "sessionId": path.stem, "at": at}
        records = [user(request, **fields), assistant(edit, **fields), tool_result(**fields)]
        (append if path.exists() else write)(path, *records)

    def both_edit(
        self,
        ours: str = changed(20, "ours"),
        theirs: str = changed(20, "theirs"),
        at: float | None = None,
    ) -> None:
        """Let both sessions edit the same file, the other one `at` a time."""
        (self.main / "cart").write_text(ours)
        (self.fix / "cart").write_text(theirs)
        self.says(self.own, self.main, "Mend the tax")
        self.says(self.other, self.fix, "Let people choose a time", at=at)

    def upkeep(self) -> None:
        (self.user.state_dir / "upkeep.lock").unlink(missing_ok=True)
        for lock in self.user.state_dir.glob("*upkeep*"):
            os.utime(lock, (0, 0))
        do_upkeep(str(self.user.place), {"HOME": str(self.home)})

    def prompt(self) -> str:
        answer = self.user.run(transcript_path=str(self.own), cwd=str(self.main))
        return told(answer) if answer else ""

    def edit(self, file: str = "cart", agent: str = "", **given: Any) -> dict[str, Any]:
        """What the hook answers as the session in `main` is about to edit a file there."""
        fields = {"agent_id": agent} if agent else {}
        event = self.user.event(
            transcript_path=str(self.own),
            cwd=str(self.main),
            hook_event_name="PreToolUse",
            tool_name="Edit",
            tool_use_id="toolu_9",
            tool_input={"file_path": str(self.main / file), **given},
            **fields,
        )
        output = run(event, self.home, "pre_tool_use", CLAUDE_CODE_ENTRYPOINT="cli")
        return dict(json.loads(output)["hookSpecificOutput"]) if output else {}

    def told_with_edit(self, file: str = "cart", agent: str = "") -> str:
        return str(self.edit(file, agent).get("additionalContext", ""))

    def conflicts(self) -> tuple[int, dict[str, Any]]:
        done = run_here(["conflicts", "--json"], plain_environment(self.home), self.main)
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


LINE = (
    "! cart: your line 20 conflicts with line 20 changed just now by "
    '"Let people choose a time" (Claude Code, branch fix/login)'
)


def test_a_conflict_is_told_once_until_it_changes_and_not_when_it_is_solved(person: Person) -> None:
    person.both_edit()
    person.prompt()
    person.upkeep()
    assert LINE in person.prompt()
    assert "conflict" not in person.prompt()
    person.upkeep()
    assert "conflict" not in person.prompt()
    (person.fix / "cart").write_text(changed(20, "theirs again"))
    person.upkeep()
    assert LINE in person.prompt()
    (person.fix / "cart").write_text(changed(20, "theirs for the last time"))
    person.upkeep()
    (person.fix / "cart").write_text(CART)
    person.upkeep()
    assert "conflict" not in person.prompt()
    assert person.conflicts() == (0, {"conflicts": []})


def test_a_conflict_is_told_with_the_first_prompt_though_nothing_else_is_new(
    person: Person,
) -> None:
    person.both_edit()
    person.upkeep()
    assert LINE in person.prompt()


def test_a_conflict_is_told_with_the_call_that_edits_the_file_once_in_each_state(
    person: Person,
) -> None:
    person.both_edit()
    person.prompt()
    person.upkeep()
    assert "conflict" not in person.told_with_edit("other")
    assert LINE in person.told_with_edit()
    assert "conflict" not in person.told_with_edit()
    assert "conflict" not in person.prompt()
    (person.fix / "cart").write_text(changed(20, "theirs again"))
    person.upkeep()
    assert LINE in person.told_with_edit()


def test_what_a_prompt_told_is_told_with_no_call_but_with_that_of_a_sub_agent(
    person: Person,
) -> None:
    person.both_edit()
    person.upkeep()
    assert LINE in person.prompt()
    assert "conflict" not in person.told_with_edit()
    assert LINE in person.told_with_edit(agent="a1")
    assert "conflict" not in person.told_with_edit(agent="a1")


def test_damaged_conflicts_are_told_with_no_call_and_logged(person: Person) -> None:
    person.both_edit()
    person.upkeep()
    person.prompt()
    (person.user.state_dir / "conflicts.json").write_text("{")
    assert "conflict" not in person.told_with_edit()
    assert "conflicts" in person.user.log()[-1]


def test_damaged_changes_of_a_team_hide_no_conflict_here(person: Person) -> None:
    person.both_edit()
    person.user.state_dir.mkdir(parents=True, exist_ok=True)
    for content in ("{", "[]", json.dumps({str(person.main): [["of another version", ["cart"]]]})):
        (person.user.state_dir / "team-changes.json").write_text(content)
        assert person.conflicts()[0] == 1, content


def test_changes_that_merge_are_told_by_nobody(person: Person) -> None:
    person.both_edit(theirs=changed(3, "theirs"))
    person.upkeep()
    assert "conflict" not in person.prompt()
    assert not (person.user.state_dir / "conflicts.json").exists()


def test_a_branch_that_its_session_has_left_conflicts_too(person: Person) -> None:
    person.both_edit(at=time.time() - 300)
    git(person.fix, "commit", "-qam", "theirs")
    log = person.main / ".git/worktrees/shop-fix/logs/HEAD"
    log.write_text(re.sub(r"> \d+ ", f"> {int(time.time()) - 600} ", log.read_text()))
    git(person.fix, "checkout", "-q", "-b", "next", "main")
    _, found = person.conflicts()
    assert [(one["path"], one["branch"]) for one in found["conflicts"]] == [("cart", "fix/login")]


def test_commits_of_main_that_touch_what_a_session_changed_are_told(person: Person) -> None:
    person.both_edit(ours=changed(3, "ours"))
    git(person.fix, "commit", "-qam", "theirs")
    git(person.main, "commit", "-qam", "ours")
    _, found = person.conflicts()
    assert [
        (one["path"], one["root"], one["branch"], one["commits"]) for one in found["conflicts"]
    ] == [("cart", str(person.fix), "main", 1)]


def test_what_a_rule_hides_is_named_in_no_conflict(person: Person) -> None:
    person.both_edit()
    person.upkeep()
    for rule in (
        "sessions: {00000000-0000-4000-8000-0000000000aa: {ignore: true}}\n",
        f'projects: {{"{person.fix}": {{ignore: true}}}}\n',
        'sessions: {"*": {quote: false}}\n',
    ):
        person.user.config(rule)  # after upkeep kept the conflict, and before it runs again
        assert "conflict" not in person.told_with_edit(), rule
        assert "conflict" not in person.prompt(), rule
        assert person.conflicts() == (0, {"conflicts": []}), rule
    person.user.config("")
    person.upkeep()
    assert LINE in person.prompt()


def test_collisions_that_are_off_cost_nothing(person: Person) -> None:
    person.user.config("collisions: off\n")
    person.both_edit()
    person.upkeep()
    assert not (person.user.state_dir / "conflicts.json").exists()


def test_a_command_exits_with_1_if_sessions_of_the_last_day_conflict(person: Person) -> None:
    assert person.conflicts() == (0, {"conflicts": []})
    person.both_edit()
    code, found = person.conflicts()
    assert code == 1
    assert {(one["root"], tuple(map(tuple, one["lines"]))) for one in found["conflicts"]} == {
        (str(person.main), ((20, 20), (20, 20))),
        (str(person.fix), ((20, 20), (20, 20))),
    }
    done = run_here(["conflicts"], plain_environment(person.home), person.main)
    assert LINE.removeprefix("! ") in done.stdout
    os.utime(person.other, (1, 1))  # as an old session, which is left out
    assert person.conflicts() == (0, {"conflicts": []})


def test_a_home_without_sessions_is_no_fault(tmp_path: Path) -> None:
    place = tmp_path / ".session-memory"
    place.mkdir()
    do_upkeep(str(place), {"HOME": str(tmp_path)})
    assert (place / "state" / "upkeep.json").exists()
    assert not (place / "state" / "hook.log").exists()


def test_before_the_first_session_nothing_conflicts(tmp_path: Path) -> None:
    done = run_here(["conflicts", "--all"], plain_environment(tmp_path), tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "The sessions of the last day have no conflicts.\n",
    )


def edits_at_known_times(
    person: Person, path: Path, root: Path, words: str, minutes: float
) -> None:
    """A session edits line 20 so many minutes ago, as its transcript and the time of the file show."""
    then, fields = time.time() - minutes * 60, {"cwd": str(root), "sessionId": path.stem}
    edit = {
        "type": "tool_use",
        "id": f"toolu_{words}",
        "name": "Edit",
        "input": {"file_path": str(root / "cart")},
    }
    result = {"tool_use_id": f"toolu_{words}", "type": "tool_result", "content": "ok"}
    said = [user("Mend it", at=then - 2, **fields), assistant(edit, at=then - 1, **fields)]
    (append if path.exists() else write)(path, *said, user([result], at=then + 1, **fields))
    (root / "cart").write_text(changed(20, words))
    os.utime(root / "cart", (then, then))


COPY = "and you edited it here"


def test_the_edit_that_a_conflict_tells_of_is_not_told_a_second_time(person: Person) -> None:
    edits_at_known_times(person, person.own, person.main, "ours", 30)
    edits_at_known_times(person, person.other, person.fix, "theirs", 20)
    person.upkeep()
    told = person.prompt()
    assert "your line 20 conflicts with" in told
    assert COPY not in told


def test_without_a_conflict_the_edit_in_the_other_worktree_is_told(person: Person) -> None:
    edits_at_known_times(person, person.own, person.main, "ours", 30)
    edits_at_known_times(person, person.other, person.fix, "theirs", 20)
    assert COPY in person.prompt()


def test_an_edit_that_is_newer_than_the_judgement_is_told_beside_the_conflict(
    person: Person,
) -> None:
    edits_at_known_times(person, person.own, person.main, "ours", 30)
    edits_at_known_times(person, person.other, person.fix, "theirs", 20)
    person.upkeep()
    edits_at_known_times(person, person.other, person.fix, "later", 10)
    told = person.prompt()
    assert "your line 20 conflicts with" in told
    assert COPY in told


def test_a_prompt_that_finds_an_edit_in_another_worktree_starts_the_judgement_and_the_next_tells_it(
    person: Person,
) -> None:
    edits_at_known_times(person, person.own, person.main, "ours", 30)
    edits_at_known_times(person, person.other, person.fix, "theirs", 20)
    assert COPY in person.prompt()
    kept = person.user.state_dir / "conflicts.json"
    deadline = time.monotonic() + 60
    while not kept.exists():
        assert time.monotonic() < deadline, "no judgement"
        time.sleep(0.05)
    assert "your line 20 conflicts with" in person.prompt()
    assert not (person.user.state_dir / "upkeep.json").exists()  # only this part of upkeep ran


def test_a_prompt_starts_no_judgement_if_upkeep_is_off_or_one_was_started_just_now(
    tmp_path: Path,
) -> None:
    off, started = Person(tmp_path / "off"), Person(tmp_path / "started")
    off.user.config("upkeep: off\n")
    started.user.state_dir.mkdir(parents=True)
    (started.user.state_dir / "conflicts.lock").touch()
    for person in (off, started):
        edits_at_known_times(person, person.own, person.main, "ours", 30)
        edits_at_known_times(person, person.other, person.fix, "theirs", 20)
        assert COPY in person.prompt()
    time.sleep(2)
    assert not (off.user.state_dir / "conflicts.lock").exists()
    assert not [one for one in (off, started) if (one.user.state_dir / "conflicts.json").exists()]


class Asked(Person):
    """A person whose settings ask, and who was told of what the sessions edited."""

    def conflict(self, ours: str, theirs: str) -> None:
        self.user.config("collisions: ask\n")
        self.both_edit(ours, theirs)
        for path in (self.main / "cart", self.fix / "cart"):
            os.utime(path, (time.time() - 60,) * 2)
        self.upkeep()
        self.prompt()

    def reason(self, old: str, **given: Any) -> str:
        found = self.edit(old_string=old, new_string="new", **given)
        return str(found.get("permissionDecisionReason", ""))


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def two_changed(words: str) -> str:
    return changed(10, f"{words} ten").replace("line 30\n", f"{words} thirty\n{words} more\n")


def test_the_user_is_asked_before_an_edit_of_lines_that_conflict(asked: Asked) -> None:
    asked.conflict(two_changed("ours"), two_changed("theirs"))
    by = 'changed 1m ago by "Let people choose a time" (Claude Code, branch fix/login)'
    second = f"session-memory: cart: your lines 30-31 conflict with lines 30-31 {by}"
    assert (
        asked.reason("ours ten")
        == f"session-memory: cart: your line 10 conflicts with line 10 {by}"
    )
    assert asked.reason("line 29\nours thirty\n") == second
    assert asked.reason("ours more") == second
    assert asked.reason("line 29\n") == ""
    assert asked.reason("line 1") == ""  # stands there more than once
    assert asked.reason("no such line") == ""


def test_the_user_is_asked_until_the_edit_was_allowed_and_again_if_the_other_side_changes(
    asked: Asked,
) -> None:
    asked.conflict(changed(20, "ours"), changed(20, "theirs"))
    assert asked.reason("ours")
    assert asked.reason("ours")
    fields = {"cwd": str(asked.main), "sessionId": asked.own.stem}
    edit = {
        "type": "tool_use",
        "id": "toolu_9",
        "name": "Edit",
        "input": {"file_path": str(asked.main / "cart")},
    }
    result = {"tool_use_id": "toolu_9", "type": "tool_result", "content": "", "is_error": False}
    append(asked.own, assistant(edit, **fields), user([result], **fields))
    assert asked.reason("ours") == ""
    (asked.main / "cart").write_text(changed(20, "ours again"))
    asked.upkeep()
    assert asked.reason("ours again") == ""
    (asked.fix / "cart").write_text(changed(20, "theirs again"))
    asked.upkeep()
    assert asked.reason("ours again")


def test_nobody_is_asked_with_tell_or_about_lines_of_a_file_that_was_written_since_they_were_judged(
    asked: Asked,
) -> None:
    asked.conflict(changed(20, "ours"), changed(20, "theirs"))
    for setting in ("tell", "ask"):  # what was judged before the settings changed does not count
        asked.user.config(f"collisions: {setting}\n")
        asked.upkeep()
        assert bool(asked.reason("ours")) == (setting == "ask")
    later = time.time() + 60
    os.utime(asked.main / "cart", (later, later))
    assert asked.reason("ours") == ""


def test_a_conflict_in_a_file_whose_name_is_sanitized_is_told_with_its_call(person: Person) -> None:
    name = "a <b>.txt"
    for root in (person.main, person.fix):
        (root / name).write_text(f"{root}\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "name")
        person.says(person.own if root == person.main else person.other, root, "Name it", name)
    person.prompt()
    person.upkeep()
    assert (
        "! a ‹b›.txt: your change conflicts with a change made just now by"
        in person.told_with_edit(name)
    )


def partial_clone_of(person: Person, root: Path) -> None:
    """Makes the person's two worktrees those of a partial clone that lacks the file's version before both."""
    git(person.main, "config", "uploadpack.allowFilter", "true")
    for place, words in ((person.main, "ours"), (person.fix, "theirs")):
        (place / "cart").write_text(changed(20, words))
        git(place, "commit", "-q", "-a", "-m", words)
    person.main, origin = root / "part", person.main
    person.fix = root / "part-fix"
    git(root, "clone", "-q", "--filter=blob:none", f"file://{origin}", str(person.main))
    git(
        person.main, "worktree", "add", "-q", "-b", "fix/login", str(person.fix), "origin/fix/login"
    )
    person.own = person.transcript(person.main, person.user.session_id)
    person.other = person.transcript(person.fix, "00000000-0000-4000-8000-0000000000aa")
    person.says(person.own, person.main, "Mend the tax")
    person.says(person.other, person.fix, "Let people choose a time")


def test_in_a_partial_clone_the_file_that_cannot_be_judged_is_named_and_how_to_fetch_it(
    person: Person, tmp_path: Path
) -> None:
    partial_clone_of(person, tmp_path)
    _, found = person.conflicts()
    # what main got since needs no file
    assert [one["commits"] for one in found["conflicts"]] == [1]
    [pair] = found["not_judged"]
    assert (sorted(pair["sides"]), pair["paths"]) == (["fix/login", "main"], ["cart"])
    assert "this clone is partial" in pair["reason"]
    done = run_here(["conflicts"], plain_environment(person.home), person.main)
    assert "Not judged: " in done.stdout
    with ServedPage(StoreUser(person.home)) as page:
        page.until("Not judged: ", "/branches/judged")
    [command] = re.findall(r"`git ([^`]+)`", pair["reason"])
    done = subprocess.run(
        ["git", *command.split(" ")],
        cwd=person.main,
        env=GIT_ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr  # they conflict
    code, found = person.conflicts()
    assert code == 1
    assert [one["commits"] for one in found["conflicts"]] == [0, 0, 1]
    assert "not_judged" not in found
