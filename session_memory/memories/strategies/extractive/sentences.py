"""Keep the text that a user typed, split text into sentences, tell which can be understood alone, make excerpts. Pure.

When unsure, a line counts as pasted: a missed line can still be found by search, one wrongly taken for the user's own
words stays in the memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ....text.format import one_line, shorten

LONGEST = 260
SHORTEST = 12
FEWEST_WORDS = 3
FEWEST_OTHER_LETTERS = 5  # of a script without blanks between words
FIRST_OF_OTHER_SCRIPTS = "\u2e80"
WRAPPED_CHARACTERS = 60  # a line this long may be wrapped within a sentence

_FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_RULES = re.compile(r"^\s*(?:[-=*_|:]\s*){3,}$", re.MULTILINE)
_SYMBOLS = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]\s?")
_WRAPPED = re.compile(rf"(?<=[^\n]{{{WRAPPED_CHARACTERS}}}[\w,])\n(?=[a-z])")
_CLOSED = re.compile(r"[.,;:!?…。！？、，；：]$")
_WORD = re.compile(r"[^\W\d_]{2,}|\d+")

LONGEST_PARAGRAPH = 900  # a longer one was hardly typed
LONGEST_TEXT = 40_000  # the rest was surely not typed
LONGEST_MESSAGE = 3000  # of the remaining text; beyond it only the first paragraph counts as typed
MOST_HEADINGS = 1
MOST_BARE_LINES = 3  # of a typed paragraph, neither sentences nor list items

_POINT = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)]|[a-h]\))\s")
_LOWER = re.compile(r"\s*[a-z]+\s[a-z]+\s")
_UPPER = re.compile(r"\s*[A-Z]\w*\s[a-z]")

_MARKS = re.compile(
    r"^[ \t]*(?:(?:#{1,6}[ \t]+|>|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|\|)[ \t]*)+|\*\*|__|\|[ \t]*$", re.MULTILINE
)
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)(?<!\bca\.)(?<!\bapprox\.)(?<!\bDr\.)(?<!\bMr\.)"
    r"(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\bNr\.)(?<!z\.B\.)[\"')\]]*\s+|(?<=[。！？])|\n+"
)
_CODE = re.compile(
    r"[{};=<>]{2}|\)\s*\{|&&|\|\||^\s*(?:import|from|const|let|var|def|class|function|return|for)\b.*[({:;]$|^\S+:\d+|"
    r"^[#\d.]+\s|[;{}]\s*$|^\$ |->|=>"
)
# Not a tag within a line, as in HTML.
_TAGGED = re.compile(
    r"(?:^[ \t]*<([a-z][\w-]*)|<([a-z]+[-_][\w-]+))(?:\s[^<>]*)?>.*?(?:</(?:\1|\2)>|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Lines that people do not type into a prompt.
_PASTED_LINE = re.compile(
    r"^\s*(?:>|\||[│┌└├┃╭╰─━═]|➜|❯|λ|\$ |>>> |\.\.\. |\+{3} |-{3} |@@ |diff --git|\d{2,4}[-/:.]\d\d[-/:.]\d\d|"
    r"\[?\d{4}-\d\d-\d\d|\[(?:INFO|WARN|ERROR|DEBUG)|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL)\b[: ]|at\s+\S+\s*\(|"
    r'File\s"|Traceback|[\w.$/-]+:\d+(?::\d+)?:?\s|//|/\*|\*/|\#!|--\s|<!--|</?[a-z][\w-]*[\s>/]|[{}\[\]();]+\s*$|'
    r"""["'][\w-]+["']\s*:|(?:import|from|const|let|var|def|class|function|func|fn|return|public|private|if|for|"""
    r"""while)\b.*[({:;\]]\s*$|.*[;{]\s*$|.*(?:=>|\)\s*\{)|[\w.-]+\s*[:=]\s*["'\[{\d]|\S+@\S+:\S*[$\#]\s|\(\w+\)\s\S+@|"""
    r"[✓✔✗✘✖×●▶⏺⎿]|[-+]\s{3,}|\d+\s*[│|+-]\s)",
    re.VERBOSE,
)
_LIKE_SENTENCE = re.compile(r"[.!?:;,…。！？][\"')\]]*\s*$|^(?=.{60})(?:\S+\s){9}")
_CODE_SHAPED = re.compile(r"\w\(.*\)\s*[;{]|[\w)]\s*(?:===?|!==?|&&|\|\||->|::|:=)\s*[\w(]")
_ADDRESS = re.compile(r"\S+://\S+|@?[~.]?/?[\w.-]+/[\w./-]+|@\S+|\b[\w-]+\.[a-z]{1,4}\b")
# Whole messages that a runtime or a program wrote, not a person.
_INJECTED = re.compile(
    r"\s*(?:Caveat: The messages below|This session is being continued from|\[Request interrupted|# AGENTS\.md|"
    r"Implement the following plan|Base directory for this skill|You are (?:an?|the) |Summari[sz]e (?:this|the) part|"
    r"(?:Please )?analy[sz]e this codebase and create)",
    re.IGNORECASE,
)
# A line after which pasted text follows.
_ANNOUNCES_PASTE = re.compile(
    r"\b(?:feedback|reviews?|reviewer|comments?|errors?|logs?|output|traceback|says?|said|wrote|writes|message|docs?|"
    r"documentation|readme|e-?mail|ticket|issue|report|got|response|answer|slack|spec|paragraph|text|draft|sentence|"
    r"article|letter|exists?|from [A-Z]\w+|example|snippet|code|prompt|config|file|diff|story|poem|page|post|"
    r"proof-?read|translate|polish|rewrite|rephrase|summari[sz]e|shorten)\b[^.!?\n]*:\s*$",
    re.IGNORECASE,
)
# Another person's words, after a name or a source: `slack from Mara: we decided ...`.
_ATTRIBUTED = re.compile(
    r"^\s*(?:(?i:slack|e-?mail|message|msg|note|dm|comment|feedback|quote|reply|mail|text)\b[^:.!?]{0,40}|"
    r"(?:\w+\s){0,3}(?:says?|said|wrote|writes|replied|answered|told (?:me|us)|commented|states?|reads?|"
    r"mentions?)(?:\s\w+){0,3}|(?!Note|Remember|Important|Decision|Rule|Reminder|Please|Also|Context|Fact|Fyi|"
    r"Background|Preference|Remark)[A-Z][a-z]+(?:\s[A-Z][a-z]+)?):\s"
)
# Words that undo the last step without naming it.
_TAKES_BACK = re.compile(
    r"^\W*(?:(?:no|nope|wait|actually|hm+|sorry|ugh|stop|ok|please|and|oh|that'?s (?:wrong|not it|bad|"
    r"worse))\b[\s,.:;!-]*)*(?:[^.!?]{0,60},\s*)?(?:please )?(?:can you )?(?:revert|undo|roll (?:it |that |this )?back|"
    r"take (?:it|that|this) (?:back|out)|scrap (?:it|that|this)|drop (?:it|that|this)|forget (?:it|that|this)|"
    r"remove (?:it|that|this) again|back (?:it|that) out|put (?:it|that) back)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,6} \S")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    found = [one_line(part) for part in _SENTENCE_END.split(plain(_WRAPPED.sub(" ", text)))]
    return [sentence for sentence in found if sentence]


