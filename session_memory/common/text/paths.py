"""Names and paths as text.

Unsafe names for what this program creates are rejected, never rewritten. Pure.
"""

from __future__ import annotations

ANY = "*"  # instead of a name: any file
LONGEST_NAME = 64
_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


def is_name(text: object) -> bool:
    """Check that `text` may name a session, group or file.

    A name is `[A-Za-z0-9._-]{1,64}`, without a leading dot."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_NAME or not text.isascii():
        return False
    if text[0] == ".":
        return False
    return text.replace("-", "").isalnum() or not text.strip(_CHARACTERS)


def is_id(text: str) -> bool:
    """Return whether a text has the form of the ids that nearly all runtimes give to sessions."""
    return len(text) == 36 and [at for at, character in enumerate(text) if character == "-"] == [
        8,
        13,
        18,
        23,
    ]


def resolved(path: str, cwd: str) -> str:
    """Return `path` as an absolute path without `.` and `..`; '' if it needs an unknown `cwd`."""
    if not path.startswith("/"):
        if not cwd:
            return ""
        path = f"{cwd}/{path}"
    if "//" not in path and "/." not in path and not path.endswith("/"):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part and part != ".":
            parts.append(part)
    return "/" + "/".join(parts)


def relative(path: str, directory: str, inside: str = "") -> str:
    """Return `path` relative to `directory` if it is below it, else unchanged.

    For a reader `inside` a directory below it, such as `packages/web`, return it as git prints it
    there: `src/cart.ts`, `../api/x.ts`."""
    base = directory.rstrip("/") + "/"
    if not directory or not path.startswith(base) or len(path) == len(base):
        return path
    path, up = path[len(base) :], ""
    while inside and not path.startswith(inside + "/"):
        inside, up = inside.rpartition("/")[0], up + "../"
    return up + (path[len(inside) + 1 :] if inside else path)


def dashed(path: str) -> str:
    """Return `path` as several runtimes name a folder for it.

    Each UTF-16 unit outside `[A-Za-z0-9]` becomes `-`."""
    plain = path.replace("/", "-").replace("_", "-").replace(".", "-")
    if plain.isascii() and plain.replace("-", "").isalnum():
        return plain  # nearly every path
    # by hand: loading the codec takes longer
    return "".join(
        [
            character
            if character.isascii() and character.isalnum()
            else "-"
            if character < "\U00010000"
            else "--"
            for character in path
        ]
    )
