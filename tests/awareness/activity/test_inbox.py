"""The inbox: notes from upkeep for prompts, each of which reaches a session once."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path

from git_scene import git, repository
from hooks_scene import PlainUser, told
from records import append, exchange, new_id

from session_memory.awareness.activity.conflicts import KeptConflict
from session_memory.awareness.activity.inbox import Inbox
from session_memory.extras.team.handoffs import OfferedHandoff
from session_memory.sessions.settings.homes import Home, person_home

LINE = 'ann@laptop (Pi) handed over "{}" on branch main: `session-memory handoff a1` prints it.'


class Reader:
    """A person whose session is in a repository on the branch main."""

    def __init__(self, user: PlainUser, root: Path) -> None:
        self.user = user
        self.shop = repository(root / "shop")
        self.home = home_of(user.root)
        user.config("upkeep: off\n")
        self.begin()

    def begin(self) -> None:
        """Begin a new session, whose transcript does not exist yet."""
        self.user.session_id = new_id()
        self.transcript = self.user.project_dir / f"{self.user.session_id}.jsonl"

    def prompt(self, *, is_recorded: bool = True) -> str:
        """Return what a prompt tells; the transcript shows it if it `is_recorded`."""
        hidden = self.transcript.with_name("hidden")
        if not self.transcript.exists():
            append(self.transcript, *exchange("begin", "yes"))
        before = self.transcript.read_bytes()
        output = self.user.run(cwd=str(self.shop))
        if not is_recorded:
            hidden.write_bytes(before)
            hidden.replace(self.transcript)
        return str(told(output)) if output else ""

    def handed_over(self, *titles: str, branch: str = "main") -> None:
        common_dir = f"{self.shop}/.git"
        notes = [OfferedHandoff(one, common_dir, branch, LINE.format(one)) for one in titles]
        OfferedHandoff.keep(self.home, notes)

    def conflict(self, key: str) -> KeptConflict:
        return KeptConflict(f"{key}.py", time.time(), root=str(self.shop), key=key)


def home_of(root: Path) -> Home:
    return person_home({"HOME": str(root)})


def test_a_handoff_whose_first_update_was_lost_is_offered_again(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    reader.handed_over("Show the cart")
    line = LINE.format("Show the cart")
    assert line in reader.prompt(is_recorded=False)
    assert line in reader.prompt()
    assert line not in reader.prompt()
    assert plain.log() == []


def test_a_handoff_and_a_conflict_come_with_one_update_the_handoff_first(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    KeptConflict.keep(reader.home, [reader.conflict("tax")], [])
    reader.handed_over("Show the cart", "an older one")
    lines = reader.prompt().splitlines()
    assert lines[-2] == LINE.format("Show the cart")
    assert lines[-1].startswith("! tax.py: ")
    assert reader.prompt() == ""


def test_a_handoff_is_for_sessions_that_begin_on_its_branch(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    assert reader.prompt() == ""
    reader.handed_over("Show the cart")
    assert reader.prompt() == ""  # it has begun before
    reader.begin()
    assert "handed over" in reader.prompt()
    reader.begin()
    reader.handed_over("Show the cart", branch="fix")
    assert "handed over" not in reader.prompt()
    reader.begin()
    git(reader.shop, "switch", "-qc", "fix")
    assert "handed over" in reader.prompt()


def test_a_handoff_is_offered_without_collisions_but_a_conflict_is_not_told(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    plain.config("upkeep: off\ncollisions: off\n")
    KeptConflict.keep(reader.home, [reader.conflict("tax")], [])
    reader.handed_over("Show the cart")
    text = reader.prompt()
    assert "handed over" in text
    assert "tax.py" not in text


def test_a_handoff_goes_before_collisions_that_would_take_its_room(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    title = "Show the cart " * 20
    KeptConflict.keep(reader.home, [reader.conflict("tax" * 20), reader.conflict("cart" * 20)], [])
    reader.handed_over(title)
    first, second = reader.prompt(), reader.prompt()
    assert LINE.format(title) in first
    assert (first + second).count("\n! ") == 2


def test_notes_of_an_unknown_kind_and_of_a_later_version_are_left_alone(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    KeptConflict.keep(reader.home, [reader.conflict("tax")], [])
    file = Path(reader.home.inbox_file)
    kept = {**json.loads(file.read_text()), "letters": [{"text": "x"}]}
    file.write_text(json.dumps(kept))
    assert "tax.py" in reader.prompt()
    KeptConflict.keep(reader.home, [reader.conflict("cart")], [])
    assert json.loads(file.read_text())["letters"] == [{"text": "x"}]
    file.write_text(json.dumps({**kept, "version": 2}))
    assert reader.prompt() == ""
    assert "inbox" in plain.log()[-1]


def test_a_put_that_changes_nothing_leaves_the_file_as_it_is(
    plain: PlainUser, tmp_path: Path
) -> None:
    reader = Reader(plain, tmp_path)
    conflicts = [reader.conflict("tax")]
    assert not KeptConflict.keep(reader.home, [], [])
    assert not Path(reader.home.inbox_file).exists()
    assert KeptConflict.keep(reader.home, conflicts, [])
    judged = Inbox.read(reader.home).judged
    assert not KeptConflict.keep(reader.home, conflicts, [])
    reader.handed_over("Show the cart")
    assert Inbox.read(reader.home).judged == judged
    assert KeptConflict.keep(reader.home, [], [])
    reader.handed_over()
    assert Inbox.read(reader.home).dumps == {"conflicts": []}


def test_writers_of_different_kinds_lose_nothing_of_each_other(
    plain: PlainUser, tmp_path: Path
) -> None:
    plain.state_dir.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=write_notes, args=(str(plain.root), kind))
        for kind in (KeptConflict.KIND, OfferedHandoff.KIND)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    dumps = Inbox.read(home_of(plain.root)).dumps
    assert {kind: len(notes) for kind, notes in dumps.items()} == {"conflicts": 30, "handoffs": 30}


def write_notes(root: str, kind: str) -> None:
    conflicts: list[KeptConflict] = []
    handoffs: list[OfferedHandoff] = []
    for number in range(30):
        conflicts.append(KeptConflict("a.py", 1.0, key=f"{number}"))
        handoffs.append(OfferedHandoff(f"{number}", "", "", ""))
        if kind == KeptConflict.KIND:
            KeptConflict.keep(home_of(Path(root)), conflicts)
        else:
            OfferedHandoff.keep(home_of(Path(root)), handoffs)
