"""The floor that reading is measured against: decoding every line of transcripts, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orjson

from .corpus import MEGABYTE


def decode(files: Iterable[Path]) -> None:
    """Decodes every line of each file, which is the least that a program can do that looks at all of them."""
    for path in files:
        with open(path, "rb", buffering=MEGABYTE) as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:  # there are such lines in real ones; contextlib.suppress takes its time
                    continue
