"""Conflicts between two machines, found in what each shares through a real server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from session_memory.app.upkeep.runner import do_upkeep
from session_memory.sessions.runtimes.claude import encode_cwd

from ...git_scene import git, repository
from ...hooks_scene import PlainUser, told
from ...own_process import plain_environment, run_here
from ...records import append, assistant, tool_result, user, write
from ...team_scene import ORIGIN, Team

CART = "".join(f"line {number}\n" for number in range(1, 41))


def changed(number: int, words: str) -> str:
    return CART.replace(f"line {number}\n", f"{words}\n")


class Machine:
    """The machine of a member of the team, with a clone of the repository and one session in it."""

    def __init__(self, root: Path, origin: Path, team: Team, name: str) -> None:
        self.home, self.clone = root / name, root / name / "app"
        self.user = PlainUser(self.home)
        git(root, "clone", "-q", str(origin), str(self.clone))
        git(self.clone, "remote", "set-url", "origin", ORIGIN)
        self.own = (
            self.user.config_dir
            / "projects"
            / encode_cwd(str(self.clone))
            / f"{self.user.session_id}.jsonl"
        )
        self.url = team.typed_url(name)
        self.shares("team")

    def shares(self, share: str, rules: str = "") -> None:
        (self.home / ".session-memory").mkdir(exist_ok=True)
        settings = f"team: {{url: '{self.url}', machine: laptop, share: {share}}}\n"
        (self.home / ".session-memory/config.yaml").write_text(settings + rules)

    def edits(self, text: str, request: str, file: str = "cart") -> None:
        edit = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Edit",
            "input": {"file_path": str(self.clone / file)},
        }
        fields = {"cwd": str(self.clone), "sessionId": self.own.stem}
        (append if self.own.exists() else write)(
            self.own, user(request, **fields), assistant(edit, **fields), tool_result(**fields)
        )
        (self.clone / file).write_text(text)

    def commit(self) -> None:
        git(self.clone, "commit", "-qam", "choose a time")

    def upkeep(self) -> None:
        for lock in self.user.state_dir.glob("*upkeep*"):
            os.utime(lock, (0, 0))
        do_upkeep(str(self.user.place), {"HOME": str(self.home)})

    def prompt(self) -> list[str]:
        answer = self.user.run(transcript_path=str(self.own), cwd=str(self.clone))
        return (
            [line for line in told(answer).splitlines() if line.startswith("! cart")]
            if answer
            else []
        )


@pytest.fixture
def machines(tmp_path: Path, team: Team) -> tuple[Machine, Machine]:
    origin = repository(tmp_path / "origin", cart=CART, other="1\n")
    ann, bob = Machine(tmp_path, origin, team, "ann"), Machine(tmp_path, origin, team, "bob")
    git(ann.clone, "switch", "-qc", "fix/login")
    return ann, bob


MAY = (
    "! cart: your line 20 may conflict with line 20 changed just now by "
    '"Let people choose a time" (Claude Code, ann@laptop, branch fix/login)'
)


def test_lines_that_two_machines_changed_are_told_once_without_a_text_on_the_server(
    machines: tuple[Machine, Machine], team: Team
) -> None:
    ann, bob = machines
    ann.edits(changed(20, "theirs"), "Let people choose a time")
    bob.edits(changed(20, "ours"), "Mend the tax")
    bob.prompt()
    ann.upkeep()
    bob.upkeep()
    assert bob.prompt() == [MAY]  # and not that the file was edited there too
    assert bob.prompt() == []
    rows = team.rows("SELECT path, hunks FROM changed_file ORDER BY session")
    assert [path for path, _ in rows] == ["cart", "cart"]
    assert json.loads(rows[0][1]) == [[20, 21, 20, 20]]
    assert "theirs" not in str(team.rows("SELECT * FROM changed_file")) + str(
        team.rows("SELECT * FROM item")
    )


def test_a_commit_that_was_fetched_is_merged_and_what_merges_is_not_told(
    machines: tuple[Machine, Machine],
) -> None:
    ann, bob = machines
    ann.edits(changed(20, "theirs"), "Let people choose a time")
    ann.commit()
    git(bob.clone, "fetch", "-q", str(ann.clone), "fix/login")
    bob.edits(changed(20, "ours"), "Mend the tax")
    bob.prompt()
    ann.upkeep()
    bob.upkeep()
    assert bob.prompt() == [MAY.replace("may conflict", "conflicts")]
    bob.edits(changed(35, "ours"), "Mend it elsewhere")
    bob.upkeep()
    done = run_here(["conflicts", "--json"], plain_environment(bob.home), bob.clone)
    assert (done.returncode, json.loads(done.stdout)["conflicts"]) == (0, [])


def test_what_is_not_shared_is_not_told(machines: tuple[Machine, Machine], team: Team) -> None:
    ann, bob = machines
    ann.edits(changed(20, "theirs"), "Let people choose a time")
    bob.edits(changed(20, "ours"), "Mend the tax")
    for share, rules in (
        ("mine", ""),
        ("off", ""),
        ("team", "sessions: {Let people*: {ignore: true}}\n"),
    ):
        ann.shares(share, rules)
        ann.upkeep()
        bob.upkeep()
        assert bob.prompt() == [], (share, rules)
        assert team.rows("SELECT path FROM changed_file", user="bob") == [("cart",)]  # his own


def test_what_was_told_goes_when_it_is_withdrawn(
    machines: tuple[Machine, Machine], team: Team
) -> None:
    ann, _ = machines
    ann.edits(changed(20, "theirs"), "Let people choose a time")
    ann.upkeep()
    assert len(team.rows("SELECT path FROM changed_file")) == 1
    ann.shares("off")
    ann.upkeep()
    assert team.rows("SELECT path FROM changed_file") == []


def test_odd_rows_of_another_member_are_left_out(
    machines: tuple[Machine, Machine], team: Team
) -> None:
    ann, bob = machines
    ann.edits(changed(20, "theirs"), "Let people choose a time")
    bob.edits(changed(20, "ours"), "Mend the tax")
    ann.upkeep()
    columns = "hunks", "path", "blob", "at", "head"
    [row] = team.rows(f"SELECT {', '.join(columns)} FROM changed_file")
    for column, odd in (
        ("hunks", "[[1]]"),
        ("hunks", "x"),
        ("path", "../cart"),
        ("blob", "--output=x"),
        ("at", -1),
        ("head", ""),
    ):
        team.rows(f"UPDATE changed_file SET {column} = %s", odd)
        bob.upkeep()
        done = run_here(["conflicts", "--json"], plain_environment(bob.home), bob.clone)
        assert (done.returncode, json.loads(done.stdout)["conflicts"]) == (0, []), (column, odd)
        team.rows(
            f"UPDATE changed_file SET {column} = %s WHERE {column} = %s",
            row[columns.index(column)],
            odd,
        )
    bob.upkeep()
    assert run_here(["conflicts"], plain_environment(bob.home), bob.clone).returncode == 1
