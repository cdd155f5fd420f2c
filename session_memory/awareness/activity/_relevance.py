"""Relevance: the words of a prompt, compared with the reports of other sessions."""

from __future__ import annotations

from .changes import PROMPT_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...sessions.transcripts.entries import Session
    from ...sessions.transcripts.read_cursor import ReadCursors
    from .changes import Changed, OwnSession
    from .report import Report
    from .update_text import Reports

NAMED, HELD, ALIKE = 3, 2, 1  # ranks of a session that concerns the prompt; 0 for any other
MOST_STEMS = 60
MOST_HEADS = 24  # beginnings of transcripts that are read for a title
SHORTEST_STEM, STEM_CHARACTERS = 4, 6  # "scrollable" and "scrolling" are alike
AT_WORK_SECONDS = 1800  # since the last activity of a session that counts as at work
ALIKE_WORDS = 2  # that a prompt shares with a session of the same subject
_AROUND = "\"'`()[]{}<>,;:!?.@*|\\…"
_SPACES = str.maketrans(dict.fromkeys("()[]{}<>,;|\\\"'`=", " "))
_SIGNS = str.maketrans(dict.fromkeys("()[]{}<>,;|\\\"'`=.:!?@*…/_-#&+~$%^", " "))
# Stems of words that most requests share.
_COMMON_STEMS = """
    about addres after again agains also always anythi before below both branch build
    chang change check code commen commit comple confli correc could create curren descri docs
    does done dont each ensure every everyt exist existi failin fails feat feedba file files
    find first fixed fixes fixing follow from full functi give good have help here implem improv
    includ into issue issues just keep know like lint list look main make making merge messed
    more most move must name need needs next only open opened other over page plan pleas please
    point print projec pull push quickl read rebase remove report reques requir respon review
    right runnin same sessio should show some start step steps still sure take task tasks test
    testin tests that their them then there these they thing things this those time togeth
    update user using valid verify very want well what when where which while whole will with
    withou work workin works would write wrong your
"""
_COMMON = frozenset(_COMMON_STEMS.split())


