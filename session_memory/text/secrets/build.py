"""Writes _literals.py and _rules.py from rules.yaml: `python -m session_memory.text.secrets.build`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from . import BEHIND_WORDS
from .assignments import MOST_BETWEEN

HERE = Path(__file__).parent
FORMS = {"prefix": "body", "literals": "regex", "names": "value", "word": "judge"}
OPTIONS = {"ahead", "also", "before", "digits", "entropy", "ignore_case", "judge", "reject", "verbose", "whole"}
CLASSES = {
    "<hex>": "[0-9a-fA-F]",
    "<b36>": "[0-9a-z]",
    "<B36>": "[0-9A-Z]",
    "<b62>": "[0-9A-Za-z]",
    "<b64>": "[0-9A-Za-z+/]",
    "<b64u>": r"[\w+/-]",
    "<url>": r"[\w-]",
    "<uuid>": "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    # Where a word begins; or behind the n of a JSON string's \n, a URL's percent escape, a terminal's colour.
    "<begin>": r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))",
    # Between two lines of base64: white space, quotes, a string's escapes, a join, a listing's line number.
    "<gap>": r"""(?:[\s"'`,|>→]|\\+[nrt"']|\+(?=[\s"'])|[0-9]{1,6}(?:[→|: \t]|\\+u2192))""",
    # White space within a class, also beyond ASCII.
    "<blank>": r"\s\x85\xa0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    # Between the arguments of a command: blanks, or the end of a line that a backslash continues; and some arguments.
    "<space>": r"(?:[ \t]{0,4}\\{1,8}(?:\r?\n|(?<=\\\\)n)[ \t]{0,16}|[ \t]{1,4})",
    "<args>": r"(?:[^\n|;&\\]|\\{1,8}[\nn\"']){0,160}?",
    # As in __init__.py.
    "<dotted>": "[0-9A-Za-z_-]{6}[.][0-9A-Za-z_-]{27}",
    "<flag>": r"[A-Za-z][A-Za-z0-9_-]{2,40}[= \t\\](?<=(?i:pass|word|sswd|rase|cret|oken|.key).)",
    "<prose>": r"(?i:[^\n.;]{0,60}? (?:is|was|ist|war|lautet|to|auf)[ :])",
    "<run>": "[0-9A-Za-z_+/=-]{10}",
    "<sign>": r"""[0-9A-Za-z_-]{0,40}[ \t\\\]]{0,8}["'`:=>|,(?]""",
}
TOKEN_END = r"(?<!\.)(?![A-Za-z0-9])"
VALUE_END = r"(?![\w+/-])"
# An assignment: a sign, what may open the value, and ten characters of it, with a digit among the first 64.
# No line of dashes, URL or time of day. After a comma, the value must be quoted.
VALUE = r"(?!---|//|[0-9]{2}:)(?=[0-9A-Za-z_.+/~%-][0-9A-Za-z_.+/~%=:|-]{9})[A-Za-z_.+/~%=:|-]{0,64}[0-9]"
SIGNS = {
    **{sign: rf"(?=[ \t\"'`*>=|\\]{{0,12}}{VALUE})" for sign in ":="},
    **{sign: rf"(?=[ \t\n\"'`*>=|\\]{{0,24}}{VALUE})" for sign in ">|"},
    **{sign: rf"(?=[ \t?]{{0,3}}\\{{0,7}}[\"'`]{VALUE})" for sign in ","},
}
# What the words of assignments.py end in; the signs that they stand before; and a character that may be between them.
WORD_ENDINGS = ("pass", "word", "sswd", "wort", "rase", "cret", "oken", "key")
ASSIGNS = ":=>"
AFTER_WORD = f"[{re.escape(BEHIND_WORDS)}]"
# What __init__.py looks for behind a literal, too.
AHEAD = ("<run>", "<sign>", "<dotted>", "<flag>", "<prose>")
# A prefix that ends in one of these is looked for by its last characters, so many at most.
TAILS = "_-.~"
TAIL_LENGTHS = (5, 4, 3)
# How often a character stands in a thousand of ordinary transcript text. Any other: about twice.
FREQUENCY = {
    **{" ": 123, "e": 68, "t": 50, "s": 46, "o": 40, "n": 37, "i": 36, "a": 36, "r": 35, "c": 25, "l": 23},
    **{"d": 23, "m": 20, "p": 17, "u": 16, "g": 15, "/": 14, ".": 14, "h": 14, "-": 13, "0": 11, "f": 11},
    **{"1": 10, "2": 10, "b": 8, ":": 8, "4": 8, "y": 7, "k": 7, "5": 7, "v": 7, "3": 6, "w": 6, '"': 6},
    **{"x": 6, "=": 6, "(": 6, "C": 6, "9": 5, "8": 5, "T": 5, "6": 5, "7": 5, "A": 5, ",": 5, "S": 5},
    **{"I": 4, "j": 4, "E": 4, "M": 4, "P": 4, "R": 4},
}

Rule = dict[str, Any]
Word = tuple[str, bool]  # a literal, and whether its case is ignored
Row = tuple[str, int, int, bool]  # a literal, where in it the scanner stops, number of the rule, case ignored


def read(path: Path = HERE / "rules.yaml") -> list[Rule]:
    """The rules of the file, with lists where one word may stand. Raises ValueError, which names the wrong rule."""
    rules: list[Rule] = yaml.safe_load(path.read_text(encoding="utf-8"))
    seen: set[str] = set()
    for rule in rules:
        form = [field for field in FORMS if field in rule]
        required = {"id", "kind", "sample", *form, *(FORMS[field] for field in form)}
        unknown = set(rule) - required - OPTIONS
        if len(form) != 1 or not required <= set(rule) or unknown or rule["id"] in seen:
            raise ValueError(f"{path}: {rule.get('id', rule)}: not one form, unknown field or id twice")
        seen.add(rule["id"])
        for field in (*form, "sample"):
            if isinstance(rule[field], str):
                rule[field] = [rule[field]]
    return rules


def spelled(text: str) -> str:
    """A regex with its classes written out."""
    for name, characters in CLASSES.items():
        text = text.replace(name, characters)
    return text


def pattern(rule: Rule) -> str:
    """The regex of a rule; '' for one whose values are taken whole."""
    if "word" in rule:
        return ""
    if "prefix" in rule:
        prefix = "|".join(map(re.escape, rule["prefix"]))
        text = f"<begin>(?:{prefix})(?P<body>{rule['body']}){TOKEN_END}"
    elif "names" in rule:
        text = f"(?:{rule['value']}){VALUE_END}"
    else:
        text = rule["regex"]
    text = f"(?a{'i' * ('ignore_case' in rule)}{'x' * ('verbose' in rule)}){spelled(text)}"
    re.compile(text)
    return text


def cost(character: str, fold: bool = False) -> float:
    """How often the scanner stops at a character, of a thousand characters; with its other case, if `fold`."""
    both = {character.lower(), character.upper()} if fold else {character}
    return sum(FREQUENCY.get(c, 2) for c in both)


def anchors(words: set[Word]) -> dict[Word, int]:
    """Where in each word the scanner stops: at characters that are together as rare as possible."""
    folds = {c: {fold for word, fold in words if c in word} for word, _ in words for c in word}
    free = {*SIGNS, *TAILS}

    def price(chosen: set[str]) -> float:
        return sum(max(cost(c, fold) for fold in folds[c]) for c in chosen - free)

    def cover(chosen: set[str]) -> set[str]:
        while left := [word for word in words if not set(word[0]) & chosen]:
            offers = Counter((c, fold) for word, fold in left for c in set(word) - {" "})
            chosen = {*chosen, min(offers, key=lambda offer: (cost(*offer) / offers[offer], offer))[0]}
        return chosen

    chosen = cover(free)
    for character in sorted(chosen - free):
        chosen = min(chosen, cover(chosen - {character}), key=price)
    stops: dict[Word, int] = {}
    for word, fold in words:
        rarest = min((cost(c, fold), c) for c in set(word) & chosen)
        stops[word, fold] = word.index(rarest[1])
    return stops


