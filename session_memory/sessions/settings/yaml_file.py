"""Reads a YAML settings file as values: small, without aliases, every key a text with its line."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ConfigError
from ...common.system.files import LARGEST_BYTES

if TYPE_CHECKING:
    from types import ModuleType

    from yaml import Node, Token

# the directory that a runtime keeps for a plugin, beyond its updates
ENV_DATA = "CLAUDE_PLUGIN_DATA"
# In the person's place: shared by the runtimes that keep no such directory
SHARED_FOLDER = "plugin"
DEEPEST = 20  # deeper nesting is refused without reading further
_LARGEST = 1 << 63  # no key has a larger value, and Python may refuse to print one
_INSTALL_HINT = "`session-memory doctor` says how to install it; or remove the file"

KeyPath = tuple[str, ...]


class Document(NamedTuple):
    """The content of a file: its `values`, and for the path of each key its `lines`, from 1."""

    values: dict[str, object]
    lines: dict[KeyPath, int]


def read_document(path: str) -> Document:
    """Return the content of the file `path`.

    A key that is set twice has both values: sections are joined, and two other values that differ
    become a tuple, which is not a valid value of any key. Raises ConfigError, OSError."""
    text = read_text(path)
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return Document({}, {})
    yaml = _yaml(path)
    try:
        nodes = _Nodes(yaml)
        node = yaml.compose(text, _loader(yaml))
        values = nodes.value(node) if node else None
    except yaml.YAMLError as error:
        mark, at = getattr(error, "problem_mark", None), getattr(error, "position", None)
        line = mark.line + 1 if mark else None if at is None else text.count("\n", 0, at) + 1
        where = f"{path}:{line}" if line else path
        raise ConfigError(f"{where}: {getattr(error, 'problem', None) or error}") from error
    if values is None:
        return Document({}, {})
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: it should contain keys and values, such as `scope: all`")
    return Document(values, nodes.lines)


def read_text(path: str) -> str:
    """Return the text of the file `path`, without waiting, whatever the file is.

    Raises ConfigError, OSError."""
    # and never wait for a FIFO
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path}: not a regular file")
    with open(descriptor, "rb") as file:
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:  # PyYAML needs a second for this much
        raise ConfigError(
            f"{path}: more than {LARGEST_BYTES // 1024} KB, which is too much for settings"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: it is not UTF-8, so a name in it could be misread; save the file as UTF-8"
        ) from error


def has_parser() -> bool:
    """Check if PyYAML is installed.

    A plugin installs it in the background, after its first prompts."""
    try:
        _yaml("")
    except ConfigError:
        return False
    return True


def add_site_packages(data_dirs: list[str]) -> None:
    """Let this process import the packages installed for its Python in `data_dirs`, if any."""
    inside = "Lib" if os.name == "nt" else f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    for data_dir in data_dirs:
        packages = f"{data_dir}/env/{inside}/site-packages"
        is_new = os.path.isabs(data_dir) and packages not in sys.path
        if is_new and os.path.isdir(packages):  # Python would not look again for a missing one
            sys.path.append(packages)


def _yaml(path: str) -> ModuleType:
    """Return PyYAML, adding site-packages if needed.

    A hook runs without site-packages (-S). If the first import fails, they are added, and also the
    packages that a plugin installed for itself."""
    try:
        import yaml
    except ImportError:
        import site

        site.main()
        beside = f"{os.path.dirname(path)}/{SHARED_FOLDER}"  # if it is the person's own file
        add_site_packages([os.environ.get(ENV_DATA, ""), beside])
        try:
            import yaml
        except ImportError:
            raise ConfigError(f"{path}: PyYAML is needed to read it", _INSTALL_HINT) from None
    return yaml


def _loader(yaml: ModuleType) -> type:
    """Return a loader that refuses deep nesting and aliases.

    A few aliases can mean billions of values."""

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc]
        depth = 0

        def fetch_flow_collection_start(self, token: Token) -> None:
            # many brackets in a row are scanned before the first is a value
            if self.flow_level == DEEPEST:
                raise yaml.scanner.ScannerError(
                    None, None, "it is nested too deeply", self.get_mark()
                )
            super().fetch_flow_collection_start(token)

        def compose_node(self, parent: Node, index: Node | int) -> Node:
            mark = self.peek_event().start_mark
            if self.check_event(yaml.AliasEvent):
                raise yaml.composer.ComposerError(
                    None, None, "aliases (*name) are not supported", mark
                )
            if self.depth == DEEPEST:
                raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
            self.depth += 1
            node: Node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader


class _Nodes:
    """The values of YAML's nodes."""

    def __init__(self, yaml: ModuleType) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._yaml = yaml
        self._constructor = yaml.constructor.SafeConstructor()

    def value(self, node: Node, at: KeyPath = ()) -> object:
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(item, at) for item in node.value]
        if not isinstance(node, self._yaml.MappingNode):
            return self._scalar(node)
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            # A key is taken as it is written: `on`, `12` and `2026-01-01` are names of sessions
            # like any other.
            key = key_node.value if isinstance(key_node, self._yaml.ScalarNode) else "?"
            self.lines.setdefault((*at, key), key_node.start_mark.line + 1)
            value = self.value(value_node, (*at, key))
            values[key] = joined(values[key], value) if key in values else value
        return values

    def _scalar(self, node: Node) -> object:
        """Return a value that fits into JSON; anything else, such as a date, as written."""
        try:
            value = self._constructor.construct_object(node)
        except ValueError:  # it looks like a date, but is not one
            value = None if node.value is None else str(node.value)
        if isinstance(value, str) and (
            "\0" in value or value.encode("utf-8", "ignore").decode() != value
        ):
            # YAML can name NUL and half of a surrogate pair
            problem = "it contains a character that YAML does not allow"
            raise self._yaml.composer.ComposerError(None, None, problem, node.start_mark)
        if isinstance(value, int) and abs(value) >= _LARGEST:
            return node.value
        is_finite = isinstance(value, float) and abs(value) < float("inf")
        return (
            value
            if value is None or is_finite or isinstance(value, bool | int | str)
            else node.value
        )


def joined(first: object, second: object) -> object:
    """Return both values of a key that is set twice: sections are joined, others are a pair."""
    if isinstance(first, dict) and isinstance(second, dict):
        both = {key: joined(first[key], second[key]) for key in first if key in second}
        return {**first, **second, **both}
    return first if first == second and type(first) is type(second) else (first, second)
