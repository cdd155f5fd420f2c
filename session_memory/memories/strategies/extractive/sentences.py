"""Sentences worth quoting: the beginning of a text, requests, what somebody wants or decides. Pure.

Wishes and decisions are known by words of several languages. In doubt a sentence is left out: one that is missed can
still be found by a search, one that is quoted wrongly stays in the memories.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ....text.format import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....store.values import StoredEntry

TITLE_CHARACTERS = 80
SHORTEST_CHOICE = 12
LONGEST_CHOICE = 260
PASTE_CHARACTERS = 4000  # a user's text longer than this is mostly pasted
FEWEST_WORDS = 3
FEWEST_OTHER_LETTERS = 5  # of a script that writes no blanks between words
FIRST_OF_OTHER_SCRIPTS = "\u2e80"

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(
    r"^[ \t]*(?:(?:#{1,6}[ \t]+|>|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|\|)[ \t]*)+|\*\*|__|\|[ \t]*$", re.MULTILINE
)
_RULES = re.compile(r"^\s*(?:[-=*_|:]\s*){3,}$", re.MULTILINE)
_SYMBOLS = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]\s?")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")
_CLOSED = re.compile(r"[.,;:!?…。！？、，；：]$")
_QUESTION = re.compile(r"[?？]\s*[\"')\]]*$")
_ADDRESS = re.compile(r"\S+://\S+|@?[~.]?/?[\w.-]+/[\w./-]+|@\S+")
_WORD = re.compile(r"[^\W\d_]{2,}|\d+")
_CODE = re.compile(
    r"[{};=<>]{2}|^\s*(?:import|from|const|let|var|def|class|function|return|for)\b.*[({:;]|^\S+:\d+|"
    r"^[#\d.]+\s|[;{}]\s*$|\$ |->|=>"
)
_COMMAND = re.compile(r"/[\w:-]+(?:\s+\S+)?\s*$")
_GREETING = re.compile(
    r"(?:hi|hello|hey|hallo|guten (?:tag|morgen)|bonjour|hola|ciao|ol[aá]|привет|你好|こんにちは)\W*$", re.IGNORECASE
)
_PARTIAL = re.compile(r"(?:rather than|instead of|anstatt|statt|au lieu de|en lugar de|en vez de)\b", re.IGNORECASE)

_WANTED_WORDS = (
    # English
    r"(?<!\bit )(?<!\bwe )(?<!\bi )(?<!\bthey )(?<!\bthat )(?<!\bthis )(?:always|never)",
    "instead of", "rather than", "from now on", "in (?:the )?future", "please use", "only use",
    "don'?t (?:ever|want|use|add|do|touch|change|create|write|commit|call|put|like)", "do not",
    "must (?:not|never|always)", "should (?:always|never|not|only)", r"stop \w+ing", "no need (?:to|for)",
    "i(?:'d| would) rather", "i(?:'d| would)? (?:only|much rather|really) (?:like|want|prefer)",
    "i(?:'d| would)? prefer",
    "let'?s (?:go with|use|keep|not|stick|drop|call)",
    "we(?:'ll| will| should) (?:use|go with|keep|stick|not|never|always)", "we prefer",
    "make sure (?:to )?(?:you )?(?:always|never)", "(?:every|each) time you", "whenever you",
    # German
    "immer", "niemals", "nie wieder", "lieber", "anstatt", "statt(?:dessen)?", r"bevorzuge\w*", "ab (?:jetzt|sofort)",
    "in zukunft", "auf keinen fall", "wir nehmen", r"bitte (?:nicht|kein\w*|nutze|verwende)", "soll(?:st)? nicht",
    # French, Spanish, Portuguese, Italian, Dutch
    "toujours", "jamais", "plut[oô]t", r"pr[ée]f[èée]re\w*", "au lieu de", "d[ée]sormais", "dor[ée]navant",
    "siempre", "nunca", "jam[aá]s", "prefiero", "en (?:lugar|vez) de", "a partir de ahora", "de ahora en adelante",
    "sempre", "prefiro", "preferisco", "em vez de", "invece di", "d'ora in poi", "a partir de agora", "mai più",
    "altijd", "nooit", "liever", "in plaats van", "voortaan",
    # Russian, Polish, Turkish
    "всегда", "никогда", "вместо", "предпочитаю", "лучше", "отныне", "не надо", "не нужно",
    "zawsze", "nigdy", "zamiast", "wolę", "her zaman", "asla", "yerine",
)  # fmt: skip
_WANTED_SIGNS = (  # Chinese, Japanese, Korean
    "不要", "不用", "必须", "必須", "总是", "總是", "永远", "永遠", "以后", "以後", "改用", "优先", "優先", "宁愿",
    "而不是", "今後", "ではなく", "しないで", "必ず", "항상", "절대", "대신",
)  # fmt: skip
_DECIDED_WORDS = (
    "(?:i|we)(?:'ve| have)? (?:decided|chose|chosen|opted|settled on|went with)", "(?:i'm|we're) going with",
    "(?:i|we)(?:'ll| will) (?:go with|stick with|settle on)", "decided (?:to|against|on)",
    "(?:habe|haben|hatten) .{0,60}entschieden", "(?:j'ai|nous avons|on a) d[ée]cid[ée]",
    "(?:he|hemos) decidido", "ho deciso", "decidi", "решил[иао]?", "решено",
)  # fmt: skip
_DECIDED_SIGNS = ("决定", "決定", "決めました", "결정")
_USER_WANTS = re.compile(rf"\b(?:{'|'.join(_WANTED_WORDS)})\b|{'|'.join(_WANTED_SIGNS)}", re.IGNORECASE)
_DECIDED = re.compile(rf"\b(?:{'|'.join(_DECIDED_WORDS)})\b|{'|'.join(_DECIDED_SIGNS)}", re.IGNORECASE)


def excerpt(text: str, limit: int) -> str:
    """The beginning of `text` on one line, without Markdown's marks and, unless it is all there is, fenced code. Lines
    that do not end like sentences, as in lists, end with semicolons."""
    text = text[: 20 * limit]
    lines = [one_line(line) for line in (plain(text).strip() or text).split("\n")]
    told = [line for line in lines if line]
    return shorten(" ".join([line if _CLOSED.search(line) else f"{line};" for line in told[:-1]] + told[-1:]), limit)


def is_request(text: str) -> bool:
    """Whether a user's text asks for something: it is no greeting, mere yes, or command of the runtime."""
    return not _COMMAND.match(text) and not _GREETING.match(text) and (_has_words(text) or "://" in text)


