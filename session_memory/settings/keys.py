"""The keys of config.yaml in writing: the sample file that a new home gets, and the reference in
docs/use/configuration.md. `python -m session_memory.settings.keys` writes both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .compiled import Key, Kind
from .sections import KEYS, SECTIONS

_EXPECTED = {
    Kind.FLAG: "true or false",
    Kind.TEXT: "a text",
    Kind.TEXTS: "a list such as [WebSearch]",
    Kind.ASSISTANT: "a name of at most 40 characters, not User, Task or Tool, which archives use themselves",
    Kind.PATHS: "an absolute path, or a list of them; ~ is your home directory",
    Kind.RULES: "for each a rule such as {ignore: true}: ignore, quote or isolate_memories, true or false; share, "
    "as team.share",
    Kind.PRICES: "dollars for each model, such as {my-model: {input: 1, output: 5, cached: 0.1}}",
    Kind.STRATEGIES: "a list such as [extractive], each id once",
    Kind.MODEL: "the name of a model",
    Kind.DATABASE: "postgresql://USER@HOST/DATABASE, without a password",
    Kind.HOMES: "a list of paths, or for each path what its own file may set, such as {~/agents/anna: [team]}",
    Kind.NAMES: "a name for each directory, such as {~/work/app: app}",
    Kind.URL: "an address that begins with https:// or http://",
    Kind.VARIABLE: "the name of the environment variable that holds the key, never the key itself",
}
_HEAD = "# session-memory: settings of this home. Every key is optional; these are the defaults.\n"
_BEGIN = "<!-- the keys: written by python -m session_memory.settings.keys -->\n"
_END = "<!-- end of the keys -->\n"


def expected(key: Key) -> str:
    """Describe the values that a key may have, in a few words."""
    if key.kind in (Kind.WHOLE, Kind.NUMBER):
        return f"a {key.kind} from {key.low} to {key.high}"
    choices = [choice if isinstance(choice, str) else written(choice) for choice in key.choices]
    return _EXPECTED.get(key.kind) or " or ".join(choices)


def written(value: Any) -> str:
    """Return a value in YAML, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_plain = value.replace("-", "").replace("_", "").replace(".", "").isalnum() and value[0].isalpha()
    is_word = value.lower() in ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    return value if is_plain and not is_word else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def sample() -> str:
    """Return the commented config.yaml that a new home gets: every key with its default."""
    return _HEAD + _commented()


def reference() -> str:
    """Return the keys of config.yaml as tables of Markdown, one for each section."""
    parts = []
    for section in dict.fromkeys(key.section for key in KEYS):
        title = f"`{section}`" if section else "Keys without a section"
        about = SECTIONS[section].ABOUT
        rows = ["| Key | Value | Default | |", "|---|---|---|---|"]
        for key in KEYS:
            if key.section == section and key.about:
                value = expected(key).replace("|", "\\|")
                about_key = key.about.replace("\n", " ")
                rows.append(f"| `{key.last_name}` | {value} | `{written(key.default)}` | {about_key} |")
        parts.append("\n\n".join([f"### {title}", *([about] if about else []), "\n".join(rows)]))
    return "\n\n".join(parts) + "\n"


def with_reference(page: str) -> str:
    """Return a page of documentation with the current reference between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{reference()}\n{_END}{rest.partition(_END)[2]}"


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
                    ["", about, f"# {section}:"] if not depth else [f"# {indent}{sections[depth]}:  {about}".rstrip()]
                )
        value = key.sample or written(key.default)
        if sections:
            indent = "  " * len(sections)
            *above, beside = key.about.split("\n")
            lines += [f"# {indent}# {line}" for line in above]
            lines.append(f"{f'# {indent}{key.last_name}: {value}':<40} # {beside}")
        else:
            lines += ["", *(f"# {line}" for line in key.about.split("\n")), f"# {key.name}: {value}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    (root / "templates/_base/.session-memory/config.yaml").write_text(sample())
    page = root / "docs/use/configuration.md"
    page.write_text(with_reference(page.read_text()))


if __name__ == "__main__":
    main()
