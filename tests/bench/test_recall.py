"""The questions that a repository with checkpoints makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_branch import BRANCH, checkpoint, git
from records import exchange, lines

from bench.research.recall.__main__ import PlainSearch, ask, sentences
from bench.research.recall.checkpoints import Checkpoints
from bench.research.recall.sets import Question, SetError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", BRANCH, ".")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Start")
    git(tmp_path, "branch", "work")
    git(tmp_path, "checkout", "-q", "work")
    return tmp_path


def test_each_commit_is_a_question_for_the_sessions_of_its_checkpoint(repository: Path) -> None:
    first = lines(*exchange("The lighthouse blinks too fast.", "I slow it down."))
    other = lines(*exchange("Paint the harbour wall.", "Done."))
    later = first + lines(*exchange("And the lamp is too bright.", "I dim it."))
    checkpoint(repository, "aa1111111111", lighthouse=first)
    checkpoint(repository, "bb2222222222", lighthouse=later, harbour=other)
    checkpoint(repository, "cc3333333333", harbour=other)
    git(
        repository,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Dim the lamp\n\nEntire-Checkpoint: bb2222222222",
    )
    git(
        repository,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Paint the wall\n\nEntire-Checkpoint: cc3333333333",
    )
    git(repository, "commit", "-q", "--allow-empty", "-m", "Nothing to do with it")
    made = Checkpoints(repository)
    assert dict(made.questions) == {
        "Dim the lamp": {"lighthouse", "harbour"},
        "Paint the wall": {"harbour"},
    }
    assert {one.session: one.size for one in made.transcripts} == {
        "lighthouse": len(later),
        "harbour": len(other),
    }
    dim, paint = sorted(ask([made]), key=lambda answer: answer.question.text)
    assert (dim.found[0], paint.found[0]) == ("lighthouse", "harbour")


def test_a_repository_without_checkpoints_is_refused(repository: Path) -> None:
    git(repository, "branch", "-D", BRANCH)
    with pytest.raises(SetError, match=f"no branch {BRANCH}"):
        Checkpoints(repository)


def test_a_sentence_is_one_of_a_single_session() -> None:
    texts = [
        ("a", "The harbour wall is painted white. Yes."),
        ("b", "The harbour wall is painted white."),
        ("b", "x"),
    ]
    assert sentences(texts, 10) == []
    [only] = sentences([*texts, ("c", "Nobody else has ever said this here.")], 10)
    assert only == Question("Nobody else has ever said this here.", frozenset("c"))


def test_plain_search_adds_what_texts_and_sessions_are_worth() -> None:
    plain = PlainSearch([("a", "a boat"), ("a", "the boat at sea"), ("b", "a train"), ("c", "sea")])
    [answer] = plain.ask([Question('the "boat" at sea', frozenset("a"))])
    assert answer.found[0] == "a"
    assert next(plain.ask([Question("?!", frozenset("a"))])).found == []
