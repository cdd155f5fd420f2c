"""Counts of what was told, and controls that a comparison has to pass."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from random import Random
from typing import Any

import pytest
from collision_scene import Pair, collisions
from page_scene import ServedPage
from proof_scene import CWD, HOUR, INSTALLED, Scene, heeds, ignores, looks_always
from records import append, assistant, record, stamp, user
from store_scene import MONDAY, StoreUser

from bench.clones import Clone
from session_memory.awareness.activity.conflicts import KeptConflict
from session_memory.extras.proof._comparison import FEW, Tally, interval, permuted, tally_of
from session_memory.extras.proof._moments import is_named
from session_memory.history.told_lines import BRANCH, CONFLICT, FILE, ToldLine
from session_memory.sessions.transcripts.entries import INTRODUCTION


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path)


def arms(machine: StoreUser, *words: str) -> dict[str, dict[str, Any]]:
    return {one["arm"]: one for one in machine.result("proof", *words)["heeded"]}


def played(machine: StoreUser, behaviour: Any) -> dict[str, dict[str, Any]]:
    """Return the arms of a person whose agents behave in this way, before and after the install."""
    scene = Scene(machine, behaviour, seed=3)
    scene.pairs(20, MONDAY, is_told=False, moments=2)
    scene.pairs(20, INSTALLED, is_told=True, moments=2)
    return arms(machine)


def test_an_agent_that_ignores_everything_shows_no_difference(machine: StoreUser) -> None:
    found = played(machine, ignores)
    compared = found["before"]["difference"]
    assert (found["told"]["moments"], found["before"]["moments"]) == (40, 40)
    assert compared["low"] < 0 < compared["high"]
    assert abs(compared["value"]) < 0.2
    assert compared["p"] > 0.05


def test_an_agent_that_always_looks_shows_no_difference(machine: StoreUser) -> None:
    found = played(machine, looks_always)
    assert [found[arm]["heeded"] for arm in ("told", "before")] == [40, 40]
    compared = found["before"]["difference"]
    assert (compared["value"], compared["p"]) == (0.0, 1.0)
    assert compared["low"] < 0 < compared["high"]


@pytest.fixture(scope="module")
def heeding(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    """A person whose agents heed what they are told, for tests that only look."""
    machine = StoreUser(tmp_path_factory.mktemp("heeding"))
    played(machine, heeds)
    return machine


def test_an_agent_that_heeds_shows_a_difference_in_words_that_claim_no_more(
    heeding: StoreUser,
) -> None:
    found = arms(heeding)
    assert (
        found["told"]["heeded"],
        found["before"]["heeded"],
        found["before"]["difference"]["value"],
    ) == (40, 0, 1.0)
    assert found["before"]["difference"]["p"] < 0.001
    said = heeding.run("proof").stdout
    assert "40 of 40" in said
    assert "prevent" not in said


@pytest.mark.parametrize("size", [1, 4])
def test_shuffled_labels_give_uniform_p(size: int) -> None:
    """Kolmogorov and Smirnov's test of 200 p, at 1 %: a share of `size` moments in a session are
    alike."""
    chance, found = Random(5), []
    for number in range(200):
        clusters = []
        for _ in range(40):
            share = chance.random() if size > 1 else 0.4
            moments = chance.randint(1, 2 * size - 1) if size > 1 else 1
            clusters.append((sum(chance.random() < share for _ in range(moments)), moments))
        chance.shuffle(clusters)
        p = permuted(
            Tally(tuple(clusters[:17])), Tally(tuple(clusters[17:])), shuffles=200, seed=number
        )
        found.append(p)
    found.sort()
    # With equal sessions few differences are possible, and p is larger than a uniform one, never
    # smaller.
    above = max((at + 1) / 200 - p for at, p in enumerate(found))
    below = max(p - at / 200 for at, p in enumerate(found))
    assert above < 1.63 / 200**0.5
    assert size == 1 or below < 1.63 / 200**0.5


def test_an_interval_holds_the_true_difference_though_sessions_agree_with_themselves() -> None:
    chance, held = Random(7), 0
    for _ in range(200):
        sides = []
        for share in (0.7, 0.4):
            cases = []
            for session in range(25):
                own = min(1.0, max(0.0, chance.gauss(share, 0.2)))
                cases += [
                    (f"{session}", chance.random() < own) for _ in range(chance.randint(1, 6))
                ]
            sides.append(tally_of(cases))
        low, high = interval(*sides)
        held += low <= 0.3 <= high
    assert held >= 180


def test_under_thirty_moments_it_says_that_they_are_too_few(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    scene.pairs(FEW, MONDAY, is_told=False)
    scene.pairs(FEW - 1, INSTALLED, is_told=True)
    assert arms(machine)["before"]["difference"] is None
    assert "too few to compare: fewer than 30 moments on one side" in " ".join(
        machine.run("proof").stdout.split()
    )
    scene.pair(INSTALLED + 99 * HOUR, is_told=True)
    assert arms(machine)["before"]["difference"]["value"] == 1.0


def test_a_session_that_got_no_update_after_the_installation_is_an_arm_of_its_own(
    machine: StoreUser,
) -> None:
    scene = Scene(machine, heeds)
    scene.pair(INSTALLED, is_told=True)
    scene.pair(INSTALLED + HOUR, is_told=False)
    own, _ = scene.pair(INSTALLED + 2 * HOUR, is_told=False)
    path = machine.projects / "-srv-agent" / f"{own}.jsonl"
    append(
        path,
        scene.told(f"{CWD}/src/other.py", INSTALLED + 3 * HOUR),
        assistant("Fine.", at=INSTALLED + 3 * HOUR + 1),
    )
    found = machine.result("proof")
    assert {one["arm"]: one["moments"] for one in found["heeded"]} == {"told": 1, "silent": 1}
    assert found["not_compared"] == 1


def test_forks_resumes_and_repeated_updates_count_once(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    own, _ = scene.pair(INSTALLED, is_told=True)
    alone = machine.result("proof")
    path = machine.projects / "-srv-agent" / f"{own}.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    machine.session("resumed", *records)
    forked = [
        {**one, "forkedFrom": {"sessionId": own, "messageUuid": one["uuid"]}} for one in records
    ]
    machine.session("zz-forked", *forked, user("Another way", at=INSTALLED + HOUR))
    both = machine.result("proof")
    assert (both["told"], both["heeded"]) == (alone["told"], alone["heeded"])
    told = next(one for one in records if one["type"] == "attachment")
    at = records.index(told)
    again = {**told, "uuid": told["uuid"][:-1] + "f", "timestamp": stamp(INSTALLED + 401)}
    repeated = [
        *records[: at + 1],
        user("Once more", at=INSTALLED + 400.5),
        again,
        *records[at + 1 :],
    ]
    machine.session("resumed", user("gone", at=INSTALLED))
    machine.session("zz-forked", user("gone", at=INSTALLED))
    machine.session(own, *[{**one, "parentUuid": None} for one in repeated])
    assert machine.result("proof")["heeded"] == alone["heeded"]


def test_an_update_of_a_cancelled_prompt_was_told_and_did_not_arrive(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    own, _ = scene.pair(INSTALLED, is_told=True)
    path = machine.projects / "-srv-agent" / f"{own}.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    at = next(number for number, one in enumerate(records) if one["type"] == "attachment")
    # the conversation goes on from before the prompt
    records[at + 1]["parentUuid"] = records[at - 2]["uuid"]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    found = machine.result("proof")
    assert (found["told"]["updates"], found["told"]["arrived"], found["told"]["lines"]["file"]) == (
        1,
        0,
        0,
    )
    assert found["heeded"] == []


def test_an_attempt_that_the_runtime_refuses_is_an_edit_before_looking(machine: StoreUser) -> None:
    scene = Scene(machine, lambda *_: "nothing")
    own, _ = scene.pair(MONDAY, is_told=False)
    assert arms(machine)["before"]["left_alone"] == 1
    path = f"{CWD}/src/1-0.py"
    refused = scene.call(
        "Edit", MONDAY + 410, fails=True, result="File has been modified since read", file_path=path
    )
    append(
        machine.projects / "-srv-agent" / f"{own}.jsonl",
        *refused,
        *scene.call("Read", MONDAY + 415, file_path=path),
    )
    found = arms(machine)["before"]
    assert (found["moments"], found["heeded"], found["left_alone"]) == (1, 0, 0)


def test_what_is_excluded_counts_for_nothing_and_is_not_shown(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    scene.pair(INSTALLED, is_told=True)
    own, other = scene.pair(INSTALLED + HOUR, is_told=True)
    alone = machine.result("proof", "--project", "/srv")
    assert (alone["told"]["lines"]["file"], alone["sessions"]) == (2, 4)
    machine.config(f"sessions: {{{other}: {{ignore: true}}}}")
    found = machine.result("proof")
    assert (found["told"]["lines"]["file"], found["sessions"]) == (1, 3)
    assert sum(one["moments"] for one in found["heeded"]) == 1
    machine.config(f"sessions: {{{own}: {{ignore: true}}}}")
    found = machine.result("proof")
    assert (found["told"]["updates"], found["told"]["lines"]["file"]) == (1, 1)


def test_reads_of_the_same_content_in_two_sessions_are_an_upper_bound(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    for name, text in (("a", "x" * 4000), ("b", "x" * 4000), ("c", "y" * 4000)):
        begin = MONDAY + ord(name) * 60
        reads = scene.call("Read", begin + 1, file_path=f"{CWD}/src/app.py", result=text)
        machine.session(
            name,
            user("Look", at=begin),
            *reads,
            *scene.call("Read", begin + 5, file_path="/x", result=name),
        )
    sums = machine.result("proof")["sums"]
    assert (sums["read"], sums["identical"]) == (3000, 1000)
    said = machine.run("proof").stdout.replace("\n  ", " ")
    assert (
        "of the files that several sessions read, about 3,000 tokens, 33.3% had been read" in said
    )


def test_tokens_told_stand_beside_those_of_the_sessions_in_proof_and_costs(
    machine: StoreUser,
) -> None:
    usage = {"model": "claude-opus-5", "usage": {"input_tokens": 50_000, "output_tokens": 100}}
    scene = Scene(machine, heeds)
    told = scene.told(f"{CWD}/src/app.py", MONDAY + 5)
    answers = [
        assistant("Done.", at=MONDAY + at, message_id=f"m{at}", message=usage) for at in (2, 10, 20)
    ]
    machine.session("a", user("Bake", at=MONDAY), answers[0], told, *answers[1:])
    sums = machine.result("proof")["sums"]
    size = len(told["attachment"]["content"][0].partition(":\n")[2]) // 4
    assert (sums["tokens"], sums["told"]) == (150_300, size)
    assert abs(sums["told_again"] - 2 * size) <= 1
    line = f"Updates took {size} tokens, under 0.1% of these; session-memory proof shows what agents did after them."
    assert line in " ".join(machine.run("costs").stdout.split())


@pytest.mark.parametrize(
    "words",
    [
        "your lines 4-5 conflict with lines 4-6 changed 5m ago by pip (Codex, branch fix)",
        "your line 4 may conflict with line 4 changed 5m ago on branch fix",
        "your edit conflicts with the deletion made 5m ago by pip (Codex, branch fix)",
        "your change conflicts with a change made 5m ago in another worktree",
        "main has 2 newer commits that change files you edited; your branch lacks them",
        "lines 4-6 changed 5m ago by pip (Codex, branch fix) conflict with your 4-5",  # until 0.4
    ],
)
@pytest.mark.parametrize("name", ["src/app.py", "app.py", "../src/app.py"])
def test_a_merge_that_conflicts_later_is_counted_for_its_line(
    machine: StoreUser, words: str, name: str
) -> None:
    """The line names the file relative to the session's directory, the merge to the repository."""
    scene = Scene(machine, heeds)
    line = f"! {name}: {words}"
    told = scene.told(f"{CWD}/src/app.py", MONDAY + 5)
    told["attachment"]["content"] = [
        told["attachment"]["content"][0].replace("[Session Activity]", line)
    ]
    clash = "Auto-merging src/app.py\nCONFLICT (content): Merge conflict in src/app.py\n"
    merge = scene.call("Bash", MONDAY + 500, fails=True, result=clash, command="git merge fix")
    machine.session("a", user("Bake", at=MONDAY), told, assistant("Well.", at=MONDAY + 6))
    assert machine.result("proof")["told"]["conflicted"] == 0
    machine.session("b", user("Merge", at=MONDAY + 400), *merge)
    found = machine.result("proof")["told"]
    assert (found["lines"]["conflict"], found["conflicted"]) == (1, 1)


