"""Git's files, read without starting git: the worktree of a directory, its branch, moves of HEAD.

`GIT_DIR` and similar variables are ignored; only the files of the repository count. They are read
only where the person's own git would read them; for another user's repository, git itself is asked.
"""

from __future__ import annotations

from . import files

USUAL_BRANCHES = ("main", "master", "trunk", "develop")  # that everybody works on
LOG_BYTES = 64 * 1024  # of the log of HEAD, from its end
MOST_WORKTREES = 500
# git's words, by place, device, inode and owner
_refusals: dict[tuple[str, int, int, int], str] = {}
_REF = "ref: "
BRANCH_REFS = "refs/heads/"


class Worktree:
    """A worktree.

    It has its `root` ('' for a bare repository), its own `git_dir`, the `common_dir` that it shares
    with the repository's other worktrees, and git's `name` for it (for the main worktree, its
    directory's name)."""

    def __init__(self, root: str, git_dir: str, common_dir: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.name = _base(root if git_dir == common_dir else git_dir) or _base(common_dir)


class HeadMove:
    """A line of the log of HEAD.

    It has the commits before and after, the time in seconds since the epoch, and git's message,
    such as `checkout: moving from main to fix/x`."""

    def __init__(self, before: str, after: str, time: int, message: str) -> None:
        self.before = before
        self.after = after
        self.time = time
        self.message = message

    @property
    def verb(self) -> str:
        """Return the first word of git's message: what git did."""
        return self.message.partition(":")[0].partition(" ")[0]

    @property
    def branches(self) -> tuple[str, str] | None:
        """Return the branches or commits that a checkout moved from and to, or None."""
        head, _, moved = self.message.partition(": moving from ")
        before, separator, after = moved.partition(" to ")
        return (before, after) if separator and head == "checkout" else None


def find_worktree(
    directory: str, user_dir: str = "", known: dict[str, Worktree | None] | None = None
) -> Worktree | None:
    """Return the worktree that contains a directory (an absolute path).

    Return None if there is none, if git refuses to work in it, or if the repository is at the
    person's home directory `user_dir` or above, because such a repository is not about the projects
    below it. For many directories, `known` keeps the results for each directory on the way up."""
    worktree = locate_worktree(directory, user_dir, known)
    return None if worktree is None or _refusal(worktree) else worktree


def locate_worktree(
    directory: str, user_dir: str = "", known: dict[str, Worktree | None] | None = None
) -> Worktree | None:
    """Return the worktree that contains a directory, even if git refuses to work in it.

    Use this only for rules that hide content, which may hide more with it."""
    directory, user_dir = (
        files.real_path(directory).rstrip("/"),
        files.real_path(user_dir) if user_dir else "",
    )
    known = {} if known is None else known
    seen, worktree = [], None
    while directory and directory != user_dir and not user_dir.startswith(directory + "/"):
        seen.append(directory)
        worktree = known[directory] if directory in known else _worktree_at(directory)
        if worktree is not None or directory in known:
            break
        directory = directory.rpartition("/")[0]
    known.update(dict.fromkeys(seen, worktree))
    return worktree


def _refusal(worktree: Worktree) -> str:
    """Return git's words if it refuses to work in a worktree, such as another user's, or ''.

    Git is started only if another user owns a part of it, once per process for a place and its
    owner."""
    root, git_dir = worktree.root, worktree.git_dir
    paths = dict.fromkeys([root, f"{root}/.git", git_dir] if root else [git_dir])
    statuses = [
        status for path in paths if (status := files.status_at(path, follow_symlinks=False))
    ]
    user = files.os.geteuid() if hasattr(files.os, "geteuid") else 0
    others = [status for status in statuses if status.st_uid != user]
    if not others:
        return ""
    key = (root or git_dir, others[0].st_dev, others[0].st_ino, others[0].st_uid)
    if key not in _refusals:
        from .git_process import refusal_of_git

        _refusals[key] = refusal_of_git(root or git_dir)
    return _refusals[key]


def refusal_at(directory: str, user_dir: str = "") -> str:
    """Return git's words if it refuses to work in the repository of a directory, or ''."""
    worktree = locate_worktree(directory, user_dir)
    return _refusal(worktree) if worktree else ""


def worktrees_of(common_dir: str) -> list[Worktree]:
    """Return the worktrees of a repository, the main one first if known.

    Worktrees with a deleted directory are left out."""
    worktrees = []
    root, _, name = common_dir.rpartition("/")
    if name == ".git" and root:
        worktrees.append(Worktree(root, common_dir, common_dir))
    for name in sorted(files.names_in(common_dir + "/worktrees"))[:MOST_WORKTREES]:
        git_dir = f"{common_dir}/worktrees/{name}"
        link = _first_line(git_dir + "/gitdir")
        root = _resolved(link, git_dir).rpartition("/")[0] if link else ""
        if root and files.is_directory(root):
            worktrees.append(Worktree(root, git_dir, common_dir))
    return worktrees


def copied_to(path: str, others: list[str], user_dir: str = "") -> list[str]:
    """Return the paths of `others` that are the file at `path` in other worktrees.

    The worktrees belong to the same repository. All paths are absolute."""
    worktree = find_worktree(path.rpartition("/")[0], user_dir)
    inside = path[len(worktree.root) :] if worktree else ""
    copies = []
    for other in [
        path_there
        for path_there in others
        if inside and path_there.endswith(inside) and path_there != path
    ]:
        tree = find_worktree(other.rpartition("/")[0], user_dir)
        if (
            worktree
            and tree
            and tree.common_dir == worktree.common_dir
            and other == tree.root + inside
            and tree.root != worktree.root
        ):
            copies.append(other)
    return copies


def head_of(git_dir: str) -> str:
    """Return the checked-out branch, else the commit; '' if unknown."""
    head = _first_line(git_dir + "/HEAD")
    if not head:
        return ""
    if not head.startswith(_REF):
        return head if len(head) >= 40 and " " not in head else ""
    name = head[len(_REF) :].strip()
    # A repository that stores its refs in a table instead of files has this content, for programs
    # that do not know tables.
    return "" if name.endswith("/.invalid") else name.removeprefix(BRANCH_REFS)


def is_commit(head: str) -> bool:
    """Check if a result of `head_of` is a commit, not a branch."""
    return len(head) >= 40 and not head.strip("0123456789abcdef")


def commit_of(worktree: Worktree) -> str:
    """Return the id of the checked-out commit if a file has it, '' if its branch is packed."""
    head = head_of(worktree.git_dir)
    return head if is_commit(head) else _first_line(f"{worktree.common_dir}/refs/heads/{head}")


def head_moves(git_dir: str, since: float) -> list[HeadMove]:
    """Return the moves of HEAD since a time, in order; [] without a log.

    The time is in seconds since the epoch."""
    return _moves_in(git_dir + "/logs/HEAD", since)


def branch_moves(worktree: Worktree, branch: str, since: float) -> list[HeadMove]:
    """Return the moves of a branch since a time, from any worktree, in order; [] without a log."""
    return _moves_in(f"{worktree.common_dir}/logs/refs/heads/{branch}", since)


def ref_moves(common_dir: str, ref: str, since: float = 0.0) -> list[HeadMove]:
    """Return the moves of a ref such as `refs/stash` since a time, in order; [] without a log."""
    return _moves_in(f"{common_dir}/logs/{ref}", since)


def _moves_in(log: str, since: float) -> list[HeadMove]:
    moves = []
    for line in reversed(files.read_end(log, LOG_BYTES).split(b"\n")):
        move = _head_move(line.decode("utf-8", "replace"))
        if move is not None:
            if move.time < int(since):
                break
            moves.append(move)
    return moves[::-1]


def _worktree_at(directory: str) -> Worktree | None:
    """Return the worktree whose root is `directory`, or the bare repository there."""
    path = directory + "/.git"
    status = files.status_at(path)
    if status is None:
        is_bare = files.is_file(directory + "/HEAD") and files.is_directory(directory + "/objects")
        return (
            Worktree("", files.real_path(directory), _common_dir(files.real_path(directory)))
            if is_bare
            else None
        )
    if not files.is_regular(status):
        git_dir = files.real_path(path)
    else:  # of a linked worktree or of a submodule
        link = _first_line(path)
        if not link.startswith("gitdir: "):
            return None
        git_dir = _resolved(link[len("gitdir: ") :], directory)
    if not files.status_at(git_dir + "/HEAD", follow_symlinks=False):
        return None
    return Worktree(files.real_path(directory), git_dir, _common_dir(git_dir))


def _common_dir(git_dir: str) -> str:
    shared = _first_line(git_dir + "/commondir")
    return _resolved(shared, git_dir) if shared else git_dir


def _head_move(line: str) -> HeadMove | None:
    """Parse a line of the log: `<before> <after> <who> <<mail>> <seconds> <zone>\t<message>`."""
    head, _, message = line.partition("\t")
    commits, _, when = head.rpartition("> ")
    words = commits.split(" ", 2)
    seconds = when.partition(" ")[0]
    if len(words) < 3 or not seconds.isdecimal():
        return None
    return HeadMove(words[0], words[1], int(seconds), message.strip())


def _first_line(path: str) -> str:
    """Return the first line of a small file; '' if it is missing."""
    try:
        return files.read_whole(path).partition(b"\n")[0].decode("utf-8", "surrogateescape").strip()
    except (OSError, files.NotAFileError):
        return ""


def _resolved(path: str, base: str) -> str:
    return files.real_path(path if path.startswith("/") or path[1:2] == ":" else f"{base}/{path}")


def _base(path: str) -> str:
    return path.rpartition("/")[2]