def excerpt(text: str, limit: int) -> str:
    """Return the beginning of `text` on one line, without Markdown. Leaves out fenced code unless there is nothing
    else. Lines that do not end like sentences, such as list items, end with semicolons."""
    text = text[: 20 * limit]
    lines = [one_line(line) for line in (plain(text).strip() or text).split("\n")]
    told = [line for line in lines if line]
    return shorten(" ".join([line if _CLOSED.search(line) else f"{line};" for line in told[:-1]] + told[-1:]), limit)


def plain(text: str) -> str:
    """Return `text` without fenced code, headings, bullets, quote marks, rules and symbols."""
    return _SYMBOLS.sub("", _MARKS.sub("", _RULES.sub("", _FENCED.sub("\n", text))))


def is_whole(sentence: str) -> bool:
    """Return whether a sentence can be understood alone: not code, too long, too short or cut off."""
    width = 3 if any(character >= FIRST_OF_OTHER_SCRIPTS for character in sentence) else 1  # letters in a character
    return (
        len(sentence) * width >= SHORTEST
        and len(sentence) <= LONGEST
        and not looks_like_code(sentence)
        and not sentence.endswith(("—", "-", ",", ":", "...", "…"))
        and all(sentence.count(opened) == sentence.count(closed) for opened, closed in ("()", "[]", "{}", "“”"))
        and not sentence.count('"') % 2
        and not sentence.count("`") % 2
    )