def test_paths_told_with_failed_calls_count_beside_such_calls_without_a_line(
    machine: StoreUser,
) -> None:
    scene, missing, there = Scene(machine, ignores), f"{CWD}/src/x.py", f"{CWD}/src/db/x.py"
    machine.session(
        "earlier", user("Look", at=MONDAY), *scene.call("Read", MONDAY + 1, file_path=there)
    )
    line = f"{INTRODUCTION}- there is no src/x.py; the one known file of that name is src/db/x.py"

    def session(
        name: str, begin: float, *, is_told: bool, is_used: bool, goes_on: bool = True
    ) -> None:
        said = [
            user("Read x", at=begin),
            *scene.call("Read", begin + 1, fails=True, result="none", file_path=missing),
        ]
        text = {"type": "hook_additional_context", "content": [line]}
        said += [record("attachment", attachment=text, at=begin + 3)] if is_told else []
        said += scene.call("Read", begin + 5, file_path=there) if is_used else []
        said += [assistant("So it is.", at=begin + 8)] if goes_on else []
        later = (
            [user("Go on", at=begin + 60), *scene.call("Read", begin + 61, file_path=there)]
            if goes_on
            else []
        )
        machine.session(name, *said, *later)

    session("used", INSTALLED, is_told=True, is_used=True)
    session("not used in that turn", INSTALLED + HOUR, is_told=True, is_used=False)
    session("alone", INSTALLED + 2 * HOUR, is_told=False, is_used=True)
    session("nothing", INSTALLED + 3 * HOUR, is_told=False, is_used=False)
    session("not read on", INSTALLED + 4 * HOUR, is_told=True, is_used=False, goes_on=False)
    told = machine.result("proof")["told"]
    assert (told["updates"], told["paths"], told["paths_arrived"], told["paths_used"]) == (
        0,
        3,
        2,
        1,
    )
    assert (told["untold"], told["untold_used"]) == (2, 1)
    said = " ".join(machine.run("proof").stdout.split())
    assert (
        "3 calls that found no file got the path of the one known file of that name. 2 of these "
        "paths arrived, and 1 of them were used" in said
    )
    assert "Of 2 similar calls without this line, 1 used that path" in said


