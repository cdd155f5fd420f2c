"""The labels of what rules kept of public sessions: their scores, and how their texts are found
again."""

from __future__ import annotations

from pathlib import Path

from git_scene import git, repository

from bench.research.extraction.__main__ import LABELS, READER, labels, scores, texts


def test_the_figures_of_its_readme_are_those_of_the_labels() -> None:
    rows = [line.strip("| ").split(" | ") for line in scores().splitlines()[2:]]
    of_rules = {
        row[0]: (row[2], row[3].partition("%")[0], row[4]) for row in rows if row[1] == "rule"
    }
    assert of_rules == {"developed": ("4", "3 = 75", "-"), "unseen": ("6", "5 = 83", "0 of 20")}
    unseen = [row for row in labels() if row["set"] == "unseen"]
    kept = [row for row in unseen if set(row["found by"].split("|")) - {READER, "rule"}]
    right = [row for row in kept if row["label"] == "keep"]
    marked = [row for row in kept if READER in row["found by"]]
    readme = LABELS.with_name("README.md").read_text()
    assert (
        f"| idioms, unseen | {len(kept)} | {len(right)} = 45 % (28 to 62) | {len(marked)} |"
        in readme
    )
    assert len(labels()) == 80


def test_labels_name_no_text() -> None:
    assert {len(row["hash"]) for row in labels()} == {10}


def test_what_a_person_said_is_read_from_a_history_in_the_repository(tmp_path: Path) -> None:
    history = "# A talk\n\n_**User**_\n\nUse luxon.\n\n---\n\n_**Agent (a-model)**_\n\nI will.\n\n_**User**_\n\nThanks.\n"
    found = repository(tmp_path / "shop", **{"README.md": "x\n"})
    path = found / ".specstory/history/2026-01-01_a-talk.md"
    path.parent.mkdir(parents=True)
    path.write_text(history)
    git(found, "add", "-A", "-f")
    git(found, "commit", "-q", "-m", "Keep the talk")
    assert list(texts(found)) == [
        ("2026-01-01_a-talk", "Use luxon."),
        ("2026-01-01_a-talk", "Thanks."),
    ]
