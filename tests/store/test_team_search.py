"""A team's store answers as a machine's own does: the same query, the same hits, in the same order."""

from __future__ import annotations

from contextlib import closing
from random import Random

from store_scene import Scene
from team_scene import Team

from bench.corpus import Texts
from bench.search import SEED, batch_of, words_and_common
from session_memory.store.postgres.engine import TeamStore
from session_memory.store.values import Filter, Hit


def shown(hits: list[Hit]) -> list[tuple[str, int, str, float]]:
    return [(hit.conversation.session_id, hit.entry.number, hit.snippet, hit.score) for hit in hits]


def test_the_same_query_gives_the_same_answer(tmp_path, team: Team) -> None:
    scene, texts, random = Scene(tmp_path), Texts(SEED), Random(SEED)
    scene.store.write(batch_of(texts, random, number) for number in range(12))
    team.push(scene)
    words, common = words_and_common(texts, random)
    queries = [random.choice(common) for _ in range(20)]
    queries += [" ".join(random.sample(words, 1 + number % 4)) for number in range(60)]
    queries += [f'"{one} {other}" -{third}' for one, other, third in zip(words, words[1:], words[2:40])]
    filters = [Filter(), Filter(role="user"), Filter(session="session-1"), Filter(since=1_760_200_000_000, limit=3)]
    with closing(TeamStore(team.url("bob"))) as store:
        for number, query in enumerate(queries):
            wanted = filters[number % len(filters)]
            assert shown(store.search(query, wanted)) == shown(scene.store.search(query, wanted)), query
