"""Finds the files that a call edits, with pairs of removed and added text. Pure.

The sources are the call's arguments, a patch, or a unified diff."""

from __future__ import annotations

from ...common.system.json import as_object, objects_of
from ...common.text.paths import resolved
from .entries import FAILED, NOTHING, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.records import Record

Edit = tuple[str, str]  # the old text ('' if unknown) and the new one
# an edit with the lines around it, and the first line's number in each text
Hunk = tuple[str, str, int, int]

# outcomes of a call, as entries and as the store have them
_DID_NOTHING = (NOTHING, FAILED, "error")
_TEMPORARY = ("/tmp/", "/var/tmp/", "/var/folders/", "/dev/", "/proc/")
# A command line without any of these words shows no written file, so it need not be parsed.
_WRITING = (">", "sed", "perl", "mv ", "cp ", "tee ", "touch ", "patch ")
_FILE_MARKS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def edited_files(kind: str, argument: str, cwd: str, outcome: str = "") -> list[str]:
    """Return the absolute paths of the files that a tool call in the directory `cwd` edited.

    These are the file of an editing tool, and the files that a command line shows, each once.
    `argument` is the path or the command line. A failed call edited nothing, but in a failed
    command line the commands before the last one count. Uncertain edits are left out, and so are
    temporary files outside `cwd`. A file that a script writes is unknown."""
    if kind == "edit":
        path = resolved(argument, cwd) or argument
        return [path] if path and outcome not in _DID_NOTHING else []
    if kind != "command" or outcome == NOTHING or not any([hint in argument for hint in _WRITING]):
        return []
    from ...common.text.shell_effects import EDIT, effects_of

    sure = [
        effect
        for effect in effects_of(argument, cwd)
        if effect.kind == EDIT and not effect.is_doubtful
    ]
    done = [effect for effect in sure if effect.is_followed or outcome not in _DID_NOTHING]
    paths = dict.fromkeys([effect.path for effect in done])
    return [path for path in paths if not path.startswith(_TEMPORARY) or path.startswith(f"{cwd}/")]


def block_edits(
    record: Record, call_id: str, arguments_key: str, before: str, after: str
) -> list[Edit]:
    """Return the edits of the call `call_id` in a record's message, as `argument_edits` does.

    The message's blocks have their arguments at `arguments_key`."""
    for block in objects_of(as_object(record.get("message")).get("content")):
        if block.get("id") == call_id:
            return argument_edits(block.get(arguments_key), before, after, "content")
    return []


def argument_edits(arguments: object, before: str, after: str, whole: str) -> list[Edit]:
    """Return the edits in a call's arguments.

    The arguments, or each of their `edits`, have the texts under the keys `before` and `after`; or
    they have a whole file under `whole`."""
    if not isinstance(arguments, dict):
        return []
    several = arguments.get("edits")
    parts = objects_of(several if isinstance(several, list) else [arguments])
    pairs = [(part.get(before), part.get(after)) for part in parts]
    edits = [(old, new) for old, new in pairs if isinstance(old, str) and isinstance(new, str)]
    content = arguments.get(whole)
    return edits or ([("", content)] if isinstance(content, str) else [])


def patched_files(patch: str) -> list[str]:
    """Return the paths of the files that a patch names, each once, as it has them."""
    lines = [line for line in patch.split("\n") if line.startswith(_FILE_MARKS)]
    return list(dict.fromkeys([line.partition(": ")[2].strip() for line in lines]))


def patch_uses(use: ToolUse) -> tuple[ToolUse, ...]:
    """Return an edit for each file of the patch that a tool use has as its argument."""
    paths = patched_files(use.argument)
    return tuple(
        [
            ToolUse(use.name, path, use.kind, part_id(use.call_id, at))
            for at, path in enumerate(paths)
        ]
    )


def part_id(call_id: str, number: int) -> str:
    """Return the id of a call's change to one file, counted from 0; '' if the call has no id."""
    return call_id + (f":{number}" if call_id and number else "")


def part_number(call_id: str, own_id: str) -> int | None:
    """Return the number of the part that `part_id` named, of the call `own_id`; None for others.

    A model's own ids may have a colon too: Kimi K2 writes `functions.edit:0`."""
    if call_id == own_id:
        return 0
    number = call_id[len(own_id) + 1 :] if own_id and call_id.startswith(f"{own_id}:") else ""
    return int(number) if number.isdecimal() else None


def patch_edits(patch: str, number: int) -> list[Edit]:
    """Return the edits of the file with this number in a patch, counted from 0."""
    parts: list[list[str]] = []
    for line in patch.splitlines():
        if line.startswith(_FILE_MARKS):
            parts.append([])
        elif parts and not line.startswith("*** "):
            parts[-1].append(line)
    return diff_edits("\n".join(parts[number])) if number < len(parts) else []


def diff_edits(diff: str) -> list[Edit]:
    """Return the edits of a unified diff, one for each hunk."""
    return _edits_in(diff.splitlines())


def _edits_in(diff: list[str]) -> list[Edit]:
    hunks: list[tuple[list[str], list[str]]] = []
    for line in diff:
        if line.startswith(("--- ", "+++ ")) and not hunks:
            continue
        if line.startswith("@@") or not hunks:
            hunks.append(([], []))
        if line.startswith("@@") or line.startswith("\\"):
            continue
        before, after = hunks[-1]
        if not line.startswith("+"):
            before.append(line[1:])
        if not line.startswith("-"):
            after.append(line[1:])
    return [("\n".join(before), "\n".join(after)) for before, after in hunks if before or after]


def diff_hunks(diff: str) -> list[Hunk]:
    """Return the hunks of a unified diff; none unless each says where it begins."""
    starts = [line.split(" ")[1:3] for line in diff.splitlines() if line.startswith("@@ -")]
    edits = diff_edits(diff)
    if len(starts) != len(edits):
        return []
    numbers = [[part.lstrip("+-").partition(",")[0] for part in pair] for pair in starts]
    return [
        (*edit, int(pair[0]), int(pair[1]))
        for edit, pair in zip(edits, numbers)
        if len(pair) == 2 and all([number.isdecimal() for number in pair])
    ]


def structured_hunks(patch: object) -> list[Hunk]:
    """Return the hunks in Claude Code's `structuredPatch`."""
    hunks: list[Hunk] = []
    for hunk in objects_of(patch):
        lines = hunk.get("lines")
        if isinstance(lines, list) and all([isinstance(line, str) for line in lines]):
            before, after = hunk.get("oldStart"), hunk.get("newStart")
            if isinstance(before, int) and isinstance(after, int):
                hunks += [(*edit, before, after) for edit in _edits_in(["@@", *lines])]
    return hunks
