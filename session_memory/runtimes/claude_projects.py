"""What Claude Code calls a project's directory, and which one is a session's. Seldom needed: an event names the
transcript."""

from __future__ import annotations

from ..system.files import is_directory, is_file, os

MOST_UNITS = 200


def folder_of(cwd: str) -> str:
    """The name of the directory for sessions started in `cwd` (its real path).

    Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`; above 200 units the first 200 and a checksum of the path
    remain (the 32-bit `h * 31 + unit`, its absolute value in base 36), as Claude Code does it.
    """
    from os.path import realpath

    path = realpath(cwd)
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [units[i] | units[i + 1] << 8 for i in range(0, len(units), 2)]
    encoded = "".join([chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes])
    if len(encoded) <= MOST_UNITS:
        return encoded
    checksum = 0
    for code in codes:
        checksum = (checksum * 31 + code) & 0xFFFFFFFF
    if checksum >= 0x80000000:
        checksum = 0x100000000 - checksum
    return f"{encoded[:MOST_UNITS]}-{_base36(checksum)}"


def dir_of(config_dir: str, session_id: str, cwd: str) -> str:
    """The directory with the transcript of `session_id`, else the one for `cwd` or a directory above it; else ''."""
    projects_dir = f"{config_dir}/projects"
    if session_id:
        for name in os.listdir(projects_dir):
            if is_file(f"{projects_dir}/{name}/{session_id}.jsonl"):
                return f"{projects_dir}/{name}"
    while cwd.strip("/"):
        directory = f"{projects_dir}/{folder_of(cwd)}"
        if is_directory(directory):
            return directory
        cwd = cwd.rstrip("/").rpartition("/")[0]
    return ""


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits
