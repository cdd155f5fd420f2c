"""Bundle of the modules that a prompt loads: one file of code objects, made by an install.

Without it, Python searches directories for each of 24 to 34 modules, and opens, checks and reads a
file for each. The entries in `hooks/` load the bundle. The rows EVENTS and NOTES of
`extension_points` are in it too, each with its module. The install computes a module's PREBUILT,
calling it if it is a function, and the bundled code has the value.

An interpreter with another magic number does not load the bundle, and none loads a truncated one. A
module whose source has another size or mtime by now is loaded from its source, and so are all
modules in a plugin or a checkout.
"""

# It saves 0.19 x of a bare start in a prompt with nothing to report (`quiet-50`: 0.86 instead of
# 1.05), and 0.28 x if the sessions are of seven runtimes (`many-quiet-50`: 1.01 instead of 1.29) or
# one starts (`session-start`: 1.01 instead of 1.29). The file contains
#
#     in HEAD_BYTES: the interpreter's magic number, as a .pyc does, then (code of bundle_finder,
#     the parts), marshalled
#     the codes of the modules of each part, marshalled as one tuple; only imported parts are read

from __future__ import annotations

import ast
import marshal
import sys
from collections import Counter
from importlib import import_module
from importlib.util import MAGIC_NUMBER, resolve_name

from ...common.system.files import is_directory, is_file, os, read_whole, write_atomically
from ...extension_points import EVENTS, NOTES, RUNTIMES
from . import _bundle_finder as bundle_finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from ._bundle_finder import BundledModule, BundledPart

# in the program's directory; the entries in `hooks/` also use the name and HEAD_BYTES
FILE = "prompt.bundle"
HEAD_BYTES = 24 * 1024
_PACKAGE = "session_memory"
# Modules that prompts load, each with the imports that no earlier part has. One part is for every
# prompt, another for nearly every prompt with news. Modules that several of these import come
# before them, one by one.
_RUNTIMES = [place.partition(":")[0] for place, *_ in RUNTIMES.values()]
_PARTS = (
    (
        "awareness.events.main",
        "awareness.events.prompt",
        "sessions.runtimes.claude",
        "sessions.settings.compiled",
        "sessions.transcripts.projects",
    ),
    ("awareness.activity.session_state",),
    ("awareness.activity.actions",),
    ("awareness.activity.call_log",),
    ("awareness.events.tool_call",),
    ("common.text.acting_commands",),
    ("sessions.transcripts.lines",),
    ("sessions.transcripts.mirror",),
    ("sessions.transcripts.edits",),
    ("sessions.runtimes._mirrored",),
    *[(name,) for name in _RUNTIMES],
    ("awareness.activity.updates",),
    ("sessions.runtimes.claude.records",),
    ("common.text.sanitize",),
    (
        "awareness.activity._forks",
        "awareness.activity._relevance",
        "awareness.activity.report",
        "awareness.activity._new_entries",
        "awareness.activity.update_text",
    ),
    ("common.system.git",),
    ("awareness.activity._own_work",),
    ("awareness.activity._concerned",),
    ("awareness.activity.collisions.search",),
    ("awareness.activity.collisions._lines",),
    ("awareness.activity.collisions.ref_notes",),
    *[(f"{name}.records",) for name in _RUNTIMES],
    ("sessions.transcripts._mirrored_files",),
    ("sessions.transcripts.old_sessions",),
    ("sessions.runtimes.gemini.mirrors",),
    ("sessions.runtimes.opencode.mirrors",),
    ("sessions.runtimes.atif.mirrors",),
    ("sessions.transcripts.project_folders",),
    ("sessions.transcripts.earlier_paths", "common.system.git_identity"),
    ("awareness.activity.collisions._git",),
    ("awareness.activity.collisions._losses",),
    ("awareness.activity._commands",),
    ("common.text.secrets.assignments",),
    ("common.text.secrets.scan",),
    ("awareness.activity._same_task", "common.text.task_names", "sessions.transcripts.turns"),
    ("common.text.shell_effects", "common.text.shell_names"),
    ("awareness.activity.status_line",),
    ("awareness.activity._named_edits",),
    ("awareness.events.upkeep_start",),
    ("awareness.events._session_start",),
)


def write_bundle(root: str) -> None:
    """Make the bundle of the program in `root`, for this interpreter.

    Raises OSError, ValueError."""
    known: dict[str, _Source] = {}
    begun = {""}
    parts: list[BundledPart] = []
    codes = b""
    for names in (*_PARTS, *_feature_parts(root)):
        before = len(known)
        for name in names:
            _add(root, f"{_PACKAGE}.{name}", known, begun)
        sources = list(known.values())[before:]
        if not sources:  # a feature that was deleted
            continue
        together = marshal.dumps(tuple([source.code() for source in sources]))
        parts.append(
            (HEAD_BYTES + len(codes), len(together), tuple([source.module for source in sources]))
        )
        codes += together
    finder = _Source(root, bundle_finder.__name__).code()
    head = MAGIC_NUMBER + marshal.dumps((finder, tuple(parts)))
    if len(head) > HEAD_BYTES:
        raise ValueError(
            f"{FILE}: a head of {len(head)} bytes is more than the entries in hooks/ read"
        )
    write_atomically(f"{root}/{FILE}", head.ljust(HEAD_BYTES, b"\0") + codes)


