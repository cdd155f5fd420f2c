"""The id of a commit is found by its beginning, as git shows it, in every engine."""

from __future__ import annotations

import pytest
from store_scene import put, said, state

from session_memory.history.store.values import Filter

COMMIT = "3f2a9bc4d1e07f6a5b8c9d0e1f2a3b4c5d6e7f80"


def found(scene, query):
    return [hit.entry.text for hit in scene.told.search(query, Filter(limit=10))]


@pytest.mark.parametrize("query", ["3f2a9bc", "3f2a9bc4d1", COMMIT, "revert 3f2a9bc"])
def test_the_beginning_of_a_commit_id_finds_it(scene, query):
    put(
        scene,
        None,
        state(),
        said(f"please revert {COMMIT} now", 1),
        said("nothing of the kind: 3f2a9ff", 2),
    )
    assert found(scene, query)[0] == f"please revert {COMMIT} now"


def test_what_is_found_by_its_beginning_is_marked(scene):
    put(scene, None, state(), said(f"see {COMMIT}", 1))
    [hit] = scene.told.search("3f2a9bc", Filter(limit=10))
    [(start, end)] = hit.marks
    assert hit.snippet[start:end] == "3f2a9bc"


@pytest.mark.parametrize("word", ["decade", "1234567", "facade", "12ab"])
def test_other_words_are_not_found_by_their_beginning(scene, word):
    put(scene, None, state(), said(f"{word}x {word}9 is longer", 1))
    assert found(scene, word) == []
