"""Files that a program converts for git (git-lfs, encryption): it is not run, and they look unchanged."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path
from shlex import quote

import pytest
from git_scene import git
from repository_scene import LINE, REQUEST, Work

from session_memory.common.system.git_process import GitUnavailableError
from session_memory.history.git.commits import Repository

ROT13 = f"{quote(sys.executable)} -c \"import codecs,sys; sys.stdout.write(codecs.encode(sys.stdin.read(), 'rot13'))\""
TEXT = f"price = 1\n{LINE}\n"


@pytest.fixture(params=["clean and smudge", "ident", "encoding"])
def work(tmp_path: Path, request: pytest.FixtureRequest) -> Work:
    work = Work(tmp_path)
    work.session("tax", work.said(REQUEST, "tax"), work.edit("tax", LINE))
    attributes, text = {
        "clean and smudge": ("cart.py filter=rot13\n", TEXT.encode()),
        "ident": ("cart.py ident\n", f"# $Id$\n{TEXT}".encode()),
        "encoding": ("cart.py working-tree-encoding=UTF-16\n", TEXT.encode("utf-16")),
    }[request.param]
    git(work.root, "config", "filter.rot13.clean", ROT13)
    git(work.root, "config", "filter.rot13.smudge", ROT13)
    (work.root / ".gitattributes").write_text(attributes)
    (work.root / "cart.py").write_bytes(text)
    work.commit()
    (work.root / "cart.py").unlink()
    git(work.root, "checkout", "-q", "--", "cart.py")
    assert codecs.encode(LINE, "rot13") not in (work.root / "cart.py").read_text("latin-1")
    return work


def test_it_does_not_look_changed(work: Work) -> None:
    repository = Repository(f"{work.root}/.git", str(work.root))
    assert repository.is_changed("cart.py") is False
    (work.root / "cart.py").touch()  # its content may be as it was
    with pytest.raises(GitUnavailableError, match="which is not run"):
        repository.is_changed("cart.py")


def test_its_lines_are_not_called_uncommitted(work: Work) -> None:
    done = work.user.run("why", "cart.py:2", cwd=work.root)
    assert "not committed" not in done.stdout
    assert done.returncode == 1
    assert "which is not run here, so its lines cannot be compared" in done.stderr