def test_the_picture_has_a_bar_for_each_arm_and_nothing_to_load(
    heeding: StoreUser, tmp_path: Path
) -> None:
    heeding.run("proof", "--svg", tmp_path / "proof.svg")
    text = (tmp_path / "proof.svg").read_text()
    root = ElementTree.fromstring(text)
    bars = [one for one in root if one.get("class") in ("bar", "without")]
    assert [one.get("width") for one in bars] == ["320.0", "0.0"]
    assert "40 of 40" in text
    assert "prefers-color-scheme" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_machine_without_an_update_says_so(machine: StoreUser) -> None:
    machine.session("a", user("Bake", at=MONDAY), assistant("Done.", at=MONDAY + 1))
    said = machine.run("proof").stdout
    assert "No transcript here shows an update" in said
    assert "Nothing to compare yet" in said


def test_the_page_says_what_the_command_says(heeding: StoreUser) -> None:
    with ServedPage(heeding) as page:
        assert page.view("/proof").status == 200
        text = page.view("/proof/counted").text
    assert "40 of 40" in text
    assert "0 of 40" in text
    assert "with <code>!</code> arrived" in text
    assert "prevent" not in text


class TestLines:
    """Each line that is told is recognised."""

    def test_lines_about_files_name_them(self, tmp_path: Path) -> None:
        pair = Pair(Clone(tmp_path))
        pair.main.read("src/app.py")
        pair.main.edit("src/db.py", "1\n")
        pair.discord.edit("src/app.py", "x\n")
        pair.discord.edit("src/db.py", "x\n")
        pair.later()
        found = [ToldLine.of(line) for line in collisions(pair.main.prompt())]
        assert sorted(name for line in found for name in line.files) == ["src/app.py", "src/db.py"]
        assert {line.kind for line in found} == {FILE}
        pair.main.edit("docs/guide.md", "1\n")
        pair.discord.bash("git rm -q -f src/db.py && git stash -q && git switch -q -c other")
        pair.later()
        assert {ToldLine.of(line).kind for line in collisions(pair.main.prompt())} == {BRANCH}

    def test_lines_about_conflicts_name_the_file(self) -> None:
        about = {
            "path": "src/app.py",
            "at": MONDAY,
            "commits": 0,
            "branch": "fix",
            "name": "pip",
            "runtime": "Codex",
        }
        for more in (
            {"deleted_by": None, "lines": [(1, 2), (3, 3)]},
            {"deleted_by": 0},
            {"deleted_by": 1},
            {"deleted_by": None, "lines": [(0, 0), (0, 0)]},
            {"commits": 2},
        ):
            line = ToldLine.of(KeptConflict.load({**about, **more}).line(MONDAY + 60))
            assert (line.kind, line.files) == (CONFLICT, ("src/app.py",)), more

    def test_a_name_may_be_shortened_and_several_share_a_line(self) -> None:
        several = ToldLine.of(
            "! a.py, b.py and 2 more: edited 5m ago by pip and 1 more session, after you edited "
            "them"
        )
        assert several.files == ("a.py", "b.py")
        assert is_named("/srv/agent/src/app.py", "src/app.py")
        assert is_named("/srv/agent/src/app.py", "../src/app.py")
        assert not is_named("/srv/agent/src/my-app.py", "app.py")
        assert is_named("/srv/agent/a/very/long/path.py", "a/very/lo…")


def test_a_read_of_a_file_that_no_other_session_read_is_not_counted(machine: StoreUser) -> None:
    scene = Scene(machine, heeds)
    for name in ("a", "b"):
        shared = scene.call("Read", MONDAY + 1, file_path=f"{CWD}/shared.py", result="x" * 4000)
        alone = scene.call("Read", MONDAY + 9, file_path=f"{CWD}/{name}.py", result="x" * 8000)
        machine.session(name, user("Look", at=MONDAY), *shared, *alone)
    sums = machine.result("proof")["sums"]
    assert (sums["read"], sums["identical"]) == (2000, 1000)
