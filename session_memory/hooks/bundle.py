"""The modules that a prompt loads, in one file of code objects, which an install makes.

With it a prompt that has nothing to tell takes 0.85 x of a bare interpreter, without it 0.98 x: for each of 30 modules
Python looks into directories, and opens, checks and reads a file. The entries in `hooks/` load the bundle, which holds

    in HEAD_BYTES: the interpreter's magic number, as a .pyc does, then (code of bundle_finder, its modules), marshalled
    the code of each module, marshalled, of which only what is imported is read

It is not loaded by an interpreter with another magic number, nor where a source has another size or mtime than the one
that it was made from, nor where it is cut off: then the sources are loaded, as they are in a plugin or a checkout.
"""

from __future__ import annotations

import ast
import marshal
import sys
from importlib.util import MAGIC_NUMBER

from ..system.files import is_directory, os, read_whole, write_atomically
from . import bundle_finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from .bundle_finder import BundledModule

FILE = "prompt.bundle"  # in the program's directory; the entries know the name and HEAD_BYTES too
HEAD_BYTES = 16 * 1024
_PACKAGE = "session_memory"
# What a prompt loads, at its start or later; what these import at their head goes into the bundle with them.
_LOADED = (
    "hooks.main", "hooks.prompt", "hooks.tool_call", "settings.compiled", "settings.rules",
    "transcripts.projects", "transcripts.project_folders",
    "runtimes.claude.hooks", "runtimes.claude.files", "runtimes.claude.records",
    "runtimes.pi.hooks", "runtimes.pi.files", "runtimes.pi.records",
    "runtimes.codex.hooks", "runtimes.codex.files", "runtimes.codex.records",
    "runtimes.qwen.hooks", "runtimes.qwen.files", "runtimes.qwen.records",
    "runtimes.copilot.hooks", "runtimes.copilot.files", "runtimes.copilot.records",
    "runtimes.opencode.hooks", "runtimes.opencode.files", "runtimes.opencode.records",
    "runtimes.gemini.hooks", "runtimes.gemini.files", "runtimes.gemini.records", "runtimes.gemini.mirrors",
    "activity.forks", "activity.report", "activity.unseen", "activity.updates", "activity.prompt_memories",
    "activity.acknowledgement", "activity.in_hand", "activity.unread",
    "activity.collision_file", "activity.collision_search",
    "activity.collision_lines", "activity.evidence", "activity.git_collisions", "activity.call_facts",
    "text.shell_effects",
)  # fmt: skip


def write_bundle(root: str) -> None:
    """Makes the bundle of the program in the directory `root`, from which this module was loaded, for the interpreter
    that runs this. Raises OSError, ValueError."""
    for name in _LOADED:
        __import__(f"{_PACKAGE}.{name}")
    loaded = [name for name in sys.modules if name.partition(".")[0] == _PACKAGE and not name.startswith(__name__)]
    finder = _compiled(root, bundle_finder.__name__.replace(".", "/") + ".py")
    modules: list[BundledModule] = []
    codes = b""
    for name in loaded:
        path = name.replace(".", "/")
        is_package = is_directory(f"{root}/{path}")
        file = f"{path}/__init__.py" if is_package else f"{path}.py"
        status = os.stat(f"{root}/{file}")
        code = marshal.dumps(_compiled(root, file))
        at = HEAD_BYTES + len(codes)
        modules.append((name, is_package, file, status.st_size, status.st_mtime_ns, at, len(code)))
        codes += code
    head = MAGIC_NUMBER + marshal.dumps((finder, tuple(modules)))
    if len(head) > HEAD_BYTES:
        raise ValueError(f"{FILE}: a head of {len(head)} bytes is more than the entries in hooks/ read")
    write_atomically(f"{root}/{FILE}", head.ljust(HEAD_BYTES, b"\0") + codes)


def has_usable_bundle(root: str) -> bool:
    """Whether the interpreter that runs this would load the bundle of the program in the directory `root`."""
    try:
        with open(f"{root}/{FILE}", "rb", 0) as bundle:
            head = bundle.read(HEAD_BYTES)
            if not head.startswith(MAGIC_NUMBER):
                return False
            return bundle_finder.is_usable(bundle, root, marshal.loads(head[len(MAGIC_NUMBER) :])[1])
    except (OSError, ValueError, EOFError, TypeError):
        return False


def _compiled(root: str, file: str) -> CodeType:
    """The code of a source without what running it does not need, a fifth of its bytes: docstrings and the annotations
    of functions; and without its `from __future__ import annotations`, which the compiler is told in another way: each
    of these statements would import the module `__future__`, 0.1 ms the first time."""
    module = ast.parse(read_whole(f"{root}/{file}"))
    module.body = [node for node in module.body if not _is_future_import(node)]
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    code: CodeType = compile(module, file, "exec", annotations.compiler_flag, dont_inherit=True, optimize=2)
    return code


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
