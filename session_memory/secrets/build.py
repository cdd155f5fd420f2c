"""rules.yaml -> _literals.py and _rules.py: `python -m session_memory.secrets.build`. The forms of a rule: rules.yaml."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
FORMS = {"prefix": "body", "literals": "regex", "names": "value"}
OPTIONS = {"ahead", "also", "before", "entropy", "ignore_case", "judge", "reject", "verbose"}
CLASSES = {
    "<hex>": "[0-9a-fA-F]",
    "<b36>": "[0-9a-z]",
    "<B36>": "[0-9A-Z]",
    "<b62>": "[0-9A-Za-z]",
    "<b64>": "[0-9A-Za-z+/]",
    "<b64u>": r"[\w+/-]",
    "<url>": r"[\w-]",
    "<uuid>": "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    # A token begins where a word does: also after the n of a JSON string's \n, a percent escape, a terminal's colour.
    "<begin>": r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))",
    # Between two lines of base64: white space, quotes, a string's escapes, a join, a listing's line number.
    "<gap>": r"""(?:[\s"'`,|>→]|\\+[nrt"']|\+(?=[\s"'])|[0-9]{1,6}[→|:])""",
    "<run>": "[0-9A-Za-z_+/=-]{10}",  # as in prefilter.py
    "<sign>": r"""[\s\S]{0,48}?[:=>|,(?"'`]""",  # as in prefilter.py
}
END = "(?![A-Za-z0-9])"
VALUE_END = r"(?![\w+/-])"
# A value is ten characters long and has a digit among the first forty. It stands after a sign and what may open it;
# after the signs that prose and code are full of, only in quotes.
VALUE = r"(?!---)(?=[0-9A-Za-z_.+/~%-][0-9A-Za-z_.+/~%=:|-]{9})[A-Za-z_.+/~%=:|-]{0,40}[0-9]"
SIGNS = {
    **{sign: rf"(?=[ \t\"'`*>=|\\]{{0,6}}{VALUE})" for sign in ":="},
    **{sign: rf"(?=[ \t\n\"'`*>=|\\]{{0,24}}{VALUE})" for sign in ">|"},
    **{sign: rf"(?=[ \t?]{{0,3}}\\{{0,3}}[\"'`]{VALUE})" for sign in ",(?"},
}
# A prefix that ends in one of these is looked for by its last three characters.
TAILS = "_-.~"
# How often a character stands in a thousand of ordinary transcript text. Any other: about twice.
FREQUENCY = {
    **{" ": 123, "e": 68, "t": 50, "s": 46, "o": 40, "n": 37, "i": 36, "a": 36, "r": 35, "c": 25, "l": 23, "d": 23},
    **{"m": 20, "p": 17, "u": 16, "g": 15, "/": 14, ".": 14, "h": 14, "-": 13, "0": 11, "f": 11, "1": 10, "2": 10},
    **{"b": 8, ":": 8, "4": 8, "y": 7, "k": 7, "5": 7, "v": 7, "3": 6, "w": 6, '"': 6, "x": 6, "=": 6, "(": 6, "C": 6},
    **{"9": 5, "8": 5, "T": 5, "6": 5, "7": 5, "A": 5, ",": 5, "S": 5, "I": 4, "j": 4, "E": 4, "M": 4, "P": 4, "R": 4},
}

Rule = dict[str, Any]
Word = tuple[str, bool]  # a literal, and whether its case is ignored


def read(path: Path = HERE / "rules.yaml") -> list[Rule]:
    """The rules of the file, with their lists as lists. A `ValueError` names the rule that is wrong."""
    rules: list[Rule] = yaml.safe_load(path.read_text(encoding="utf-8"))
    seen: set[str] = set()
    for rule in rules:
        form = [field for field in FORMS if field in rule]
        required = {"id", "kind", "sample", *form, *(FORMS[field] for field in form)}
        if len(form) != 1 or not required <= set(rule) or set(rule) - required - OPTIONS or rule["id"] in seen:
            raise ValueError(f"{path}: {rule.get('id', rule)}: not one of the forms, an unknown field, or an id twice")
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
    """The regex that is matched where the rule may apply."""
    if "prefix" in rule:
        text = f"{CLASSES['<begin>']}(?:{'|'.join(map(re.escape, rule['prefix']))})(?P<body>{spelled(rule['body'])}){END}"
    elif "names" in rule:
        text = f"(?:{spelled(rule['value'])}){VALUE_END}"
    else:
        text = spelled(rule["regex"])
    text = f"(?a{'i' * ('ignore_case' in rule)}{'x' * ('verbose' in rule)}){text}"
    re.compile(text)
    return text


def cost(character: str, fold: bool = False) -> float:
    """How often the scanner stops at a character, in a thousand; at it and its other case, if `fold`."""
    return sum(FREQUENCY.get(c, 2) for c in ({character.lower(), character.upper()} if fold else {character}))


def anchors(words: set[Word]) -> dict[Word, int]:
    """Where in each word the scanner looks for it: at characters that are, all together, as rare as can be."""
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
    return {
        (word, fold): word.index(min(set(word) & chosen, key=lambda c: (cost(c, fold), c))) for word, fold in words
    }


def in_any_case(text: str) -> str:
    """A regex of `text` in any case, without the flag: the flag would cost the whole scanner its speed."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.lower() != c.upper() else re.escape(c) for c in text)


def tables(rules: list[Rule]) -> tuple[str, dict[str, set[Any]], dict[str, set[Any]]]:
    """The scanner, the prefixes by their last three characters, the other literals by the character they are found at.

    The rows are (literal, offset of that character, number of the rule, whether case is ignored).
    """
    tails: dict[str, set[Any]] = {}
    others: list[tuple[str, int, str]] = []
    for number, rule in enumerate(rules):
        for literal in (*rule.get("prefix", ()), *rule.get("literals", ())):
            ahead = rule.get("ahead", "<run>" if "prefix" in rule else "")
            if ahead == "<run>" and literal[-1] in TAILS and len(literal) > 2:
                tails.setdefault(literal[-3:], set()).add((literal, len(literal) - 1, number, False))
            else:
                others.append((literal, number, spelled(ahead)))
    at = anchors({(literal, "ignore_case" in rules[number]) for literal, number, _ in others})
    found: dict[str, set[Any]] = {}
    sides: dict[str, dict[str, set[str]]] = {}
    for literal, number, ahead in others:
        fold = "ignore_case" in rules[number]
        offset = at[literal, fold]
        escape = in_any_case if fold else re.escape
        before, after = escape(literal[: offset + 1]) if offset else "", escape(literal[offset + 1 :]) + ahead
        for character in {literal[offset].lower(), literal[offset].upper()} if fold else {literal[offset]}:
            found.setdefault(character, set()).add((literal.lower() if fold else literal, offset, number, fold))
            sides.setdefault(character, {}).setdefault(before, set()).add(after)
    return scanner(sides, set(tails)), tails, found


def scanner(sides: dict[str, dict[str, set[str]]], tails: set[str]) -> str:
    """One regex that matches every character where a rule may apply: with its group, because of a tail or a sign."""
    grouped = {sign: f"{after}()" for sign, after in SIGNS.items()}
    for tail in TAILS:
        ends = "|".join(re.escape(end) for end in sorted(tails) if end[-1] == tail)
        grouped[tail] = f"(?={CLASSES['<run>']})(?<={ends})()"
    branches = []
    for character in sorted({*sides, *grouped}, key=lambda c: (-cost(c), c)):
        around = [
            (f"(?<={before})" if before else "") + ("" if "" in after else f"(?={'|'.join(sorted(after))})")
            for before, after in sorted(sides.get(character, {}).items())
        ]
        around += [grouped[character]] if character in grouped else []
        branches.append(f"{re.escape(character)}(?:{'|'.join(around)})")
    text = f"(?a){'|'.join(branches)}"
    re.compile(text)
    return text


def table(name: str, rows: list[str], kind: str, brackets: tuple[str, str] = ("(", ")")) -> list[str]:
    return [f"{name}: {kind} = {brackets[0]}", *(f"    {row}," for row in rows), brackets[1], ""]


def mapping(name: str, rows: dict[str, set[Any]]) -> list[str]:
    kind = "dict[str, tuple[int, ...]]" if name in ("NAMES", "ENDINGS") else "dict[str, tuple[Row, ...]]"
    return table(name, [f"{key!r}: {tuple(sorted(rows[key]))!r}" for key in sorted(rows)], kind, ("{", "}"))


def modules(rules: list[Rule]) -> dict[str, str]:
    """File name -> text of the two modules."""
    head = ['"""Written by build.py from rules.yaml."""', "# ruff: noqa: E501", "", "from __future__ import annotations", ""]
    whole: dict[str, set[Any]] = {}
    endings: dict[str, set[Any]] = {}
    literals: dict[bool, set[tuple[str, str, str]]] = {False: set(), True: set()}
    for number, rule in enumerate(rules):
        for name in rule.get("names", ()):
            (endings if name[0] == "*" else whole).setdefault(name.lstrip("*"), set()).add(number)
        for literal in rule.get("literals", ()):
            fold = "ignore_case" in rule
            ahead = rule.get("ahead", "") if rule.get("ahead") in ("<run>", "<sign>") else ""
            literals[fold].add((literal.lower() if fold else literal, rule.get("also", ""), ahead))
    hot = [
        *head,
        *table("PREFIXES", [repr(p) for p in sorted({p for r in rules for p in r.get("prefix", ())})], "tuple[str, ...]"),
        *table("LITERALS", [repr(row) for row in sorted(literals[False])], "tuple[tuple[str, str, str], ...]"),
        *table("ANY_CASE", [repr(row) for row in sorted(literals[True])], "tuple[tuple[str, str, str], ...]"),
        *table("NAMES", [repr(name) for name in sorted(whole)], "frozenset[str]", ("frozenset((", "))")),
        f"ENDINGS = {tuple(sorted(endings))!r}",
        "",
    ]
    text, tails, found = tables(rules)
    fields = (("before", 0), ("also", ""), ("judge", ""), ("entropy", 0), ("reject", ""))
    rows = [repr((r["id"], r["kind"], pattern(r), *(r.get(field, default) for field, default in fields))) for r in rules]
    cold = [
        *head,
        "Row = tuple[str, int, int, bool]",
        "",
        *table("RULES", rows, "tuple[tuple[str, str, str, int, str, str, float, str], ...]"),
        f"SCANNER = {text!r}",
        f"SIGNS = {''.join(SIGNS)!r}",
        "",
        *mapping("TAILS", tails),
        *mapping("ANCHORS", found),
        *mapping("NAMES", whole),
        *mapping("ENDINGS", endings),
    ]
    return {"_literals.py": "\n".join(hot), "_rules.py": "\n".join(cold)}


def main() -> None:
    for name, text in modules(read()).items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
