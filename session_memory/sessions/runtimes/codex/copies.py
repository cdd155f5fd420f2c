"""Copies of the rollouts that Codex has compressed (`.jsonl.zst`) or archived.

With a copy they are read like all others. The copies are in folders by day below our own directory,
which is a mirror (see sessions/transcripts/mirror.py). Each copy is made once, with the time of its
original. It is removed when the original is deleted, or is back uncompressed at its usual path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ....common.system import files
from ....common.system.json import as_object, as_string, decode_line, encode, objects_in
from ....common.text.timestamps import epoch_seconds
from ...transcripts.mirror import (
    Exclusion,
    MirrorState,
    Repeats,
    copies_of,
    keep_state,
    read_state,
    update_mirrors,
)
from .records import CodexRecords, CodexRollout

Stamps = dict[str, list[int]]
PlaceOf = Callable[[str], str]


COMPRESSED = ".zst"
SESSIONS, ARCHIVED = "sessions", "archived_sessions"


def bring_up_to_date(config_dir: str, root: str, exclusion: Exclusion, place_of: PlaceOf) -> None:
    """Create missing copies below `root` and remove unwanted ones.

    `place_of` returns an archived rollout's former path from its name. Damaged rollouts are
    recorded. Work that cannot be done now is left for the next time. Compressed rollouts are read
    only if a library for zstd is installed."""
    paths = {**_archived(config_dir, place_of), **_compressed(f"{config_dir}/{SESSIONS}")}
    wanted = {key: files.path_stamp(path) for key, path in paths.items()}
    copied, unread = _done(root, exclusion)
    if wanted == {**copied, **{key: stamp for key, (stamp, _) in unread.items()}}:
        return
    # not loaded if there is nothing to do, because each listing of sessions calls this
    from ....common.system.zstd import can_decompress

    if not can_decompress():
        wanted = {
            key: stamp for key, stamp in wanted.items() if not paths[key].endswith(COMPRESSED)
        }
        if wanted == copied:
            return
    update_mirrors(root, lambda: _update(config_dir, root, exclusion, paths, wanted))


def _update(
    config_dir: str, root: str, exclusion: Exclusion, paths: dict[str, str], wanted: Stamps
) -> None:
    """Update the copies, under the lock. Raises OSError if the state cannot be written."""
    from ....common.system.zstd import DamagedFileError

    copied, noted = _done(root, exclusion)
    unread = {key: note for key, note in noted.items() if wanted.get(key) == note[0]}
    for key in read_state(root).copied.keys() - wanted.keys():
        _remove(f"{root}/{key}")
    copied = {key: stamp for key, stamp in copied.items() if key in wanted}
    for key, stamp in wanted.items():
        if copied.get(key) == stamp or key in unread:
            continue
        try:
            _copy(paths[key], f"{root}/{key}", exclusion, stamp)
            copied[key] = stamp
        except DamagedFileError as error:
            unread[key] = stamp, str(error)
        except OSError:  # it is gone, or the disk is full
            continue
    state = MirrorState()
    state.sessions, state.copied = f"{config_dir}/{SESSIONS}", copied
    state.unread = {key + COMPRESSED: noted for key, noted in unread.items()}
    state.rules = exclusion.stamps
    keep_state(root, state)


def _done(root: str, exclusion: Exclusion) -> tuple[Stamps, dict[str, tuple[list[int], str]]]:
    """Return the copies made under these rules, and the unreadable files with reasons.

    Each has its stamp."""
    state = read_state(root)
    known = state.copied.items() if state.rules == exclusion.stamps else ()
    copied = {key: stamp for key, stamp in known if files.is_file(f"{root}/{key}")}
    unread = state.unread.items()
    return copied, {key.removesuffix(COMPRESSED): (stamp, why) for key, (stamp, why) in unread}


def _copy(path: str, copy: str, exclusion: Exclusion, stamp: list[int]) -> None:
    """Write the rollout at `path` to `copy`, completely or not at all.

    Raises DamagedFileError, OSError."""
    from ....common.system.zstd import blocks, decompressed

    temporary = f"{copy}.{files.os.getpid()}.tmp"
    source = files.open_regular(path)
    try:
        with files.Closing(
            files.open_private(temporary, files.os.O_WRONLY | files.os.O_TRUNC)
        ) as target:
            content = decompressed(source) if path.endswith(COMPRESSED) else blocks(source)
            is_excluded, until, repeats = False, 0.0, None
            for number, line in enumerate(_lines(content)):
                if not number:
                    first = next(iter(objects_in(line)), {})
                    header = as_object(first.get("payload", first))
                    ids = as_string(header.get("id")), CodexRollout(header, first).of_session
                    is_excluded = exclusion.hides(as_string(header.get("cwd")), *ids)
                line = _copied_line(line, is_excluded, until, repeats)
                if not number:
                    until = exclusion.forgotten(as_string(header.get("cwd")), *ids)
                    repeats = exclusion.repeats(
                        CodexRecords(), as_string(header.get("cwd")), ids[0]
                    )
                while line:
                    line = line[files.os.write(target, line) :]
        files.os.utime(temporary, ns=(stamp[2], stamp[2]))
        files.replace(temporary, copy)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        files.os.close(source)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines in blocks, each with its line feed, which may be missing from the last."""
    partial_line = b""
    for block in blocks:
        *lines, partial_line = (partial_line + block).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if partial_line:
        yield partial_line


