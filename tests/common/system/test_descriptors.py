"""Descriptors of files: each is closed, also if a deadline ends a block at its last moment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import pytest

from session_memory.common.system.deadline import DeadlineError
from session_memory.common.system.files import Opened


def test_a_file_is_closed_if_a_deadline_comes_just_before(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")

    def ring(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Opened.__exit__.__code__:
            sys.settrace(None)
            raise DeadlineError

    with pytest.raises(DeadlineError), Opened(str(tmp_path / "kept")) as descriptor:
        sys.settrace(ring)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_file_is_closed_if_its_block_was_never_entered(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    opened = Opened(str(tmp_path / "kept"))
    descriptor = opened.__enter__()
    del opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
