"""Keep the text that a user typed, without pasted, quoted or injected text. Pure.

When unsure, a line counts as pasted: a missed line can still be found by search, one wrongly taken for the user's own
words stays in the memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST_PARAGRAPH = 900  # a longer one was hardly typed
LONGEST_TEXT = 40_000  # the rest was surely not typed
LONGEST_MESSAGE = 3000  # of the remaining text; beyond it only the first paragraph counts as typed
FEWEST_QUOTED = 16  # characters of a line that also occurs in an answer, to count as a quotation
MOST_HEADINGS = 1
MOST_BARE_LINES = 3  # of a typed paragraph, neither sentences nor list items

_POINT = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)]|[a-h]\))\s")
_SENTENCE = re.compile(r"[.!?:;,…。！？][\"')\]]*\s*$|^(?=.{60})(?:\S+\s){9}")
_LOWER = re.compile(r"\s*[a-z]+\s[a-z]+\s")
_UPPER = re.compile(r"\s*[A-Z]\w*\s[a-z]")

_FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(  # not a tag within a line, as in HTML
    r"(?:^[ \t]*<([a-z][\w-]*)|<([a-z]+[-_][\w-]+))(?:\s[^<>]*)?>.*?(?:</(?:\1|\2)>|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Whole messages that a runtime or a program wrote, not a person.
_INJECTED = re.compile(
    r"\s*(?:Caveat: The messages below|This session is being continued from|\[Request interrupted|# AGENTS\.md|"
    r"Implement the following plan|Base directory for this skill|You are (?:an?|the) |Summari[sz]e (?:this|the) part|"
    r"(?:Please )?analy[sz]e this codebase and create)",
    re.IGNORECASE,
)
# A line after which pasted text follows.
_ANNOUNCES = re.compile(
    r"\b(?:feedback|reviews?|reviewer|comments?|errors?|logs?|output|traceback|says?|said|wrote|writes|message|docs?|"
    r"documentation|readme|e-?mail|ticket|issue|report|got|response|answer|slack|spec|paragraph|text|draft|sentence|"
    r"article|letter|exists?|from [A-Z]\w+|example|snippet|code|prompt|config|file|diff|story|poem|page|post|"
    r"proof-?read|"
    r"translate|polish|rewrite|rephrase|summari[sz]e|shorten)\b[^.!?\n]*:\s*$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,6} \S")
# Lines that people do not type into a prompt.
_PASTED_LINE = re.compile(
    r"""^\s*(?:>|\||[│┌└├┃╭╰─━═]|➜|❯|λ|\$ |>>> |\.\.\. |\+{3} |-{3} |@@ |diff --git|\d{2,4}[-/:.]\d\d[-/:.]\d\d|
    \[?\d{4}-\d\d-\d\d|\[(?:INFO|WARN|ERROR|DEBUG)|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL)\b[: ]|at\s+\S+\s*\(|
    File\s"|Traceback|[\w.$/-]+:\d+(?::\d+)?:?\s|//|/\*|\*/|\#!|--\s|<!--|</?[a-z][\w-]*[\s>/]|
    [{}\[\]();]+\s*$|["'][\w-]+["']\s*:|(?:import|from|const|let|var|def|class|function|func|fn|return|public|private|if|
    for|while)\b.*[({:;\]]\s*$|.*[;{]\s*$|.*(?:=>|\)\s*\{)|[\w.-]+\s*[:=]\s*["'\[{\d]|\S+@\S+:\S*[$\#]\s|\(\w+\)\s\S+@|
    [✓✔✗✘✖×●▶⏺⎿]|[-+]\s{3,}|\d+\s*[│|+-]\s)""",
    re.VERBOSE,
)
_CODE_SHAPED = re.compile(r"\w\(.*\)\s*[;{]|[\w)]\s*(?:===?|!==?|&&|\|\||->|::|:=)\s*[\w(]")
# Another person's words, after a name or a source: `slack from Mara: we decided ...`.
_ATTRIBUTED = re.compile(
    r"^\s*(?:(?i:slack|e-?mail|message|msg|note|dm|comment|feedback|quote|reply|mail|text)\b[^:.!?]{0,40}|"
    r"(?:\w+\s){0,3}(?:says?|said|wrote|writes|replied|answered|told (?:me|us)|commented|states?|reads?|"
    r"mentions?)(?:\s\w+){0,3}|"
    r"(?!Note|Remember|Important|Decision|Rule|Reminder|Please|Also|Context|Fact|Fyi|Background|Preference|Remark)"
    r"[A-Z][a-z]+(?:\s[A-Z][a-z]+)?):\s",
)


def typed_paragraphs(text: str, answers: Iterable[str] = ()) -> list[str]:
    """Return the paragraphs of a message without lines that its author did not type. `answers` are the assistant's
    previous answers, which people quote."""
    if _INJECTED.match(text):
        return []
    text = text[:LONGEST_TEXT]
    text = _TAGGED.sub("\n", _FENCED.sub("\n", text.replace("\r\n", "\n")))
    lines = text.split("\n")
    if sum(1 for line in lines if _HEADING.match(line)) > MOST_HEADINGS or "✅" in text or "❌" in text:
        lines = lines[: next((at for at, line in enumerate(lines) if _HEADING.match(line)), 0)]
    quoted = {key for answer in answers for line in answer.split("\n") if len(key := _key(line)) >= FEWEST_QUOTED}
    paragraphs = _paragraphs(_own_lines(lines, quoted))
    told = [one for one in paragraphs if len(one) <= LONGEST_PARAGRAPH and not _is_listing(one)]
    if any(_LOWER.match(one) for one in told):  # someone who begins in lower case pastes the text that does not
        told = [one for one in told if not _UPPER.match(one)]
    return told[:1] if sum(map(len, paragraphs)) > LONGEST_MESSAGE else told


def _is_listing(paragraph: str) -> bool:
    """Return whether a paragraph has several lines that are neither sentences nor list items, like program output."""
    lines = paragraph.split("\n")
    bare = [line for line in lines if not _POINT.match(line) and not _SENTENCE.search(line)]
    return len(bare) >= MOST_BARE_LINES


def _own_lines(lines: Sequence[str], quoted: set[str]) -> list[str]:
    """Return the typed lines; a removed line breaks paragraphs as an empty line does."""
    own: list[str] = []
    is_announced = False
    for line in lines:
        if is_announced and line.strip():
            continue  # to the end of the message: the end of pasted text is unknown
        is_own = line.strip() and not (_HEADING.match(line) or _is_pasted(line) or _is_quoted(line, quoted))
        own.append(line if is_own else "")
        is_announced = is_announced or bool(is_own and _ANNOUNCES.search(line))
    return own


def _is_pasted(line: str) -> bool:
    if len(line) > LONGEST_PARAGRAPH:
        return True
    return bool(_PASTED_LINE.match(line) or _CODE_SHAPED.search(line) or _ATTRIBUTED.match(line))


def _is_quoted(line: str, quoted: set[str]) -> bool:
    """Return whether a line, or its beginning, occurs in an answer."""
    key = _key(line)
    if len(key) < FEWEST_QUOTED:
        return False
    return key in quoted or any(key.startswith(one) or one.startswith(key) for one in quoted)


def _key(line: str) -> str:
    return " ".join(re.findall(r"\w+", line.casefold()))


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