def in_any_case(text: str) -> str:
    """A regex for `text` in any case, without the flag, which would slow down the whole scanner."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.lower() != c.upper() else re.escape(c) for c in text)


def in_any_case_of(letters: Iterable[str]) -> str:
    """A class of `letters` in any case."""
    return f"[{''.join(sorted({c for letter in letters for c in letter.lower() + letter.upper()}))}]"


def tables(rules: list[Rule]) -> tuple[str, dict[str, set[Row]], dict[str, set[Row]]]:
    """The scanner, the prefixes by their last characters, the other literals by where it stops."""
    tails: dict[str, set[Row]] = {}
    others: list[tuple[str, int, str]] = []
    for number, rule in enumerate(rules):
        for literal in () if "digits" in rule else (*rule.get("prefix", ()), *rule.get("literals", ())):
            ahead = rule.get("ahead", "<run>" if "prefix" in rule else "")
            if ahead == "<run>" and literal[-1] in TAILS and len(literal) >= TAIL_LENGTHS[-1]:
                row = (literal, len(literal) - 1, number, False)
                tails.setdefault(literal[-TAIL_LENGTHS[0] :], set()).add(row)
            else:
                others.append((literal, number, spelled(ahead)))
    at = anchors({(literal, "ignore_case" in rules[number]) for literal, number, _ in others})
    found: dict[str, set[Row]] = {}
    sides: dict[str, dict[str, set[str]]] = {}
    for literal, number, ahead in others:
        fold = "ignore_case" in rules[number]
        offset = at[literal, fold]
        escape = in_any_case if fold else re.escape
        before = escape(literal[: offset + 1]) if offset else ""
        after = escape(literal[offset + 1 :]) + ahead
        stop = literal[offset]
        for character in {stop.lower(), stop.upper()} if fold else {stop}:
            row = (literal.lower() if fold else literal, offset, number, fold)
            found.setdefault(character, set()).add(row)
            sides.setdefault(character, {}).setdefault(before, set()).add(after)
    return scanner(sides, set(tails)), tails, found


def scanner(sides: dict[str, dict[str, set[str]]], tails: set[str]) -> str:
    """The regex for every character where a rule may apply; its group is set where a tail or a sign stands.

    `sides`: character -> what stands before it, with it -> what may stand after it.
    """
    grouped = {sign: f"{after}()" for sign, after in SIGNS.items()}
    grouped |= {sign: f"(?:{behind_word(sign)})(?P<word_{ord(sign)}>)|{SIGNS[sign]}()" for sign in ASSIGNS}
    for tail in TAILS:
        ends = [[re.escape(end) for end in sorted(tails) if end[-1] == tail and len(end) == n] for n in TAIL_LENGTHS]
        behind = "|".join(f"(?<={'|'.join(same)})" for same in ends if same)
        grouped[tail] = f"(?={CLASSES['<run>']})(?:{behind})()"
    branches = []  # each begins with one character: only so does `re` look for the next of these characters quickly
    for character in sorted({*sides, *grouped}, key=lambda c: (-cost(c), c)):
        around = together(sides.get(character, {}))
        around += [grouped[character]] if character in grouped else []
        branches.append(f"{re.escape(character)}(?:{'|'.join(around)})")
    text = f"(?a){'|'.join(branches)}"
    re.compile(text)
    return text


def together(sides: dict[str, set[str]]) -> list[str]:
    """The conditions around a character: what is before it, with it -> what may stand after it.

    Each lookbehind takes its time, wherever the character stands: so all of a width that want the same after it are
    one, those behind the same quotation mark are looked for only behind it, and those that want something after the
    character only where one of them has it.
    """
    same: dict[tuple[int, str], list[str]] = {}
    for before in sorted(sides):
        same.setdefault((width(before), ahead(sides[before])), []).append(before)
    plain: list[str] = []
    quoted: list[str] = []
    followed: list[str] = []
    for (size, after), befores in sorted(same.items()):
        for kind in (True, False):
            behind = "|".join(before for before in befores if before.endswith('"', 0, -1) == kind)
            if behind or (not size and not kind):
                chosen = followed if after and size else quoted if kind else plain
                chosen.append((f"(?<={behind})" if size else "") + after)
    stop = next(iter(sides), "")[-1:]
    if quoted:
        plain.append(f'(?<="{stop})(?:{"|".join(quoted)})')
    if followed:
        any_after = ahead({after for before in sides if before and "" not in sides[before] for after in sides[before]})
        plain.append(f"{any_after}(?:{'|'.join(followed)})")
    return plain


def width(behind: str) -> int:
    """How many characters a lookbehind of escaped characters and classes is wide."""
    return len(re.sub(r"\[.*?\]|\\.", "x", behind))


def ahead(after: set[str]) -> str:
    """A lookahead for any of `after`, without those that begin with another one of them; '' if that may be nothing."""
    shortest = sorted(one for one in after if not any(one != other and one.startswith(other) for other in after))
    return "" if "" in after else f"(?={'|'.join(shortest)})"


def behind_word(sign: str, count: int = 0) -> str:
    """A regex for the place behind a sign that a word of assignments.py stands before, with at least `count` characters
    between them. It looks further back only behind what may be between them, and first for the word's last letters,
    each by itself, since that fails soonest."""
    between = AFTER_WORD * count + sign
    letters = "".join(in_any_case_of(same) for same in zip(*(ending[-3:] for ending in WORD_ENDINGS)))
    longest = max(map(len, WORD_ENDINGS))
    word = "|".join(r"[\s\S]" * (longest - len(ending)) + in_any_case(ending) for ending in WORD_ENDINGS)
    there = f"(?<={letters}{between})(?<=(?:{word}){between})"
    if count == MOST_BETWEEN:
        return there
    blanks = rf"(?<=[ \t]{{2}}{sign})|" if count == 1 else ""
    further = f"{blanks}{behind_word(sign, count + 1)}"
    return f"{there}|(?<={AFTER_WORD}{between})(?:{further})"


def listed(name: str, kind: str, rows: list[str], opening: str = "(", closing: str = ")") -> list[str]:
    """The lines of an assignment, a row a line; rows of a string join into one."""
    comma = "" if kind == "str" else ","
    return [f"{name}: {kind} = {opening}", *(f"    {row}{comma}" for row in rows), closing, ""]


def mapped(name: str, kind: str, rows: dict[str, set[Any]]) -> list[str]:
    items = [f"{key!r}: {tuple(sorted(rows[key]))!r}" for key in sorted(rows)]
    return listed(name, f"dict[str, tuple[{kind}, ...]]", items, "{", "}")


def modules(rules: list[Rule]) -> dict[str, str]:
    """File name -> text of the two modules."""
    whole: dict[str, set[int]] = {}
    endings: dict[str, set[int]] = {}
    for number, rule in enumerate(rules):
        for name in rule.get("names", ()):
            (endings if name[0] == "*" else whole).setdefault(name.lstrip("*"), set()).add(number)
    return {"_literals.py": hot(rules, whole, endings), "_rules.py": cold(rules, whole, endings)}


def hot(rules: list[Rule], whole: dict[str, set[int]], endings: dict[str, set[int]]) -> str:
    """The module for __init__.py. Words are in one string, with line feeds between them, which loads fastest."""
    prefixes = {prefix for rule in rules for prefix in rule.get("prefix", ())}
    literals: dict[tuple[bool, str, str], set[str]] = {}
    for rule in rules:
        fold = "ignore_case" in rule
        ahead = rule.get("ahead", "") if rule.get("ahead") in AHEAD else ""
        for literal in () if "digits" in rule else rule.get("literals", ()):
            group = literals.setdefault((fold, rule.get("also", ""), ahead), set())
            group.add(literal.lower() if fold else literal)
    lines = [
        *('"""Written by build.py."""', ""),
        *listed("PREFIXES", "str", parts(prefixes)),
        *(f"SHORTEST_PREFIX = {min(map(len, prefixes))}", ""),
        "# Whether case is ignored, what else is in the text, what stands after the literal, the literals.",
        "LITERALS: tuple[tuple[bool, str, str, str], ...] = (",
    ]
    for key in sorted(literals):
        lines += [
            f"    ({', '.join(map(repr, key))}, (",
            *(f"        {part}" for part in parts(literals[key])),
            "    )),",
        ]
    lines += [
        *(")", ""),
        "# Line feeds are also at the beginning and at the end.",
        *listed("NAMES", "str", [repr("\n"), *parts(whole, "\n")]),
        f"ENDINGS = {tuple(sorted(endings))!r}",
        "# What the words of assignments.py end in.",
        f"WORD_ENDINGS = {WORD_ENDINGS!r}",
        "# Literals in which 0 stands for any digit and a blank for a hyphen too, and the numbers of their rules.",
        *listed("DIGIT_RUNS", "tuple[tuple[bytes, int], ...]", [repr(one) for one in digit_runs(rules)]),
    ]
    return "\n".join(lines) + "\n"


def digit_runs(rules: list[Rule]) -> list[tuple[bytes, int]]:
    return [(text.encode(), n) for n, rule in enumerate(rules) if "digits" in rule for text in rule["literals"]]


def parts(words: Iterable[str], end: str = "") -> list[str]:
    """The literals, one a word, that make one string of `words`: a line feed between any two, and `end`."""
    *most, last = sorted(words)
    return [*(repr(word + "\n") for word in most), repr(last + end)]


def cold(rules: list[Rule], whole: dict[str, set[int]], endings: dict[str, set[int]]) -> str:
    """The module for scan.py."""
    text, tails, found = tables(rules)
    options = (("before", 0), ("also", ""), ("judge", ""), ("entropy", 0), ("reject", ""), ("whole", False))
    kind = "tuple[tuple[str, str, str, int, str, str, float, str, bool], ...]"
    rows = [
        repr(
            (
                rule["id"],
                rule["kind"],
                pattern(rule),
                *(rule.get(field, default) for field, default in options),
            )
        )
        for rule in rules
    ]
    lines = [
        *('"""Written by build.py."""', "# ruff: noqa: E501", ""),
        *("from __future__ import annotations", "", "Row = tuple[str, int, int, bool]", ""),
        *listed("RULES", kind, rows),
        f"WORDS = { ({rule['word'][0]: number for number, rule in enumerate(rules) if 'word' in rule})!r}",
        *(f"SCANNER = {text!r}", f"SIGNS = {''.join(SIGNS)!r}", f"TAIL_LENGTHS = {TAIL_LENGTHS!r}", ""),
        *mapped("TAILS", "Row", tails),
        *mapped("ANCHORS", "Row", found),
        *mapped("NAMES", "int", whole),
        *mapped("ENDINGS", "int", endings),
    ]
    return "\n".join(lines)


def main() -> None:
    for name, text in modules(read()).items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