def has_usable_bundle(root: str) -> bool:
    """Check if this interpreter would load all modules of the bundle in `root` from the bundle."""
    try:
        with open(f"{root}/{FILE}", "rb", 0) as bundle:
            head = bundle.read(HEAD_BYTES)
            if not head.startswith(MAGIC_NUMBER):
                return False
            parts: tuple[BundledPart, ...] = marshal.loads(head[len(MAGIC_NUMBER) :])[1]
            modules = [module for part in parts for module in part[2]]
            return bundle_finder.is_whole(bundle, parts) and all(
                bundle_finder.is_as_bundled(root, module) for module in modules
            )
    except (OSError, ValueError, EOFError, TypeError):
        return False


def _feature_parts(root: str) -> list[tuple[str, ...]]:
    """Return the parts for the features of events and notes: shared imports, then each feature.

    A deleted feature has none."""
    places = [*NOTES.values(), *[row[0] for rows in EVENTS.values() for row in rows.values()]]
    modules = {place.partition(":")[0] for place in places}
    imported = Counter(
        name.removeprefix(f"{_PACKAGE}.")
        for module in modules
        if is_file(f"{root}/{_PACKAGE}/{module.replace('.', '/')}.py")
        for name in set(_Source(root, f"{_PACKAGE}.{module}").imports())
    )
    shared = sorted([name for name, count in imported.items() if count > 1])
    return [("common.extensions",), *[(name,) for name in (*shared, *sorted(modules))]]


class _Source:
    """The source of one of our modules below `root`. Raises OSError if there is none."""

    def __init__(self, root: str, name: str) -> None:
        path = name.replace(".", "/")
        self.is_package = is_directory(f"{root}/{path}")
        self._file = f"{path}/__init__.py" if self.is_package else f"{path}.py"
        status = os.stat(f"{root}/{self._file}")
        self.module: BundledModule = (
            name,
            self.is_package,
            self._file,
            status.st_size,
            status.st_mtime_ns,
        )
        self._tree = ast.parse(read_whole(f"{root}/{self._file}"))

    def imports(self) -> list[str]:
        """Return the names of our modules, or of their members, that loading the module imports."""
        names = []
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom) and node.level:
                above = self._absolute(node)
                names += [above, *[f"{above}.{alias.name}" for alias in node.names]]
        return names

    def _absolute(self, node: ast.ImportFrom) -> str:
        """Return the whole name of the module from which a statement imports."""
        name = self.module[0]
        package = name if self.is_package else name.rpartition(".")[0]
        return resolve_name("." * node.level + (node.module or ""), package)

    def code(self) -> CodeType:
        """Return the module's code with the value of its PREBUILT; it has two fifths of the bytes.

        It lacks docstrings, annotations of functions, imports for types and line numbers. It also
        lacks `from __future__ import annotations`, which is a flag of the compiler here, because
        that statement would import the module `__future__` (0.1 ms the first time)."""
        self._tree.body = [
            node
            for node in self._tree.body
            if getattr(node, "module", "") != "__future__" and not _is_for_types(node)
        ]
        for made in self._tree.body:
            if isinstance(made, (ast.Assign, ast.AnnAssign)) and _is_prebuilt(made):
                computed = import_module(self.module[0]).PREBUILT
                value = marshal.dumps(computed() if callable(computed) else computed)
                made.value = ast.parse(f"__import__('marshal').loads({value!r})", mode="eval").body
        for node in _statements(self._tree.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.returns = None
                for argument in _arguments(node.args):
                    argument.annotation = None
            elif isinstance(node, ast.ImportFrom):
                node.module, node.level = self._absolute(node), 0
        flags = annotations.compiler_flag
        code: CodeType = compile(
            self._tree, self._file, "exec", flags, dont_inherit=True, optimize=2
        )
        return _without_lines(code)


def _is_prebuilt(node: ast.Assign | ast.AnnAssign) -> bool:
    """Check if a statement gives PREBUILT its value."""
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return isinstance(target, ast.Name) and target.id == "PREBUILT"


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements of a body and those within them, without the expressions."""
    left: list[ast.AST] = [*body]
    while left:
        node = left.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, part, ())


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    others = [each for each in (arguments.vararg, arguments.kwarg) if each]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *others]


def _is_for_types(node: ast.stmt) -> bool:
    """Check if a statement is `if TYPE_CHECKING: ...`, which never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _add(root: str, name: str, sources: dict[str, _Source], begun: set[str]) -> None:
    """Add the module `name`, if it is one, to `sources`, after its packages and imports.

    Only imports from other packages are added."""
    if name in begun:
        return
    begun.add(name)
    try:
        source = _Source(root, name)
    except OSError:  # it is a member of a module
        return
    imports = [name.rpartition(".")[0], *source.imports()]
    for module in [module for module in imports if not module.startswith(f"{name}.")]:
        _add(root, module, sources, begun)
    sources[name] = source
    for module in imports:
        _add(root, module, sources, begun)


def _without_lines(code: CodeType) -> CodeType:
    """Return the code without line numbers and names of classes, which hook.log does not show."""
    inner = [
        _without_lines(constant) if isinstance(constant, type(code)) else constant
        for constant in code.co_consts
    ]
    code = code.replace(co_linetable=b"", co_consts=tuple(inner))
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=code.co_name)
    return code
