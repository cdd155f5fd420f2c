"""JSON through CPython's C scanner and encoder, without the `json` package.

`import json` would take about 0.8 of an interpreter start on every prompt. `_json` is private,
though unchanged from 3.8 to 3.14; if it is missing or differs, `json` itself is used. Invalid JSON
raises ValueError.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeGuard

    Scanner = Callable[[str, int], tuple[Any, int]]
    Encoder = Callable[[object], str]

LAST_SECOND = 253_402_300_800  # of the year 9999: no record is younger
_CHECKSUM_PRIME = (1 << 61) - 1
_MOST_OPEN = 32  # open objects of a torn record; each may be scanned up to the tear
_FEW_BRACES = 8
_SHORT_BYTES = 16 * 1024
# NUL: a file system may leave it after a torn write. SystemError: the C scanner looks for its
# JSONDecodeError in `json.decoder`, which is not loaded.
_SPACE = " \t\r\n\0"
# SystemError: the C scanner looks for its JSONDecodeError in `json.decoder`, which is not loaded
_UNREADABLE = (ValueError, StopIteration, RecursionError, SystemError)


class _Context:
    """The part of a `json.JSONDecoder` that the C scanner needs.

    It is not strict, because real files contain control characters."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _c_parts() -> tuple[Scanner, Encoder, Encoder]:
    import _json

    scan = _json.make_scanner(_Context)  # type: ignore[arg-type]
    quote = _json.encode_basestring_ascii

    def unknown(value: object) -> object:
        raise TypeError(f"not JSON: {value!r}")

    def encoder_with(colon: str, comma: str) -> Encoder:
        encoder = _json.make_encoder(None, unknown, quote, None, colon, comma, False, False, True)
        return lambda value: "".join(encoder(value, 0))

    encode = encoder_with(": ", ", ")
    scan("{}", 0), encode({})
    return scan, encode, encoder_with(":", ",")


def _json_parts() -> tuple[Scanner, Encoder, Encoder]:
    import json

    decoder: Any = json.JSONDecoder(strict=False)
    return decoder.scan_once, json.dumps, json.JSONEncoder(separators=(",", ":")).encode


try:
    _scan, encode, encode_compactly = _c_parts()
except (ImportError, AttributeError, TypeError):
    _scan, encode, encode_compactly = _json_parts()


def decode(text: str) -> Any:
    """Return the one JSON value that `text` holds."""
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
    """Return `value` as the content of a file, with a checksum in its first line."""
    text = encode(value).encode()
    return b"%d\n%s" % (_checksum(text), text)


def unsealed(content: bytes) -> Any:
    """Return the value that `sealed` wrote. Raises ValueError if the content has been changed."""
    checksum, _, text = content.partition(b"\n")
    if checksum != b"%d" % _checksum(text):
        raise ValueError("it is not as it was written")
    return decode(text.decode())


def _checksum(content: bytes) -> int:
    return int.from_bytes(content, "little") % _CHECKSUM_PRIME


def as_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def is_time(value: object) -> TypeGuard[float]:
    """Check if a value is a time in seconds since the epoch."""
    is_number = isinstance(value, (int, float)) and type(value) is not bool
    return is_number and 0 <= value <= LAST_SECOND  # type: ignore[operator]


def as_list(value: object) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list, without its other values; [] if `value` is not a list."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_string(value: object) -> str:
    """Return a value if it is a string, else ''. Half a surrogate pair becomes U+FFFD."""
    if not isinstance(value, str):
        return ""
    if value.isascii() or value.isprintable():  # nearly all
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decode_line(line: bytes) -> tuple[list[Any], int]:
    """Return the JSON values of one line of a JSONL file, and 1 if a part was unreadable, else 0.

    Usually there is one value. A killed runtime may omit the line feed; then the next record
    follows a whole or a torn one."""
    text = line.decode("utf-8", "replace")
    try:
        value, end = _scan(text, 0)
    except _UNREADABLE:
        return _values(text, 0, [])
    return ([value], 0) if end == len(text) else _values(text, end, [value])


def objects_in(line: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects of one line of a JSONL file, without other values."""
    return [value for value in decode_line(line)[0] if isinstance(value, dict)]


def is_glued(line: bytes, *starts: bytes) -> bool:
    """Check if a line may have a record that begins as one of `starts` after another record.

    The other record is whole or torn."""
    return holds_object(line, starts)


def holds_object(line: bytes, starts: tuple[bytes, ...], at: int = 0) -> bool:
    """Check if an object after `at` begins as one of `starts`.

    These begin with a brace or the text before it. A single byte is found fast: a picture of 1 MB,
    which has few braces, takes 18 us instead of 570. In a line of up to 16 KB this does not pay:
    real transcripts of 42 MB are filtered in 51 ms instead of 69."""
    if len(line) > _SHORT_BYTES:
        for _ in range(_FEW_BRACES):
            at = line.find(b"{", at + 1)
            if at < 0:
                return False
            if line.startswith(starts, at) or line.startswith(starts, at - 1):
                return True
    at = max(at, 1)
    for start in starts:  # noqa: SIM110  `any` takes longer
        if line.find(start, at) > 0:
            return True
    return False


def _values(text: str, at: int, values: list[Any]) -> tuple[list[Any], int]:
    """Return the result of `decode_line`, given the `values` in `text` before `at`."""
    text = text.rstrip(_SPACE)
    unreadable = 0
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if not 0 <= at < len(text):
            return values, unreadable
        try:
            value, at = _scan(text, at)
            values.append(value)
        except _UNREADABLE:
            unreadable, at = 1, _behind_torn(text, at)


def _behind_torn(text: str, at: int) -> int:
    """Return the start of the first whole object after the torn one at `at`; -1 without one.

    A whole record ends with the line or before another object, unlike an object inside the torn
    one."""
    for _ in range(_MOST_OPEN):
        at = text.find('{"', at + 1)
        while at >= 0:
            try:
                _, end = _scan(text, at)
            except _UNREADABLE:
                break  # torn as well
            if end == len(text) or text[end] == "{":
                return at
            at = text.find('{"', end)
        else:
            return -1
    return -1
