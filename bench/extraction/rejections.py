"""Things that were tried and rejected, planted in conversations: none of them may come back as anything else."""

from __future__ import annotations

from collections.abc import Iterator

from session_memory.memories.strategy import Memory

from .excerpts import entries_of, items_of

_THINGS = (
    "Redis", "Kafka", "MongoDB", "GraphQL", "Elasticsearch", "Terraform", "Svelte", "Bazel", "RabbitMQ", "Cassandra",
    "Webpack", "Ansible", "Memcached", "Celery", "Selenium", "Gulp", "Puppet", "Vagrant", "Jenkins", "CoffeeScript",
)  # fmt: skip
_REASONS = (
    "it was far too slow", "it was too heavy for two people", "it ran out of memory", "the licence costs too much",
    "nobody here knows it", "it lost messages on restart", "the plugin was unusable", "it broke on every update",
    "it was twice as slow", "the setup was a nightmare",
)  # fmt: skip
_WAYS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("U", "We tried {thing} for this, but {reason}, so we went back to the old way."), ("A", "Understood.")),
    (("U", "We decided against {thing} because {reason}."), ("A", "Fine.")),
    (("U", "let's use {thing} for this"), ("A", "OK."), ("U", "no wait, drop {thing}, {reason}"), ("A", "Reverted.")),
    (("U", "I tested {thing} last week. It is out, {reason}."), ("A", "Noted: {thing} is not used.")),
    (("A", "I'd suggest using {thing} here. Shall I?"), ("U", "no, we tried that, {reason}"), ("A", "OK, no {thing}.")),
    (("A", "Should I use {thing} for it?"), ("U", "yes, do that"), ("A", "Done."), ("U", "hm, revert that, {reason}")),
    (("U", "{thing} did not work for us because {reason}."), ("A", "I see.")),
    (("U", "We ruled out {thing} since {reason}. Our budget is 200 euros."), ("A", "Good to know.")),
    (("U", "don't use {thing}, {reason}, please keep what we have"), ("A", "I keep it.")),
    (("U", "we'll use {thing} for the jobs"), ("A", "I tried {thing}, but {reason}, so I reverted it."), ("U", "ok")),
)
PLANTED = len(_THINGS) * len(_WAYS)


def came_back() -> list[str]:
    """The things that were kept as something else than rejected, each with the item."""
    return [
        f"{thing}: {item.kind}: {item.title}"
        for thing, items in _played()
        for item in items
        if thing.casefold() in f"{item.title} {item.text}".casefold() and item.kind != "rejected"
    ]


def kept() -> int:
    """How many were kept as rejected."""
    return sum(any(item.kind == "rejected" for item in items) for _, items in _played())


def _played() -> Iterator[tuple[str, list[Memory]]]:
    for number, thing in enumerate(_THINGS):
        for at, way in enumerate(_WAYS):
            reason = _REASONS[(number + at) % len(_REASONS)]
            said = [(sign, text.format(thing=thing, reason=reason)) for sign, text in way]
            yield thing, items_of(entries_of(said))
