"""Writes the keys of config.yaml: into a sample file, the reference, and a user's file.

`python -m session_memory.sessions.settings.keys` writes the sample for a new home and
docs/reference/settings.md. `set_key` and `unset_key` change one key of a file; every other line and
comment stays as it is."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...common.errors import ConfigError
from ...common.system.files import make_private_dir, write_atomically
from .compiled import Key, Kind
from .replaced_keys import as_written
from .section_table import KEYS, SECTIONS
from .yaml_file import KeyPath, read_document, read_text

_EXPECTED = {
    Kind.FLAG: "true or false",
    Kind.TEXT: "a text",
    Kind.TEXTS: "a list such as [WebSearch]",
    Kind.ASSISTANT: "a name of at most 40 characters, except User, Task and Tool, which archives use "
    "themselves",
    Kind.PATHS: "an absolute path, or a list of them; ~ is your home directory",
    Kind.RULES: "a rule for each, such as {ignore: true}: ignore, quote or isolate_memories, true "
    "or false; share, "
    "with the values of team.share",
    Kind.PRICES: "dollars for each model, such as {my-model: {input: 1, output: 5, cached: 0.1}}",
    Kind.STRATEGIES: "a list such as [extractive], each id once",
    Kind.MODEL: "the name of a model",
    Kind.DATABASE: "postgresql://USER@HOST/DATABASE, without a password",
    Kind.AGENTS: "a list of paths, or paths with the settings that their own files may change, such as "
    "{~/agents/anna: [team]}",
    Kind.NAMES: "a name for each directory, such as {~/work/app: app}",
    Kind.URL: "an address that begins with https:// or http://",
    Kind.VARIABLE: "the name of the environment variable that holds the key, never the key itself",
}
_HEAD = "# session-memory: settings of this home. Every key is optional; these are the defaults.\n"
_BEGIN = "<!-- the keys: written by python -m session_memory.sessions.settings.keys -->\n"
_END = "<!-- end of the keys -->\n"


def expected(key: Key) -> str:
    """Describe the values that a key may have, in a few words."""
    if key.kind in (Kind.WHOLE, Kind.NUMBER):
        return f"a {key.kind} from {key.low} to {key.high}"
    choices = [choice if isinstance(choice, str) else written(choice) for choice in key.choices]
    return _EXPECTED.get(key.kind) or " or ".join(choices)


def written(value: object) -> str:
    """Return a value as YAML, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{written(key)}: {written(inner)}" for key, inner in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_plain = (
        value.replace("-", "").replace("_", "").replace(".", "").isalnum() and value[0].isalpha()
    )
    is_word = value.lower() in ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    return (
        value
        if is_plain and not is_word
        else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def sample() -> str:
    """Return the commented config.yaml that a new home gets: every key with its default."""
    return _HEAD + _commented()


def _reference() -> str:
    """Return the keys of config.yaml as Markdown tables, one for each section."""
    parts = []
    for section in dict.fromkeys(key.section for key in KEYS):
        title = f"`{section}`" if section else "Keys without a section"
        about = SECTIONS[section].ABOUT
        rows = ["| Key | Value | Default | |", "|---|---|---|---|"]
        for key in KEYS:
            if key.section == section and key.about:
                value = expected(key).replace("|", "\\|")
                about_key = key.about.replace("\n", " ")
                rows.append(
                    f"| `{key.last_name}` | {value} | `{written(key.default)}` | {about_key} |"
                )
        parts.append("\n\n".join([f"### {title}", *([about] if about else []), "\n".join(rows)]))
    return "\n\n".join(parts) + "\n"


def _with_reference(page: str) -> str:
    """Return a page of documentation with the current reference between its two marks."""
    before, _, after = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{_reference()}\n{_END}{after.partition(_END)[2]}"


def _commented() -> str:
    lines: list[str] = []
    shown: set[str] = set()
    for key in [key for key in KEYS if key.about]:
        sections = key.name.split(".")[:-1]
        for depth in range(len(sections)):
            section = ".".join(sections[: depth + 1])
            if section not in shown:
                shown.add(section)
                about = SECTIONS[section].ABOUT and f"# {SECTIONS[section].ABOUT}"
                indent = "  " * depth
                lines += (
                    ["", about, f"# {section}:"]
                    if not depth
                    else [f"# {indent}{sections[depth]}:  {about}".rstrip()]
                )
        value = key.sample or written(key.default)
        if sections:
            indent = "  " * len(sections)
            *above, beside = key.about.split("\n")
            lines += [f"# {indent}# {line}" for line in above]
            lines.append(f"{f'# {indent}{key.last_name}: {value}':<40} # {beside}")
        else:
            lines += [
                "",
                *(f"# {line}" for line in key.about.split("\n")),
                f"# {key.name}: {value}",
            ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the sample of the templates and the reference of settings."""
    root = Path(__file__).resolve().parents[3]
    (root / "templates/_base/.session-memory/config.yaml").write_text(sample())
    page = root / "docs/reference/settings.md"
    page.write_text(_with_reference(page.read_text()))


if __name__ == "__main__":
    main()


_BY_HAND = "change it by hand"


def set_key(path: str, at: KeyPath, value: object) -> None:
    """Set the key `at` in the file `path`, creating the file if needed.

    `at` has the sections, such as ("store", "poll_interval_ms"). If the file has the key, its line
    is replaced. If it has the key in a comment, the line goes below that. Otherwise it goes to the
    end of its section. Raises ConfigError if this is impossible without further changes,
    OSError."""
    path = os.path.realpath(path)  # replace the file that a link leads to, not the link
    before, lines_by_key, lines = _read(path)
    at = as_written(lines_by_key, at)
    if at in lines_by_key:
        _replace(lines, lines_by_key[at] - 1, at[-1], value, path)
    else:
        _insert(lines, lines_by_key, at, value)
    _write(path, lines, before, at, value)


def unset_key(path: str, at: KeyPath) -> bool:
    """Remove the line of the key `at` from the file `path`; return False if it has none.

    Then the key's default applies. Raises ConfigError if this is impossible without further
    changes, OSError."""
    path = os.path.realpath(path)
    before, lines_by_key, lines = _read(path)
    at = as_written(lines_by_key, at)
    if at not in lines_by_key:
        return False
    _replace(
        lines, lines_by_key[at] - 1, at[-1], None, path
    )  # raises if the key takes more than its line
    for depth in range(len(at), 0, -1):  # and sections that contain nothing else
        index = lines_by_key[at[:depth]] - 1
        lines_below = lines[index + 1 :]
        has_inner = bool(lines_below) and _indent(lines_below[0]) > _indent(lines[index])
        if depth < len(at) and (has_inner or lines[index].rstrip()[-1:] != ":"):
            break
        del lines[index]
    _write(path, lines, before, at, None)
    return True


def _read(path: str) -> tuple[dict[str, object], dict[KeyPath, int], list[str]]:
    """Return the values of a file, the line of each key, and its lines; empty if it is missing."""
    text = read_text(path) if os.path.lexists(path) else ""
    document = read_document(path) if text else None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return (document.values, document.lines, lines) if document else ({}, {}, lines)


def _write(
    path: str, lines: list[str], before: dict[str, object], at: KeyPath, value: object
) -> None:
    make_private_dir(os.path.dirname(path))
    candidate = f"{path}.new"
    write_atomically(candidate, "".join(lines).encode())
    try:
        if not _is_as_meant(candidate, before, at, value):
            raise ConfigError(
                f"{path}: {'.'.join(at)} cannot be changed without other lines", _BY_HAND
            )
        os.chmod(candidate, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600)
        os.replace(candidate, path)
    finally:
        if os.path.lexists(candidate):
            os.unlink(candidate)


def _is_as_meant(path: str, before: object, at: KeyPath, value: object) -> bool:
    """Check that only the key `at` has changed in the file: from the values `before` to `value`."""
    try:
        after = read_document(path).values
    except ConfigError:
        return False
    current: object = after
    for part in at:
        current = current.get(part) if isinstance(current, dict) else None
    return bool(current == value and _without(after, at) == _without(before, at))


def _replace(lines: list[str], index: int, key: str, value: object, path: str) -> None:
    """Replace the value on a line; keep the text before it and a comment after it."""
    match = re.match(rf"(\s*[\"']?{re.escape(key)}[\"']?\s*:)\s*(.*?)(\s+#.*)?\r?\n$", lines[index])
    indent = len(lines[index]) - len(lines[index].lstrip())
    goes_on = index + 1 < len(lines) and _indent(lines[index + 1]) > indent
    if not match or goes_on:
        raise ConfigError(
            f"{path}:{index + 1}: {key} spans more than one line, or shares its line with another key",
            _BY_HAND,
        )
    lines[index] = f"{match[1]} {written(value)}{match[3] or ''}\n"


def _insert(lines: list[str], lines_by_key: dict[KeyPath, int], at: KeyPath, value: object) -> None:
    """Add a line for the key where it belongs, with lines for its missing sections."""
    depth = max(depth for depth in range(len(at)) if not depth or at[:depth] in lines_by_key)
    new = [f"{'  ' * level}{at[level]}:\n" for level in range(depth, len(at) - 1)]
    new.append(f"{'  ' * (len(at) - 1)}{at[-1]}: {written(value)}\n")
    if not depth:
        index = _after_comment(lines, at)
        lines[index:index] = new
        return
    start = lines_by_key[at[:depth]] - 1
    own_indent = _indent(lines[start]) if lines[start].strip() else 0
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > own_indent):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    written_lines = [
        line for line in lines[start + 1 : end] if line.strip() and line.lstrip()[0] != "#"
    ]
    shift = " " * ((_indent(written_lines[0]) if written_lines else 0) or own_indent + 2)
    base = len("  " * depth)
    lines[end:end] = [shift + line[base:] for line in new]


def _after_comment(lines: list[str], at: KeyPath) -> int:
    """Return the index after the comment that describes a key, else the end."""
    starts = [number for number, line in enumerate(lines) if line.startswith(f"# {at[0]}:")]
    index = starts[0] + 1 if starts else len(lines)
    while index < len(lines) and len(at) > 1 and lines[index].startswith("#  "):
        index += 1
    return index


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" ")) if line.strip() else 0


def _without(values: object, at: KeyPath) -> object:
    """Return `values` without the key `at` and without sections that this empties."""
    if not isinstance(values, dict):
        return values
    others = {key: inner for key, inner in values.items() if key != at[0]}
    if len(at) > 1 and at[0] in values:
        inner = _without(values[at[0]] or {}, at[1:])
        if inner:
            others[at[0]] = inner
    return others


def parsed(text: str) -> object:
    """Return the value that `text` on a command line means in YAML."""
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
