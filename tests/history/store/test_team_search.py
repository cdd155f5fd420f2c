"""A team's store answers like a machine's own: the same hits in the same order."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from random import Random

from memories_scene import MemoryDirectory, fact
from store_scene import Scene, put, said, state
from team_scene import Team, memory

from bench.corpus import Texts
from bench.search import SEED, batch_of, words_and_common
from session_memory.extras.team.postgres import _search_index as search_index
from session_memory.extras.team.postgres import push
from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.memories import TeamMemories, push_memories
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.history.store.values import Filter, Hit
from session_memory.memory.memory_index import MemoryFilter


class Prose(Texts):
    """What the benchmark's texts are, of a thousand words in place of 24,000, which are made in a moment."""

    def __init__(self, seed: int) -> None:
        chance = Random(seed)
        syllables = [
            one + other for one in "bdfgklmnprst" for other in ("a", "e", "i", "o", "un", "ol")
        ]
        words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(1000)]
        self._running = " ".join(
            chance.choices(words, [1 / (rank + 3) for rank in range(1000)], k=20_000)
        )

    def cut(self, kind: str, length: int, random: Random) -> str:
        start = self._running.find(" ", random.randrange(len(self._running) - length)) + 1
        return self._running[start : start + length]


def shown(hits: list[Hit]) -> list[tuple[str, int, str, float]]:
    return [(hit.conversation.session_id, hit.entry.number, hit.snippet, hit.score) for hit in hits]


def test_the_same_query_gives_the_same_answer(tmp_path, team: Team) -> None:
    scene, texts, random = Scene(tmp_path), Prose(SEED), Random(SEED)
    scene.store.write(batch_of(texts, random, number) for number in range(5))
    team.push(scene)
    words, common = words_and_common(texts, random)
    queries = [random.choice(common) for _ in range(10)]
    queries += [" ".join(random.sample(words, 1 + number % 4)) for number in range(30)]
    queries += [
        f'"{one} {other}" -{third}' for one, other, third in zip(words, words[1:], words[2:14])
    ]
    filters = [
        Filter(),
        Filter(role="user"),
        Filter(session="session-1"),
        Filter(since=1_760_200_000_000, limit=3),
    ]
    with closing(TeamStore(team.url("bob"))) as store:
        for number, query in enumerate(queries):
            wanted = filters[number % len(filters)]
            assert shown(store.search(query, wanted)) == shown(scene.store.search(query, wanted)), (
                query
            )


def test_of_a_large_team_the_newest_items_that_have_a_common_word_are_enough(
    tmp_path, team, monkeypatch
):
    monkeypatch.setattr(push, "SEGMENT_ITEMS", 1)
    scene = Scene(tmp_path)
    for number in range(6):
        put(
            scene,
            None,
            state(f"s{number}"),
            said(f"update harbour {'walrus' if number < 2 else 'gull'} {number}"),
        )
        team.push(scene)
    with closing(TeamStore(team.url())) as store:

        def found(query: str) -> list[str]:
            return sorted([hit.conversation.session_id for hit in store.search(query, Filter())])

        whole = shown(store.search("update walrus", Filter()))
        monkeypatch.setattr(search_index, "WHOLE", 5)
        monkeypatch.setattr(search_index, "MOST_ITEMS", 3)
        assert found("update") == ["s3", "s4", "s5"]
        # wherever both are
        assert found("update_walrus") == found("walrus -lighthouse") == ["s0", "s1"]
        assert found("harbour -gull") == []
        # and is worth as much as if all counted
        assert shown(store.search("update walrus", Filter()))[:2] == whole[:2]


def test_the_same_query_finds_the_same_memories(tmp_path, team: Team) -> None:
    texts, random = Prose(SEED), Random(SEED)
    known = MemoryDirectory(tmp_path)
    words, common = words_and_common(texts, random)
    titles = [" ".join([*random.sample(words, 4), random.choice(common)]) for _ in range(60)]
    known.keep(
        *[fact(title, random.choice(words), quote=random.choice(words)) for title in titles],
        fact("港町の灯台"),
    )
    own = known.all()
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        pushed = [
            memory(
                one.title, one.id, content=one.text, subject=one.subject, quote=one.quote, at=one.at
            )
            for one in own
        ]
        assert push_memories(pushing, pushed, ()) == len(own) > 50
    queries = [" ".join(random.sample(words, 1 + number % 3)) for number in range(40)]
    queries += [f'"{one.partition(" ")[0]}" {other}' for one, other in pairwise(titles[:20])]
    queries += [f'"{titles[number]}"' for number in range(5)] + [
        f"{titles[9]} -{titles[9].split()[0]}",
        "港",
        "町の",
        "-",
    ]
    found = 0
    with closing(TeamStore(team.url("bob"))) as store:
        for query in queries:
            here = [one.id for one in known.index.search(query, MemoryFilter(limit=5))]
            assert [
                one.id for one in TeamMemories(store).search(query, MemoryFilter(limit=5))
            ] == here, query
            found += len(here)
    known.close()
    assert found > 30
