"""Whose transcript a file is."""

from __future__ import annotations

from ..system.files import read_at
from . import all_runtimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Runtime

HEAD_BYTES = 64 * 1024
PI_CONVERTED = "pi-converted"  # what scripts/pi_to_claude.py marks its records with


def runtime_of(descriptor: int) -> Runtime | None:
    """The runtime whose transcript this is, by the first line that tells; None if it is nobody's."""
    runtimes = all_runtimes()
    for line in read_at(descriptor, 0, HEAD_BYTES).split(b"\n"):
        for runtime in runtimes:
            if runtime.recognises(line):
                return runtime
    return None


def source_of(descriptor: int, runtime: Runtime) -> str:
    """What the store calls the source of a transcript: the runtime, or what it was converted from."""
    head = read_at(descriptor, 0, HEAD_BYTES).partition(b"\n")[0]
    return PI_CONVERTED if f'"entrypoint":"{PI_CONVERTED}"'.encode() in head else runtime.NAME
