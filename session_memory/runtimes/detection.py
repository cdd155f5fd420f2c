"""Which runtime a transcript is of, and in which session of which runtime this process runs."""

from __future__ import annotations

from ..system.files import read_at
from . import all_runtimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Runtime

HEAD_BYTES = 64 * 1024
PI_CONVERTED = "pi-converted"  # what scripts/pi_to_claude.py marks its records with


def runtime_of(descriptor: int) -> Runtime | None:
    """The runtime that wrote a transcript, by the first line that tells; None if no line of the head does."""
    runtimes = all_runtimes()
    for line in read_at(descriptor, 0, HEAD_BYTES).split(b"\n"):
        for runtime in runtimes:
            if runtime.RECORDS.recognises(line):
                return runtime
    return None


def source_of(descriptor: int, runtime: Runtime) -> str:
    """What the store calls the source of a transcript: its runtime's name, or what it was converted from."""
    head = read_at(descriptor, 0, HEAD_BYTES).partition(b"\n")[0]
    return PI_CONVERTED if f'"entrypoint":"{PI_CONVERTED}"'.encode() in head else runtime.name


def running_session(environ: Mapping[str, str], parent: int) -> tuple[Runtime | None, str]:
    """The runtime that started this process and the id of the session it runs in; (None, '') if no runtime did.

    A server outlives the session it was started in, and its environment stays as it was: so what the runtime itself
    notes of its process `parent` goes first.
    """
    for runtime in all_runtimes():
        files = runtime.FILES
        started_in = environ.get(files.OWN_ID_VARIABLE, "")
        if started_in:
            return runtime, files.live_session_id(files.config_dir(environ), parent) or started_in
    return None, ""
