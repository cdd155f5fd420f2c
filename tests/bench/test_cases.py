"""The scenes of `python -m bench` have what their cases measure."""

from __future__ import annotations

from pathlib import Path

from bench.cases import READER_BYTES, last_messages
from bench.scenes import REPOSITORY, Scene
from bench.sources import generated
from bench.stopwatch import Stopwatch


def test_the_session_of_the_reader_has_50_messages(tmp_path: Path) -> None:
    scene = Scene(tmp_path, REPOSITORY, generated(7), [READER_BYTES], with_names=True)
    with Stopwatch() as stopwatch:
        assert last_messages(scene, stopwatch).count(b"  User\n") > 1
