"""Writes _literals.py and _rules.py from rules.yaml: `python -m session_memory.text.secrets.build`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from .scanner import RUN, SIGNS, WORD_ENDINGS, Word, cases, scanner, stops

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
    "<run>": RUN,
    "<sign>": r"""[0-9A-Za-z_-]{0,40}[ \t\\\]]{0,8}["'`:=>|,(?]""",
}
TOKEN_END = r"(?<!\.)(?![A-Za-z0-9])"
VALUE_END = r"(?![\w+/-])"
# What __init__.py looks for behind a literal, too.
AHEAD = ("<run>", "<sign>", "<dotted>", "<flag>", "<prose>")

Rule = dict[str, Any]
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


def tables(rules: list[Rule]) -> tuple[str, dict[str, set[Row]], dict[str, set[Row]]]:
    """The scanner; the literals at whose beginning it stops, by their first two characters (those that are longer than
    one); the others, by the character where it stops and the one before."""
    words: list[tuple[Word, int]] = []
    for number, rule in enumerate(rules):
        ahead = spelled(rule.get("ahead", "<run>" if "prefix" in rule else ""))
        for literal in () if "digits" in rule else (*rule.get("prefix", ()), *rule.get("literals", ())):
            words.append(((literal, "ignore_case" in rule, ahead), number))
    at = stops({word for word, _ in words})
    heads: dict[str, set[Row]] = {}
    tails: dict[str, set[Row]] = {}
    for word, number in words:
        literal, fold, _ = word
        offset = at[word]
        row = (literal.lower() if fold else literal, offset, number, fold)
        pair = literal[offset - 1 : offset + 1] if offset else literal[:2]
        for key in cases(pair, fold):
            (tails if offset else heads).setdefault(key, set()).add(row)
    return scanner(at), heads, tails


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
    text, heads, tails = tables(rules)
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
        *(f"SCANNER = {text!r}", f"SIGNS = {''.join(SIGNS)!r}", ""),
        *mapped("HEADS", "Row", heads),
        *mapped("TAILS", "Row", tails),
        *mapped("NAMES", "int", whole),
        *mapped("ENDINGS", "int", endings),
    ]
    return "\n".join(lines)


def main() -> None:
    for name, text in modules(read()).items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
