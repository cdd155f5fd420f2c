"""Brings the mirrors of ATIF trajectories up to date by adding new steps.

A trajectory is one JSON document with numbered steps, versions 1.0 to 1.8. Its mirror has a line
for each step, followed by a line for each of its results. New steps are appended as lines. If a
step has changed or is gone, a line withdraws the steps from there on. A mark has the number of
lines and their checksum, and the same for the last steps.
"""

from __future__ import annotations

from zlib import crc32

from ....common.system.files import (
    Opened,
    is_directory,
    is_file,
    make_private_dir,
    names_in,
    read_at,
)
from ....common.system.json import as_list, as_object, as_string, encode, objects_of
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ....common.text.timestamps import epoch_seconds
from ...transcripts._mirrored_files import MOST_BYTES, Source, read_document
from ...transcripts.mirror import Mirror, mark_of
from .records import SESSION, STEP, TITLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...transcripts.mirror import HiddenBy, Repeats
    from .._mirrored import Mirrors

    Record = dict[str, Any]

# depth below the directory: `<job>/<trial>/agent/trajectory.json` is 3 below Harbor's `jobs`
DEEPEST = 5
MOST_FOLDERS = 2000
HEAD_BYTES = 64 * 1024  # a document identifies itself in these, unless its keys are sorted
VERSION = '"ATIF-v1.'
CHECKED_STEPS = 40  # the last ones, back to which a change is traced


_STEP_KEYS = ("source", "timestamp", "message", "reasoning_content", "tool_calls", "metrics")
_EXTRA_KEYS = ("cwd", "message_id", "role", "context_management")


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new steps of the trajectories to the mirrors.

    It does so for all trajectories, or for those that a prompt may report."""

    mirrors.refresh(everything, find_trajectories, _add)


def find_trajectories(config_dir: str) -> tuple[list[str], list[Source]]:
    """Return the folders in a directory, and the JSON files in them."""
    folders, sources = [config_dir], []
    for folder in folders:
        for name in names_in(folder):
            path = f"{folder}/{name}"
            if name.endswith(".json"):
                sources.append(Source(path, path[len(config_dir) + 1 :]))
            elif (
                not name.startswith(".")
                and path[len(config_dir) :].count("/") <= DEEPEST
                and is_directory(path)
            ):
                folders += [path] if len(folders) < MOST_FOLDERS else []
    return folders, sources


def session_of(source: Source) -> str:
    """Return the session id of a file; '' if it is not a trajectory or cannot be read."""
    try:
        return _id_of(_document(source, MOST_BYTES)[0], source.key)
    except (OSError, ValueError, KeyError):
        return ""


def _document(source: Source, most_bytes: int) -> tuple[Record, int]:
    """Return the document in a file, and its size.

    Raises OSError; KeyError if it is not a trajectory; ValueError if it is longer than
    `most_bytes`; UnreadableError if it can never be read."""
    with Opened(source.path) as descriptor:
        if VERSION.encode() not in read_at(descriptor, 0, HEAD_BYTES):
            raise KeyError(VERSION)
        document, size = read_document(descriptor, most_bytes)
    if not as_string(document.get("schema_version")).startswith(VERSION[1:]):
        raise KeyError(VERSION)
    return document, size


def _add(source: Source, mirrors: Mirrors, most_bytes: int) -> int:
    """Update the mirrors of a trajectory and its embedded ones; return the number of bytes read.

    Raises OSError and ValueError."""
    try:
        document, size = _document(source, most_bytes)
    except KeyError:
        return 0
    session_id, cwd = _id_of(document, source.key), _directory(document)
    config_dir, root, exclusion = mirrors.config_dir, mirrors.root, mirrors.exclusion
    above = next(
        (
            f"{root}/{name}"
            for name in names_in(root)
            if is_file(f"{root}/{name}/{session_id}.jsonl")
        ),
        "",
    )
    above = above or mirrors.folder(cwd)
    files = mark_of(f"{above}/{session_id}.jsonl").get("files", {})
    if files and source.key not in files and any([is_file(f"{config_dir}/{key}") for key in files]):
        session_id = f"{session_id[:50]}-{_checksum(source.key)}"  # another part of the run
    title = redact(as_string(as_object(document.get("extra")).get("title")).strip())
    hidden_by = exclusion.hidden_by([cwd], [session_id], [title])
    until = exclusion.forgotten(cwd, session_id)
    make_private_dir(above)
    head = {
        "type": SESSION,
        "id": session_id,
        "cwd": cwd,
        "agent": as_object(document.get("agent")).get("name"),
    }
    titles = [{"type": TITLE, "title": title}] if title and not until else []
    repeats = mirrors.repeats(cwd, session_id)
    place = Place(source, hidden_by, repeats)
    place.mirror(f"{above}/{session_id}.jsonl", head, titles, _lines(document, session_id, until))
    for number, trajectory in enumerate(objects_of(document.get("subagent_trajectories"))):
        own_id = _id_of(trajectory, f"{source.key} {number}", "trajectory_id")
        make_private_dir(f"{above}/{session_id}")
        inner_head = {**head, "id": own_id, "parent_id": session_id}
        path = f"{above}/{session_id}/{own_id}.jsonl"
        place.mirror(path, inner_head, [], _lines(trajectory, f"{session_id}.{own_id}", until))
    return size


def _id_of(document: Record, key: str, *names: str) -> str:
    """Return the id of a trajectory: its value for one of `names`, or a checksum of `key`."""
    given = [as_string(document.get(name)) for name in names or ("session_id", "trajectory_id")]
    return next((name for name in given if is_name(name)), f"atif-{_checksum(key)}")


def _checksum(key: str) -> str:
    return f"{crc32(key.encode('utf-8', 'surrogateescape')):08x}"


def _directory(document: Record) -> str:
    """Return the agent's working directory as noted by Harbor's converters; '' if there is none."""
    for holder in (
        as_object(document.get("extra")),
        as_object(as_object(document.get("agent")).get("extra")),
    ):
        for given in (
            holder.get("cwd"),
            *as_list(holder.get("cwds")),
            holder.get("working_directory"),
        ):
            if isinstance(given, str) and given.startswith("/"):
                return given
    return ""


def _lines(document: Record, session_id: str, until: float) -> Iterator[tuple[int, Record]]:
    """Yield the lines of a trajectory, each with its step number.

    Forgotten messages (up to `until`) are left out, and so are steps copied for context, because
    another trajectory has them."""
    agent = as_object(document.get("agent"))
    for number, step in enumerate(as_list(document.get("steps")), 1):
        if not isinstance(step, dict) or step.get("is_copied_context"):
            continue
        if until and (epoch_seconds(step.get("timestamp")) or 0.0) <= until:
            continue
        yield number, _of_step(step, number, session_id, as_string(agent.get("model_name")))
        for call_id, result in _results(step):
            yield number, {"type": "result", "id": call_id, "number": number, **result}


def _of_step(step: Record, number: int, session_id: str, model: str) -> Record:
    """Return the line of a step. `model` is the agent's model, which the step may override."""
    extra = as_object(step.get("extra"))
    step_id = as_string(extra.get("entry_id")) or f"{session_id}:{number}"
    line: Record = {"type": STEP, "id": step_id, "number": number}
    line.update({key: step[key] for key in _STEP_KEYS if step.get(key) is not None})
    if step.get("source") == "agent":
        line["model"] = as_string(step.get("model_name")) or model
    line.update({key: extra[key] for key in _EXTRA_KEYS if extra.get(key)})
    return line


