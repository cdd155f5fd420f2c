"""Search compared with a brute-force reference, which knows the words of random texts and queries.

`--queries N` tries N queries with a machine's own engine, and a quarter with a team's; without it
200, and 1,000 with `--all`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from share import some
from store_scene import MINUTE, START, Scene, put, said, state

from session_memory.history.store.ingest.values import NewTool
from session_memory.history.store.values import Filter, key_of

# A word and its forms: of the same term in the index.
WORDS = {
    "harbour": ("harbour", "Harbours", "HARBOUR"),
    "plum": ("plum", "plums", "Plúm"),
    "jam": ("jam", "JAM"),
    "kiosk": ("kiosk", "kiosks"),
    "uber": ("über", "Uber", "ÜBER"),
    "42": ("42",),
    "kyoto": ("Kyoto", "kyōto"),
    "mast": ("mast", "masts"),
    "zoo": ("zoo",),
    "lamp": ("lamp", "lamps"),
}
STOP_WORDS = ("the", "when", "did", "of")
RUNS = ("京都旅行", "京都", "旅行記", "ทะเลสาบ", "器")
CHARACTERS = frozenset("".join(RUNS))
BETWEEN = (" ", " ", " ", "  ", ", ", " - ", " / ", "\n", ": ", ".", "_", "-")
SESSIONS, ENTRIES = 40, 5


class Item(NamedTuple):
    """An entry or a tool use: its session, role, time, terms in sequence, and text."""

    session: str
    role: str
    at: int
    terms: tuple[str, ...]
    text: str

    def has(self, phrase: tuple[str, ...]) -> bool:
        return any(self.terms[at : at + len(phrase)] == phrase for at in range(len(self.terms)))


class Piece(NamedTuple):
    """A piece of a query as typed, its terms in sequence, and the parts that it should mean.

    The parts follow the documentation. Each has some terms, in sequence if it `is_phrase` or
    `is_unwanted`."""

    text: str
    terms: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    is_phrase: bool = False
    is_unwanted: bool = False
    is_stop_word: bool = False


def terms_of_run(run: str) -> tuple[str, ...]:
    """Pairs of characters, the last alone."""
    return tuple(run[at : at + 2] for at in range(len(run)))


class Story:
    """Random items in a store; `found` says by brute force which sessions a query finds."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene = scene
        self.chance = chance
        self.items: list[Item] = []
        self.typed: list[list[Piece]] = []  # queries that stand in texts too
        for number in range(SESSIONS):
            name = f"{chance.choice('ab')}{number}"
            entries = []
            for minute in range(ENTRIES):
                role = chance.choice(("user", "assistant"))
                (terms, text), (tool_terms, tool_text) = self.text(), self.text()
                use = NewTool(
                    key_of(f"{name} tool {minute}"),
                    key_of(f"{name} call {minute}"),
                    "Bash",
                    "command",
                    tool_text,
                )
                entries.append(
                    said(text, number * 600 + minute, role, key=f"{name} {minute}", tools=(use,))
                )
                at = START + (number * 600 + minute) * MINUTE
                self.items += [
                    Item(name, role, at, terms, text),
                    Item(name, "tool", at, tool_terms, tool_text),
                ]
            times = {
                "first_entry_timestamp": entries[0].timestamp,
                "last_entry_timestamp": entries[-1].timestamp,
            }
            put(scene, None, state(name, **times), *entries)

    def text(self) -> tuple[tuple[str, ...], str]:
        """Some words and separators, or a query as typed or as its words: the terms and the text."""
        if self.chance.random() < 0.15:
            pieces = self.pieces()
            self.typed.append(pieces)
            terms = [term for piece in pieces for term in piece.terms]
            text = " ".join(piece.text for piece in pieces)
            return tuple(terms), text if self.chance.random() < 0.5 else text.replace(
                "-", ""
            ).replace('"', "")
        terms, text = [], ""
        for _ in range(self.chance.randint(1, 7)):
            kind = self.chance.random()
            if kind < 0.12:
                run = self.chance.choice(RUNS)
                terms += terms_of_run(run)
                text += run
            elif kind < 0.3:
                word = self.chance.choice(STOP_WORDS)
                terms.append(word)
                text += word
            else:
                word = self.chance.choice(list(WORDS))
                terms.append(word)
                text += self.chance.choice(WORDS[word])
            text += self.chance.choice(BETWEEN)
        return tuple(terms), text

    def pieces(self) -> list[Piece]:
        return [self.piece() for _ in range(self.chance.randint(1, 6))]

    def piece(self) -> Piece:
        chance = self.chance
        kind = chance.random()
        words = tuple(chance.choice(list(WORDS)) for _ in range(chance.randint(2, 3)))
        forms = [chance.choice(WORDS[word]) for word in words]
        one, first = words[:1], forms[0]
        if kind < 0.4:
            return Piece(first, one, (one,))
        if kind < 0.5:
            return Piece(word := chance.choice(STOP_WORDS), (word,), ((word,),), is_stop_word=True)
        if kind < 0.6:
            return Piece(f'"{" ".join(forms)}"', words, (words,), is_phrase=True)
        if kind < 0.65:
            return Piece(f'"{first}"', one, (one,), is_phrase=True)
        if kind < 0.75:
            return Piece(f"-{first}", one, (one,), is_unwanted=True)
        if kind < 0.82:
            return Piece(f'-"{" ".join(forms)}"', words, (words,), is_unwanted=True)
        if kind < 0.9:
            return Piece(".".join(forms), words, (words,))
        run = chance.choice(RUNS)
        pairs = terms_of_run(run)[:-1]
        if not pairs:
            return Piece(run, (run,), ((run,),))
        if kind < 0.93:
            return Piece(f'"{run}"', terms_of_run(run), (pairs,), is_phrase=True)
        if kind < 0.95:
            return Piece(
                f'"{run} {first}"', phrase := (*terms_of_run(run), *one), (phrase,), is_phrase=True
            )
        return Piece(run, terms_of_run(run), tuple((pair,) for pair in pairs))

    def found(self, pieces: list[Piece], text: str, fits: Callable[[Item], bool]) -> set[str]:
        """The sessions that have an item that the query should find."""
        items = [item for item in self.items if fits(item)]
        unwanted = [phrase for piece in pieces if piece.is_unwanted for phrase in piece.parts]
        wanted = [item for item in items if not any(item.has(phrase) for phrase in unwanted)]
        phrases = [piece.parts[0] for piece in pieces if piece.is_phrase]
        words = [piece for piece in pieces if not piece.is_unwanted and not piece.is_phrase]
        said_words = [piece for piece in words if not piece.is_stop_word]
        if not said_words and not phrases:
            said_words = words
        parts = [set(part) for piece in said_words for part in piece.parts]
        if phrases:
            hits = {item for item in wanted if all(item.has(phrase) for phrase in phrases)}
        else:
            hits = having_some(parts, wanted)
        if unwanted and sum(len(piece.terms) for piece in pieces) >= 4:
            typed = " ".join(text.casefold().split()).strip("\"'")
            hits |= {item for item in items if typed in " ".join(item.text.casefold().split())}
        if not hits:
            hits = having_some([*parts, *({term} for phrase in phrases for term in phrase)], wanted)
        return {item.session for item in hits}


