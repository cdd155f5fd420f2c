"""In a partial clone, `why` and `search` use local objects, name missing ones, and fetch nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scene import git
from repository_scene import LINE, REQUEST, Work


class PartialWork(Work):
    """Work in a partial clone that lacks the earlier versions of its files."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(path)
        full = self.root
        self.write(f"price = 1\n{LINE}\n")
        self.commit()
        self.write(f"price = 1\n{LINE}\nlast = 1\n")
        self.latest = self.commit("Add the last line")
        git(full, "config", "uploadpack.allowFilter", "true")
        self.root = path / "part"
        git(path, "clone", "-q", f"--filter={kind}", f"file://{full}", str(self.root))
        self.session("tax", self.said(REQUEST, "tax"), self.edit("tax", f"price = 1\n{LINE}"))
        last = [
            self.said("add it", "last", minute=299),
            self.said("Added.", "last", "assistant", minute=301),
        ]
        self.session("last", *last)
        self.marker = path / "fetched"
        git(
            self.root, "config", "remote.origin.uploadpack", f"touch {self.marker}; git-upload-pack"
        )


@pytest.fixture(params=["blob:none", "tree:0"])
def work(tmp_path: Path, request: pytest.FixtureRequest) -> PartialWork:
    return PartialWork(tmp_path, request.param)


def test_a_line_is_explained_by_its_words(work: PartialWork) -> None:
    said = work.why("cart.py:2")
    assert REQUEST in said
    assert "This clone is partial and lacks objects of cart.py" in said
    assert not work.marker.exists()


def test_a_commit_is_explained_by_its_date(work: PartialWork) -> None:
    said = work.why(work.latest, code=1)
    assert "A guess, by time alone: claude-code session last" in said
    assert f"This clone is partial and lacks objects of {work.latest}" in said
    assert not work.marker.exists()


def test_a_search_for_a_commit_finds_by_its_words_and_its_date(work: PartialWork) -> None:
    done = work.user.run("search", work.latest, cwd=work.root)
    assert done.returncode == 0, done.stderr
    assert REQUEST in done.stdout
    assert "This clone is partial and lacks objects of" in done.stderr
    assert "Traceback" not in done.stderr
    assert not work.marker.exists()


def test_once_they_are_fetched_nothing_is_said_to_lack(work: PartialWork) -> None:
    advice = work.why("cart.py:2").rpartition("`git ")[2].partition("`")[0]
    git(work.root, *advice.split(" "))
    assert work.marker.exists()
    assert "partial" not in work.why("cart.py:2")


@pytest.mark.parametrize(
    "words", [("why", "cart.py:2"), ("why", "--staged"), ("search", "{commit}"), ("handoff",)]
)
def test_a_git_that_fails_ends_no_command_in_a_traceback(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    work = Work(tmp_path)
    work.session("tax", work.said(REQUEST, "tax"), work.edit("tax", f"price = 1\n{LINE}"))
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit()
    for path in (work.root / ".git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"damaged")
    done = work.user.run_process(*[word.format(commit=commit) for word in words], cwd=work.root)
    assert "Traceback" not in done.stdout + done.stderr
