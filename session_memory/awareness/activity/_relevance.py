"""Relevance: the words of a prompt, compared with the reports of other sessions."""

from __future__ import annotations

from .changes import PROMPT_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...sessions.transcripts.read_cursor import ReadCursors
    from .changes import Changed, OwnSession
    from .report import Report

NAMED, HELD, ALIKE = 3, 2, 1  # ranks of a session that concerns the prompt; 0 for any other
MOST_STEMS = 60
MOST_HEADS = 24  # beginnings of transcripts that are read for a title
SHORTEST_STEM, STEM_CHARACTERS = 4, 6  # "scrollable" and "scrolling" are alike
ALIKE_WORDS = 2  # that a prompt shares with a session of the same subject
_AROUND = "\"'`()[]{}<>,;:!?.@*|\\…"
_SPACES = str.maketrans(dict.fromkeys("()[]{}<>,;|\\\"'`=", " "))
_SIGNS = str.maketrans(dict.fromkeys("()[]{}<>,;|\\\"'`=.:!?@*…/_-#&+~$%^", " "))
# Stems of words that most requests share.
_COMMON_STEMS = """
    about after again agains also always before below both branch build chang change check
    code commit comple correc could create curren descri docs does done dont each ensure
    every everyt exist existi feat file files find first fixed fixes fixing follow from full
    functi give good have help here implem improv includ into issue issues just keep know
    like list look main make making merge more most move must name need needs next only open
    other over page plan pleas please point print projec push read remove report requir
    review right runnin same sessio should show some start step steps still sure take task
    tasks test testin tests that their them then there these they thing things this those
    time togeth update user using verify very want well what when where which while whole
    will with withou work workin works would write wrong your
"""
_COMMON = frozenset(_COMMON_STEMS.split())


class PromptWords:
    """The words of a prompt: the names of `files` in it, and the `stems` of telling words."""

    def __init__(self, prompt: str) -> None:
        text = prompt[:PROMPT_CHARACTERS]
        self.files: dict[str, list[str]] = {}
        for word in text.translate(_SPACES).split():
            if "." in word:
                path = word.strip(_AROUND).partition(":")[0].removeprefix("./")
                name = path.rpartition("/")[2]
                if "." in name[1:-1]:
                    self.files.setdefault(name, []).append(path)
        self.stems = stems_of(text)

    def names_file(self, path: str) -> bool:
        """Check if the prompt names a file, perhaps by the last parts of its path."""
        named = self.files.get(path.rpartition("/")[2], ())
        return any(
            [f"/{path}".endswith(f"/{name.rpartition('../')[2].lstrip('/')}") for name in named]
        )

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
    reports: Sequence[Report], words: PromptWords, in_hand: Collection[str]
) -> list[tuple[int, int]]:
    """Return how much each report concerns a prompt: a rank, and the number of shared words.

    Each report prefers its files that the prompt names, then those `in_hand` (absolute paths)."""
    texts = [_text_of(report) if words.stems else "" for report in reports]
    shared = words.shared_words(texts)
    ranks = []
    for report, count in zip(reports, shared):
        rank = _prefer(report, words, in_hand)
        ranks.append((rank or ALIKE * (count >= ALIKE_WORDS), count))
    return ranks


def _text_of(report: Report) -> str:
    """Return the words that say what a session is about."""
    summary = report.summary
    if not report.with_text:
        return report.title
    return " ".join([report.name, report.title, summary.first_request, *summary.edited_files])


def _prefer(report: Report, words: PromptWords, in_hand: Collection[str]) -> int:
    """Note the files of a report that concern the prompt, and return the best one's rank."""
    if not (words.files or in_hand):
        return 0
    edited = [path for path, kind, _ in reversed(report.summary.touched) if kind == "edit"]
    edited = [*dict.fromkeys([*edited, *report.summary.by_sub_agents])]
    named = [path for path in edited if words.names_file(path)]
    held = [path for path in edited if path in in_hand and path not in named]
    report.preferred = [report.summary.shown(path) for path in [*named, *held]]
    return NAMED if named else HELD * bool(held)


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