class PromptWords:
    """The words of a prompt: the names of `files` and `directories` in it, and the `stems` of
    telling words."""

    def __init__(self, prompt: str) -> None:
        text = prompt[:PROMPT_CHARACTERS]
        self.files: dict[str, list[str]] = {}
        self.directories: list[str] = []
        for word in text.translate(_SPACES).split():
            name = word.strip(_AROUND)
            if "/" in name.strip("/") and "." not in name.rpartition("/")[2]:
                self.directories.append(f"/{name.strip('/')}/")
            elif "." in word:
                path = word.strip(_AROUND).partition(":")[0].removeprefix("./")
                name = path.rpartition("/")[2]
                if "." in name[1:-1]:
                    self.files.setdefault(name, []).append(path)
        self.stems = stems_of(text)

    @property
    def tell(self) -> bool:
        """Check if they can show what concerns the prompt; words such as "yes, go on" or "and/or"
        cannot."""
        if self.files or len(self.stems) >= ALIKE_WORDS:
            return True
        parts = [part for directory in self.directories for part in directory.split("/")]
        return any([len(part) >= SHORTEST_STEM for part in parts])

    def names_file(self, path: str) -> bool:
        """Check if the prompt names a file, perhaps by the last parts of its path."""
        named = self.files.get(path.rpartition("/")[2], ())
        return any(
            [f"/{path}".endswith(f"/{name.rpartition('../')[2].lstrip('/')}") for name in named]
        )

    def has_directory_of(self, path: str) -> bool:
        """Check if a file is in a directory that the prompt names by at least two parts."""
        return any([directory in path for directory in self.directories])

    def shared_words(self, texts: Sequence[str]) -> list[int]:
        """Return how many telling words of the prompt are in each text.

        A word in more than a third of several texts tells nothing."""
        counts = [0] * len(texts)
        if not self.stems:
            return counts
        folded = [text.casefold() for text in texts]
        most = max(2, len(texts) // 3)
        for stem in self.stems:
            places = [
                at for at, text in enumerate(folded) if stem in text and _has_word(text, stem)
            ]
            for at in places if len(places) <= most else ():
                counts[at] += 1
        return counts


def _has_word(text: str, stem: str) -> bool:
    """Check if a word of a text, after a space or sign, begins with `stem`.

    Replacing the signs of all texts would take .1 x of a bare start."""
    at = text.find(stem)
    while at > 0 and text[at - 1] != " " and ord(text[at - 1]) not in _SIGNS:
        at = text.find(stem, at + 1)
    return at >= 0


def stems_of(text: str) -> list[str]:
    """Return the beginnings of the first telling words of a text, at most MOST_STEMS."""
    stems: dict[str, None] = {}
    for word in text.casefold().translate(_SIGNS).split():
        stem = word[:STEM_CHARACTERS]
        if len(stem) >= SHORTEST_STEM and stem not in _COMMON:
            stems[stem] = None
            if len(stems) == MOST_STEMS:
                break
    return [*stems]


def rank_reports(
    pairs: Reports, words: PromptWords, in_hand: Collection[str], root: str
) -> list[tuple[int, int]]:
    """Return how much each report concerns a prompt: a rank, and the number of shared words.

    Each report prefers its files that the prompt names, then those `in_hand` (absolute paths), or
    their copies if the session is in another worktree than the one at `root`."""
    reports = [report for report, _ in pairs]
    texts = [_text_of(report) if words.stems else "" for report in reports]
    shared = words.shared_words(texts)
    in_names = words.shared_words(
        [_file_names(report) if words.stems else "" for report in reports]
    )
    usual = _usual_files(reports) if in_hand else ()
    ranks = []
    for (report, new), count, in_name in zip(pairs, shared, in_names):
        hand = _copies(in_hand, root, report.summary.directory) if new.session.worktree else in_hand
        is_alike = count >= ALIKE_WORDS or in_name or _is_in_directory(report, words)
        ranks.append((_prefer(report, words, hand, usual) or ALIKE * bool(is_alike), count))
    return ranks


def _file_names(report: Report) -> str:
    """Return the names of the files that a session edited."""
    edited = report.summary.edited_files if report.with_text else ()
    return " ".join([path.rpartition("/")[2] for path in edited])


def _is_in_directory(report: Report, words: PromptWords) -> bool:
    """Check if a session edited a file in a directory that the prompt names."""
    touched = report.summary.touched if words.directories else ()
    return any([kind == "edit" and words.has_directory_of(path) for path, kind, _ in touched])


def _copies(paths: Collection[str], root: str, there: str) -> set[str]:
    """Return the copies of the files below `root` in the worktree at `there`."""
    return {there + path[len(root) :] for path in paths if path.startswith(root + "/")}


def _usual_files(reports: Sequence[Report]) -> set[str]:
    """Return the files that more than a third of several sessions edited: they tell nothing."""
    counts: dict[str, int] = {}
    for report in reports:
        for path in {path for path, kind, _ in report.summary.touched if kind == "edit"}:
            counts[path] = counts.get(path, 0) + 1
    most = max(2, len(reports) // 3)
    return {path for path, count in counts.items() if count > most}


def _text_of(report: Report) -> str:
    """Return the words that say what a session is about."""
    summary = report.summary
    if not report.with_text:
        return report.title
    return " ".join([report.name, report.title, summary.first_request, *summary.edited_files])


def _prefer(
    report: Report, words: PromptWords, in_hand: Collection[str], usual: Collection[str]
) -> int:
    """Note the files of a report that concern the prompt, and return the best one's rank."""
    if not (words.files or in_hand):
        return 0
    edited = [path for path, kind, _ in reversed(report.summary.touched) if kind == "edit"]
    edited = [*dict.fromkeys([*edited, *report.summary.by_sub_agents])]
    named = [path for path in edited if words.names_file(path)]
    held = [path for path in edited if path in in_hand and path not in named]
    report.preferred = [report.summary.shown(path) for path in [*named, *held]]
    return NAMED if named else HELD * any([path not in usual for path in held])


class Worth:
    """The worth of sessions for a `reader` with whom they share no file and no subject.

    Sessions at work since a time are worth a line, and sessions on the same branch since `oldest`.
    During a task (not `is_start`), a session in another worktree is not."""

    def __init__(self, reader: OwnSession, since: float, oldest: float, *, is_start: bool) -> None:
        self._reader = reader
        self._since = since
        self._oldest = oldest
        self._is_start = is_start
        self._branch_since: float | None = None

    def has(self, report: Report, session: Session) -> bool:
        """Check if a session is worth a line. A named one always is: it is of the same agent."""
        if session.name:
            return True
        if session.worktree and not self._is_start:
            return False
        if report.last_active >= self._since:
            return True
        is_here = not (session.worktree or session.is_elsewhere or session.is_remote)
        return is_here and report.last_active >= self._branch_began()

    def _branch_began(self) -> float:
        """Return when the reader's worktree got its branch, in seconds since 1970.

        For a branch that everybody works on, or an unknown one, return infinity."""
        if self._branch_since is None:
            since = self._reader.deadline.attempt("git", _branch_began, self._reader, self._oldest)
            self._branch_since = float("inf") if since is None else since
        return self._branch_since


def _branch_began(reader: OwnSession, oldest: float) -> float | None:
    """Return when a worktree got its branch, 0.0 if before `oldest`; None if everybody works on it."""
    from ...common.system.git import USUAL_BRANCHES, find_worktree, head_moves, head_of, is_commit

    worktree = find_worktree(reader.start, reader.user_dir) if reader.start else None
    branch = head_of(worktree.git_dir) if worktree else ""
    if worktree is None or not branch or branch in USUAL_BRANCHES or is_commit(branch):
        return None
    moves = [move for move in head_moves(worktree.git_dir, oldest) if move.branches]
    return float(moves[-1].time) if moves else 0.0


def titles_of(reader: OwnSession, changed: Sequence[Changed], cursors: ReadCursors) -> list[str]:
    """Return the titles of sessions, read from at most MOST_HEADS beginnings; '' if unknown."""
    from .report import title_in_head

    titles, heads = [], 0
    for session, _ in changed:
        cursor = cursors.get(session.key)
        title = cursor.title[1] if cursor and cursor.title else session.name
        if not title and not session.is_remote and heads < MOST_HEADS:
            heads += 1
            inputs = (session, reader.runtime_of(session))
            title = reader.deadline.attempt(session.path, title_in_head, *inputs) or ""
        titles.append(title)
    return titles
