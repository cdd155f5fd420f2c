"""JSON through CPython's C scanner and encoder, without the `json` package.

`import json` costs about 0.8 of an interpreter start, on every prompt. `_json` is private, though unchanged from
3.8 to 3.14; where it is missing or differs, `json` itself serves. Invalid JSON raises ValueError.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Scanner = Callable[[str, int], tuple[Any, int]]

_CHECKSUM_PRIME = (1 << 61) - 1
_SPACE = " \t\r\n\0"  # NUL: what a file system may leave where a record was not written any more
# SystemError: the C scanner takes its JSONDecodeError from `json.decoder`, which is not loaded.
_UNREADABLE = (ValueError, StopIteration, RecursionError, SystemError)


class _Context:
    """What the C scanner asks of a `json.JSONDecoder`; strict off, since real files hold raw control characters."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _c_parts() -> tuple[Scanner, Callable[[object], str]]:
    import _json

    scan = _json.make_scanner(_Context)  # type: ignore[arg-type]
    quote = _json.encode_basestring_ascii

    def unknown(value: object) -> object:
        raise TypeError(f"not JSON: {value!r}")

    encoder = _json.make_encoder(None, unknown, quote, None, ": ", ", ", False, False, True)

    def encode(value: object) -> str:
        return "".join(encoder(value, 0))

    scan("{}", 0), encode({})
    return scan, encode


def _json_parts() -> tuple[Scanner, Callable[[object], str]]:
    import json

    decoder: Any = json.JSONDecoder(strict=False)
    return decoder.scan_once, json.dumps


try:
    _scan, encode = _c_parts()
except (ImportError, AttributeError, TypeError):
    _scan, encode = _json_parts()


def decode(text: str) -> Any:
    """The one JSON value that `text` holds."""
    try:
        value, end = _scan(text, 0)
        if end == len(text):
            return value
    except _UNREADABLE:
        pass
    values, unreadable = _values(text, 0, [])
    if unreadable or len(values) != 1:
        raise ValueError("not one JSON value")
    return values[0]


def sealed(value: object) -> bytes:
    """`value` as the content of a file of ours that tells by its first line whether it is as it was written."""
    text = encode(value).encode()
    return b"%d\n%s" % (_checksum(text), text)


def unsealed(content: bytes) -> Any:
    """The value that `sealed` made this of. Raises ValueError for any other content, whoever has changed it."""
    checksum, _, text = content.partition(b"\n")
    if checksum != b"%d" % _checksum(text):
        raise ValueError("it is not as it was written")
    return decode(text.decode())


def _checksum(content: bytes) -> int:
    return int.from_bytes(content, "little") % _CHECKSUM_PRIME


def as_string(value: object) -> str:
    """A decoded value if it is a string, else ''. JSON can name half of a surrogate pair, which no file, database or
    terminal takes: U+FFFD stands for it."""
    if not isinstance(value, str):
        return ""
    if value.isascii() or value.isprintable():  # nearly all
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decode_line(line: bytes) -> tuple[list[Any], int]:
    """The JSON values of one line of a JSONL file, and how many pieces of it could not be read (0 or 1).

    Usually one value; several where a runtime that was killed left out a newline and they stand glued together.
    """
    text = line.decode("utf-8", "replace")
    try:
        value, end = _scan(text, 0)
    except _UNREADABLE:
        if not text[:1].strip(_SPACE):
            return _values(text, 0, [])
        return [], 1  # as all lines of a file that is no JSONL: nothing is scanned twice
    return ([value], 0) if end == len(text) else _values(text, end, [value])


def objects_in(line: bytes) -> list[dict[str, Any]]:
    """The JSON objects of one line of a JSONL file, without what else is in it."""
    return [value for value in decode_line(line)[0] if isinstance(value, dict)]


def _values(text: str, at: int, values: list[Any]) -> tuple[list[Any], int]:
    """What `decode_line` returns, where `values` are those in `text` before `at`."""
    text = text.rstrip(_SPACE)
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at >= len(text):
            return values, 0
        try:
            value, at = _scan(text, at)
        except _UNREADABLE:
            return values, 1
        values.append(value)