def having_some(parts: list[set[str]], items: list[Item]) -> set[Item]:
    """Return the items that have any of the parts.

    For parts that no item has as a whole, one of the terms is enough."""
    known = [part for part in parts if any(has_all(item, part) for item in items)]
    known += [{term} for part in parts if part not in known for term in part]
    return {item for item in items if any(has_all(item, part) for part in known)}


def has_all(item: Item, part: set[str]) -> bool:
    """A single character of a script without spaces is part of every pair that begins with it."""
    return all(
        any(term.startswith(one) for term in item.terms) if one in CHARACTERS else one in item.terms
        for one in part
    )


def filters(chance: random.Random) -> Iterator[tuple[Filter, Callable[[Item], bool]]]:
    """Filters that are asked in turn, each with what it allows."""
    while True:
        yield Filter(limit=1000), lambda item: True
        role = chance.choice(("user", "assistant", "tool"))
        yield Filter(limit=1000, role=role), lambda item, role=role: item.role == role
        yield Filter(limit=1000, session="a"), lambda item: item.session.startswith("a")
        first, last = sorted(START + chance.randrange(SESSIONS * 600) * MINUTE - 1 for _ in "12")
        yield (
            Filter(limit=1000, since=first, until=last),
            lambda item, first=first, last=last: first <= item.at <= last,
        )


@pytest.fixture
def queries(pytestconfig: pytest.Config) -> int:
    return pytestconfig.getoption("--queries") or some(1000, 200)


@pytest.mark.timeout(3600)
def test_search_finds_what_a_brute_force_search_finds(scene: Scene, queries: int) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    story = Story(scene, chance)
    wrong = []
    is_own = scene.told is scene.store
    for _, (wanted, fits) in zip(range(queries if is_own else queries // 4), filters(chance)):
        pieces = chance.choice(story.typed) if chance.random() < 0.2 else story.pieces()
        text = " ".join(piece.text for piece in pieces)
        found = {hit.conversation.session_id for hit in scene.told.search(text, wanted)}
        expected = story.found(pieces, text, fits)
        if found != expected:
            narrowed = {
                name: value
                for name, value in wanted._asdict().items()
                if value != Filter._field_defaults[name]
            }
            wrong.append(
                f"{text!r} {narrowed}: wrong {sorted(found - expected)}, missing {sorted(expected - found)}"
            )
    shown = "\n".join(wrong[:10])
    assert not wrong, f"seed {seed}: {len(wrong)} of {queries}\n{shown}"