def title_of(given: str, requests: Sequence[str], commits: Sequence[str]) -> str:
    """A title for a conversation: that of its session unless it is just the beginning of the first request, else the
    first sentence of that request, or the first commit where that has no words, as a mere URL."""
    first = requests[0] if requests else ""
    given = one_line(given)
    if _has_words(given) and not one_line(first).startswith(given.rstrip("…")):
        return shorten(given, TITLE_CHARACTERS)
    sentences = [one_line(part) for part in _SENTENCE_END.split(plain(first[:2000])) if _has_words(part)]
    return shorten(next(iter([*sentences, *commits]), one_line(first) or given or "Conversation"), TITLE_CHARACTERS)


def choices(entry: StoredEntry) -> list[str]:
    """The sentences of an entry in which a user wants something done in a certain way or an assistant decides."""
    if entry.role == "user" and len(entry.text) > PASTE_CHARACTERS:
        return []
    pattern = _USER_WANTS if entry.role == "user" else _DECIDED
    sentences = [one_line(part) for part in _SENTENCE_END.split(plain(entry.text))]
    return [sentence for sentence in sentences if pattern.search(sentence) and _is_whole(sentence)]


def plain(text: str) -> str:
    """`text` without fenced code, headings, bullets, quotation marks of Markdown, rules and symbols."""
    return _SYMBOLS.sub("", _MARKS.sub("", _RULES.sub("", _FENCED.sub("\n", text))))


def _is_whole(sentence: str) -> bool:
    """Whether a sentence can be understood alone: no question, no code, not too long, too short, or cut off."""
    width = 3 if any(character >= FIRST_OF_OTHER_SCRIPTS for character in sentence) else 1  # letters in a character
    return (
        len(sentence) * width >= SHORTEST_CHOICE
        and len(sentence) <= LONGEST_CHOICE
        and not any(pattern.search(sentence) for pattern in (_QUESTION, _CODE))
        and not _PARTIAL.match(sentence)
        and not sentence.endswith(("—", "-", ",", ":"))
        and all(sentence.count(opened) == sentence.count(closed) for opened, closed in ("()", "[]", "{}", "“”"))
        and not sentence.count('"') % 2
        and not sentence.count("`") % 2
    )


def _has_words(text: str) -> bool:
    """Whether a text has enough words beside addresses and paths."""
    said = _ADDRESS.sub("", text[:1000])
    others = sum(1 for character in said if character >= FIRST_OF_OTHER_SCRIPTS and character.isalpha())
    return others >= FEWEST_OTHER_LETTERS or len(_WORD.findall(said)) >= FEWEST_WORDS