def _copied_line(line: bytes, is_excluded: bool, until: float, repeats: Repeats | None) -> bytes:
    """Return a line as the copy has it: the same unless it contains something to leave out.

    Left out are messages up to `until`, when they were forgotten, and messages that `repeats`
    recognises. The new line is as long as the old one if possible, because readers continue at an
    offset in bytes."""
    records, unreadable = decode_line(line)
    remembered = [
        record
        for record in records
        if (not until or (epoch_seconds(as_object(record).get("timestamp")) or 0.0) > until)
        and not (repeats and repeats.drops(as_object(record)))
    ]
    kept = copies_of(remembered, is_excluded)
    if kept == records and not unreadable:
        return line
    text = b"".join([encode(record).encode() for record in kept]) or (b"{}" if records else b"")
    return text.ljust(len(line.rstrip(b"\n"))) + line[len(line.rstrip(b"\n")) :]


def _compressed(sessions_dir: str) -> dict[str, str]:
    """Return the compressed rollouts without an original beside them.

    The keys are their paths without `.zst`."""
    rollouts: dict[str, str] = {}
    folders = [""]
    for _ in ("year", "month", "day"):
        below = [
            (above, name) for above in folders for name in files.names_in(f"{sessions_dir}/{above}")
        ]
        folders = [f"{above}{name}/" for above, name in below if name.isdigit()]
    for folder in folders:
        names = set(files.names_in(f"{sessions_dir}/{folder}"))
        for name in names:
            plain = name.removesuffix(COMPRESSED)
            if (
                plain != name
                and name.startswith("rollout-")
                and plain.endswith(".jsonl")
                and plain not in names
            ):
                rollouts[folder + plain] = f"{sessions_dir}/{folder}{name}"
    return rollouts


def _archived(config_dir: str, place_of: PlaceOf) -> dict[str, str]:
    """Return the rollouts that Codex has archived, by their former paths.

    The paths are relative to the sessions directory; a rollout's name contains the day. Rollouts
    that are back at that path are left out."""
    rollouts: dict[str, str] = {}
    for name in files.names_in(f"{config_dir}/{ARCHIVED}"):
        plain = name.removesuffix(COMPRESSED)
        key = place_of(plain)
        if (
            key
            and not files.is_file(f"{config_dir}/{SESSIONS}/{key}")
            and not (plain != name and key in rollouts)
        ):
            rollouts[key] = f"{config_dir}/{ARCHIVED}/{name}"
    return rollouts


def _remove(path: str) -> None:
    try:
        files.os.unlink(path)
    except OSError:
        pass
