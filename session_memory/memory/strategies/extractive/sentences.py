"""Splits text into sentences, finds those that can be understood alone, makes excerpts. Pure."""

import re

from ....common.text.format import one_line, shorten, words_of

LONGEST = 260
SHORTEST = 12
FEWEST_WORDS = 3
FEWEST_OTHER_LETTERS = 5  # of a script without blanks between words
FIRST_OF_OTHER_SCRIPTS = "\u2e80"
WRAPPED_CHARACTERS = 60  # a line this long may be wrapped within a sentence

_FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_RULES = re.compile(r"^\s*(?:[-=*_|:]\s*){3,}$", re.MULTILINE)
_SYMBOLS = re.compile(r"^[ \t]*(?:[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]+\s?)+", re.MULTILINE)
_BOLD = re.compile(r"(?<![\w*`])\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?![\w*`])")
_WRAPPED = re.compile(rf"(?<=[^\n]{{{WRAPPED_CHARACTERS}}}[\w,])\n(?=[a-z])")
_CLOSED = re.compile(r"[.,;:!?…。！？、，；：]$")

_MARKS = re.compile(
    r"^[ \t]*(?:(?:#{1,6}[ \t]+|>|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|\|)[ \t]*)+|\|[ \t]*$",
    re.MULTILINE,
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
    r"^\s*(?:>|\||[│┌└├┃╭╰─━═]|➜|❯|λ|\$ |>>> |\.\.\. |\+{3} |-{3} |@@ |diff "
    r"--git|\d{2,4}[-/:.]\d\d[-/:.]\d\d|"
    r"\[?\d{4}-\d\d-\d\d|\[(?:INFO|WARN|ERROR|DEBUG)|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL)\b[: "
    r"]|at\s+\S+\s*\(|"
    r'File\s"|Traceback|[\w.$/-]+:\d+(?::\d+)?:?\s|//|/\*|\*/|\#!|--\s|<!--|</?[a-z][\w-]*[\s>/]|[{}\[\]();]+\s*$|'
    r"""["'][\w-]+["']\s*:|(?:import|from|const|let|var|def|class|function|func|fn|return|public|private|if|for|"""
    r"""while)\b.*[({:;\]]\s*$|.*[;{]\s*$|.*(?:=>|\)\s*\{)|[\w.-]+\s*[:=]\s*["'\[{\d]|\S+@\S+:\S*[$\#]\s|\(\w+\)\s\S+@|"""
    r"[✓✔✗✘✖×●▶⏺⎿]|[-+]\s{3,}|\d+\s*[│|+-]\s)",
    re.VERBOSE,
)
_ADDRESS = re.compile(r"\S+://\S+|@?[~.]?/?[\w.-]+/[\w./-]+|@\S+|\b[\w-]+\.[a-z]{1,4}\b")
# Words that undo the last step without naming it.
_TAKES_BACK = re.compile(
    r"^\W*(?:(?:no|nope|wait|actually|hm+|sorry|ugh|stop|ok|please|and|oh|that'?s "
    r"(?:wrong|not it|bad|"
    r"worse))\b[\s,.:;!-]*)*(?:[^.!?]{0,60},\s*)?(?:please )?(?:can you )?(?:revert|undo|roll "
    r"(?:it |that |this )?back|"
    r"take (?:it|that|this) (?:back|out)|scrap (?:it|that|this)|drop (?:it|that|this)|forget "
    r"(?:it|that|this)|"
    r"remove (?:it|that|this) again|back (?:it|that) out|put (?:it|that) back)\b",
    re.IGNORECASE,
)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text verbatim, each on one line, without marks such as bullets."""
    said = _MARKS.sub("", _RULES.sub("", _FENCED.sub("\n", _WRAPPED.sub(" ", text))))
    return [one_line(part) for part in _SENTENCE_END.split(said) if part.strip()]


def excerpt(text: str, limit: int) -> str:
    """Return the beginning of `text` on one line, without Markdown.

    Fenced code is left out unless there is nothing else. Lines that do not end like sentences, such
    as list items, end with semicolons."""
    text = text[: 20 * limit]
    lines = [one_line(line) for line in (_plain(text).strip() or text).split("\n")]
    filled = [line for line in lines if line]
    return shorten(
        " ".join(
            [line if _CLOSED.search(line) else f"{line};" for line in filled[:-1]] + filled[-1:]
        ),
        limit,
    )


def _plain(text: str) -> str:
    """Return `text` without fenced code, rules and marks.

    The marks are of headings, bullets, quotes, bold text and symbols."""
    return _BOLD.sub(
        r"\1", _SYMBOLS.sub("", _MARKS.sub("", _RULES.sub("", _FENCED.sub("\n", text))))
    )


def is_whole(sentence: str) -> bool:
    """Return whether a sentence can be understood alone: not code, too long, too short or cut
    off."""
    # letters in a character
    width = 3 if any(character >= FIRST_OF_OTHER_SCRIPTS for character in sentence) else 1
    return (
        len(sentence) * width >= SHORTEST
        and len(sentence) <= LONGEST
        and not looks_like_code(sentence)
        and not sentence.endswith(("—", "-", ",", ":", "...", "…"))
        and all(
            sentence.count(opened) == sentence.count(closed)
            for opened, closed in ("()", "[]", "{}", "“”")
        )
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
    others = sum(
        1 for character in said if character >= FIRST_OF_OTHER_SCRIPTS and character.isalpha()
    )
    words = [word for word in words_of(said) if len(word) > 1 or word.isdigit()]
    return others >= FEWEST_OTHER_LETTERS or len(words) >= FEWEST_WORDS


def own_words(text: str) -> str:
    """Return a message without fenced code, untyped lines, and a runtime's text between tags."""
    lines = _TAGGED.sub("\n", _FENCED.sub("\n", text)).split("\n")
    return "\n".join([line for line in lines if not _PASTED_LINE.match(line)]).strip()
