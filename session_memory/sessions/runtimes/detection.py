"""Detects the runtime of a transcript, and the runtime and session that started this process."""

from __future__ import annotations

from collections.abc import Mapping

from ...common.system.files import os, read_at
from ...common.system.json import objects_in
from .base import Runtime
from .table import all_runtimes

HEAD_BYTES = 64 * 1024
# this much of a file whose head does not show it, for example because it begins with copied large
# files
FURTHER_BYTES = 32 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_OVERLAP_BYTES = 64  # overlap of blocks, so no key is split unnoticed
# marks transcripts of Claude Code that versions before 0.4.2 made from Pi's
PI_CONVERTED = "pi-converted"


def runtime_of(descriptor: int) -> Runtime | None:
    """Return the runtime that wrote a transcript, by the first line that shows it.

    Return None if no line up to FURTHER_BYTES does, or if the lines cannot be separated (see
    `unusual_form`)."""
    head = read_at(descriptor, 0, HEAD_BYTES)
    if _unusual_form_of(head):
        return None
    runtime = _runtime_in(head)
    size = os.fstat(descriptor).st_size
    start = HEAD_BYTES
    while not runtime and start < min(size, FURTHER_BYTES):
        # The line may begin in the block before. Quoted, unescaped text is still a key.
        runtime = _runtime_in(
            b"{" + read_at(descriptor, start - _OVERLAP_BYTES, start + _BLOCK_BYTES)
        )
        start += _BLOCK_BYTES
    if runtime:
        return runtime
    # Another program may have rewritten the file: look for the first complete record that shows it.
    records = [record for line in head.split(b"\n") for record in objects_in(line)]
    return next(
        (
            runtime
            for record in records
            for runtime in all_runtimes()
            if runtime.records.owns(record)
        ),
        None,
    )


def unusual_form(descriptor: int) -> str:
    """Return why a file's lines cannot be read, by its first bytes; '' if they can."""
    return _unusual_form_of(read_at(descriptor, 0, HEAD_BYTES))


def _unusual_form_of(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[:4] in (b'{\0"\0', b'\0{\0"'):
        return "it is UTF-16, but transcripts must be UTF-8: convert it"
    if b"\n" not in head and b"}\r{" in head:
        return "its lines end with only a carriage return: convert them to line feeds"
    return ""


def _runtime_in(content: bytes) -> Runtime | None:
    """Return the runtime of the first line that shows it; the outer lines may be cut off."""
    runtimes, start = all_runtimes(), 0
    while start <= len(content):  # split would copy all lines, and nearly always the first decides
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        line = content[start:end].lstrip(b"\0")
        for runtime in runtimes:
            if runtime.records.recognises(line):
                return runtime
        start = end + 1
    return None


def source_of(descriptor: int, runtime: Runtime) -> str:
    """Return the store's name for a transcript's source: its runtime, or its original format.

    A converted transcript has its original format as its source."""
    head = read_at(descriptor, 0, HEAD_BYTES).partition(b"\n")[0]
    return PI_CONVERTED if f'"entrypoint":"{PI_CONVERTED}"'.encode() in head else runtime.name


def is_started_by_agent(environ: Mapping[str, str]) -> bool:
    """Return whether the environment shows that an agent of any runtime started this process."""
    return any(runtime.has_started(environ) for runtime in all_runtimes())


def running_session(environ: Mapping[str, str], parent: int) -> tuple[Runtime | None, str]:
    """Return the runtime that started this process and its session id; (None, '') if none did.

    A server outlives the session that started it, and its environment never changes. So the
    runtime's own note about its process `parent` takes precedence."""
    for runtime in all_runtimes():
        started_in = runtime.own_session_id(environ)
        if started_in:
            return runtime, runtime.live_session_id(
                runtime.config_dir(environ), parent
            ) or started_in
    return None, ""