def _results(step: Record) -> Iterator[tuple[str, Record]]:
    """Yield the results in a step, each with the id of its call.

    If no result names its call, they are in the order of the calls."""
    calls = objects_of(step.get("tool_calls"))
    results = objects_of(as_object(step.get("observation")).get("results"))
    are_named = any([result.get("source_call_id") for result in results])
    for at, result in enumerate(results if calls else ()):
        call = calls[min(at, len(calls) - 1)]
        call_id = result.get("source_call_id") if are_named else call.get("tool_call_id")
        kept = {key: result[key] for key in ("content", "extra") if result.get(key) is not None}
        if call_id and kept:
            yield as_string(call_id), kept


def _is_beginning(end: list[int], mark: Record) -> bool:
    """Check if lines with this number and checksum come before a step of the mirror with a mark.

    If they end before all steps whose checksums the mark has, they count as such."""
    steps = [step[1:] for step in mark.get("steps", ())]
    return end in steps or end[:1] < min(steps, default=[])[:1]


class Place:
    """A trajectory's file, and the parts to leave out of our mirror.

    Everything is left out if it is `hidden_by` a rule, else only the forgotten parts that `repeats`
    recognises. If the file `may_be_earlier` than our mirror, steps that it lacks are kept."""

    def __init__(
        self,
        source: Source,
        hidden_by: HiddenBy,
        repeats: Repeats | None,
        *,
        may_be_earlier: bool = False,
    ) -> None:
        self.source = source
        self.hidden_by = hidden_by
        self.repeats = repeats
        self.may_be_earlier = may_be_earlier

    def mirror(
        self, path: str, head: Record, titles: list[Record], numbered: Iterator[tuple[int, Record]]
    ) -> None:
        """Add the missing lines to the mirror at `path`, after its `head` and `titles`."""
        lines: list[Record] = []
        sums = [0]  # the checksums of the first lines, by their number
        steps: list[
            list[int]
        ] = []  # the number of a step, of the lines before it, and their checksum
        for number, line in numbered:
            if not steps or steps[-1][0] != number:
                steps.append([number, len(lines), sums[-1]])
            lines.append(line)
            sums.append(crc32(encode(line).encode(), sums[-1]))
        source = self.source
        with Mirror(path, self.hidden_by, self.repeats) as mirror:
            mark = mirror.mark
            if self.may_be_earlier and _is_beginning([len(lines), sums[-1]], mark):
                return
            added: list[Record | bytes] = [] if mark else [head]
            added += titles if titles != mark.get("titles", []) else []
            count, known = mark.get("end", [0, 0])
            if sums[count : count + 1] != [known]:
                same = [step for step in mark["steps"] if sums[step[1] : step[1] + 1] == step[2:]]
                back, count = same[-1][:2] if same else (1, 0)
                added.append({"type": "taken_back", "number": back})
            added += lines[count:]
            after = {
                "files": {source.key: source.stamp[1]},
                "titles": titles,
                "end": [len(lines), sums[-1]],
                "steps": steps[-CHECKED_STEPS:],
            }
            if added or {**mark, **after} != mark:
                mirror.append(added, after, source.stamp[2] // 1_000_000)