def looks_like_code(text: str) -> bool:
    """Return whether a text is a line of code or of a listing."""
    return _CODE.search(text) is not None


def is_taken_back(sentence: str) -> bool:
    """Return whether a user undoes the last step without naming it."""
    return _TAKES_BACK.match(sentence) is not None


def has_words(text: str) -> bool:
    """Return whether a text has enough words beside addresses and paths."""
    said = _ADDRESS.sub("", text[:1000])
    others = sum(1 for character in said if character >= FIRST_OF_OTHER_SCRIPTS and character.isalpha())
    return others >= FEWEST_OTHER_LETTERS or len(_WORD.findall(said)) >= FEWEST_WORDS


def typed_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a message without lines that its author did not type."""
    if _INJECTED.match(text):
        return []
    text = text[:LONGEST_TEXT]
    text = _TAGGED.sub("\n", _FENCED.sub("\n", text.replace("\r\n", "\n")))
    lines = text.split("\n")
    if sum(1 for line in lines if _HEADING.match(line)) > MOST_HEADINGS or "✅" in text or "❌" in text:
        lines = lines[: next((at for at, line in enumerate(lines) if _HEADING.match(line)), 0)]
    paragraphs = _paragraphs(_own_lines(lines))
    told = [one for one in paragraphs if len(one) <= LONGEST_PARAGRAPH and not _is_listing(one)]
    if any(_LOWER.match(one) for one in told):  # someone who begins in lower case pastes the text that does not
        told = [one for one in told if not _UPPER.match(one)]
    return told[:1] if sum(map(len, paragraphs)) > LONGEST_MESSAGE else told


def _is_listing(paragraph: str) -> bool:
    """Return whether a paragraph has several lines that are neither sentences nor list items, like program output."""
    lines = paragraph.split("\n")
    bare = [line for line in lines if not _POINT.match(line) and not _LIKE_SENTENCE.search(line)]
    return len(bare) >= MOST_BARE_LINES


def _own_lines(lines: Sequence[str]) -> list[str]:
    """Return the typed lines; a removed line breaks paragraphs as an empty line does."""
    own: list[str] = []
    is_announced = False
    for line in lines:
        if is_announced and line.strip():
            continue  # to the end of the message: the end of pasted text is unknown
        is_own = line.strip() and not (_HEADING.match(line) or _is_pasted(line))
        own.append(line if is_own else "")
        is_announced = is_announced or bool(is_own and _ANNOUNCES_PASTE.search(line))
    return own


def _is_pasted(line: str) -> bool:
    if len(line) > LONGEST_PARAGRAPH:
        return True
    return bool(_PASTED_LINE.match(line) or _CODE_SHAPED.search(line) or _ATTRIBUTED.match(line))


def _paragraphs(lines: Iterable[str]) -> list[str]:
    found: list[str] = []
    current: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            current.append(line)
        elif current:
            found.append("\n".join(current))
            current = []
    return found
