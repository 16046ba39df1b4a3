"""Synthetic memories: hard for an index, and laid out as agents of many customers would leave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice, product

import numpy as np
import numpy.typing as npt

from symfonic_pg.memory import MemoryQuery, MemoryRecord, MemoryScope
from symfonic_pg.terms.languages import stop_words

DIMENSION = 384
ROWS = 200_000
# Topics are directions with noise nearly as long: neighbours are many, and hardly nearer than the rest.
TOPICS = 500
NOISE = 0.9
# A question is a stored vector with some more noise.
QUESTION_NOISE = 0.03
VOCABULARY = 20_000
TOPIC_WORDS = 60
NOW = datetime(2026, 6, 1, tzinfo=UTC)

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Place:
    """How many memories lie at exactly one scope, of 200,000 in all."""

    scope: MemoryScope
    memories: int


# What a query at each of these scopes sees, its own level and those above, is the number it is called by.
VISIBLE = {
    "500": MemoryScope.parse("org:small/user:cem/session:s1"),
    "10,000": MemoryScope.parse("org:medium/user:bo/session:s1"),
    "60,000": MemoryScope.parse("org:large/user:ana/session:s1"),
}


def places() -> list[Place]:
    """Where 200,000 memories lie: three lineages to ask from, their siblings, and other tenants."""
    levels = {"small": (400, 80, 20), "medium": (9_000, 900, 100), "large": (50_000, 9_500, 500)}
    laid = []
    for session in VISIBLE.values():
        counts = levels[session.root.id]
        laid += [
            Place(scope, count)
            for scope, count in zip((*session.ancestors()[::-1], session), counts, strict=True)
        ]
    large = MemoryScope.of(("org", "large"))
    laid += [Place(large.child("user", f"u{number}"), 700) for number in range(90)]
    laid += [Place(MemoryScope.of(("org", f"o{number}")).child("user", "u"), 950) for number in range(70)]
    return laid


class Dataset:
    """`rows` memories in the proportions of `places`, all scopes mixed; the same for the same seed."""

    def __init__(self, rows: int = ROWS, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        laid = places()
        counts = [max(1, round(place.memories * rows / ROWS)) for place in laid]
        self.scopes = [place.scope for place in laid]
        order = self._random.permutation(np.repeat(np.arange(len(laid)), counts))
        self.placed: npt.NDArray[np.int64] = order
        self._topics = self._random.integers(TOPICS, size=len(order))

    def __len__(self) -> int:
        return len(self.placed)

    @cached_property
    def vectors(self) -> Vectors:
        """One unit vector a memory."""
        centres = self._random.standard_normal((TOPICS, DIMENSION), dtype=np.float32)
        found = centres[self._topics]
        found += NOISE * self._random.standard_normal(found.shape, dtype=np.float32)
        return _unit(found)

    @cached_property
    def texts(self) -> list[str]:
        """Some 26 words each: stop words, and words of the topic and of everybody, both by Zipf's law."""
        vocabulary = np.array(_words(VOCABULARY))
        stops = np.array(sorted(stop_words("english")))
        own = self._random.integers(VOCABULARY, size=(TOPICS, TOPIC_WORDS))
        texts = []
        for topic in self._topics:
            length = 6 + self._random.poisson(7)
            mine = own[topic][_zipf(self._random, TOPIC_WORDS, length // 2)]
            common = _zipf(self._random, VOCABULARY, length - length // 2)
            words = [
                *vocabulary[mine],
                *vocabulary[common],
                *stops[self._random.integers(len(stops), size=length)],
            ]
            self._random.shuffle(words)
            texts.append(" ".join(words))
        return texts

    def records(self) -> Iterator[MemoryRecord]:
        """The memories in order, a fiftieth of them expired, a third with a known salience."""
        layers = ("semantic", "episodic", "procedural", "prospective")
        ages = self._random.exponential(60.0, size=len(self))
        for number, (place, text, age) in enumerate(zip(self.placed, self.texts, ages, strict=True)):
            at = NOW - timedelta(days=float(age))
            yield MemoryRecord(
                f"m{number}",
                self.scopes[place],
                layers[number % 4],
                text,
                salience=number % 10 / 10 if number % 3 == 0 else None,
                kind="profile" if number % 1000 == 0 else "",
                created_at=at,
                updated_at=at,
                expires_at=NOW - timedelta(hours=1) if number % 50 == 0 else None,
                metadata={"source": f"source-{number % 7}", "turn": number % 500},
            )

    def questions(
        self, scope: MemoryScope, count: int, *, limit: int = 20, seed: int = 7
    ) -> list[MemoryQuery]:
        """Questions at a scope, each about one memory seen from there: its vector and six of its words."""
        random = np.random.default_rng(seed)
        seen = [number for number, one in enumerate(self.scopes) if scope.distance(one) >= 0]
        about = random.choice(np.flatnonzero(np.isin(self.placed, seen)), size=count)
        noise = QUESTION_NOISE * random.standard_normal((count, DIMENSION), dtype=np.float32)
        vectors = _unit(self.vectors[about] + noise)
        return [
            MemoryQuery(
                scope,
                "what about " + " ".join(random.permutation(_content(self.texts[number]))[:6]),
                limit=limit,
                embedding=tuple(vector.tolist()),
                as_of=NOW,
            )
            for number, vector in zip(about, vectors, strict=True)
        ]


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _content(text: str) -> Sequence[str]:
    return [word for word in text.split() if word not in stop_words("english")]


def _zipf(random: np.random.Generator, size: int, count: int) -> npt.NDArray[np.int64]:
    """`count` ranks below `size`, rank r as often as 1 / (r + 10) says: Zipf without the stop words."""
    # The inverse of ln((r + 10) / 10) / ln((size + 10) / 10), which the sums of 1 / (r + 10) follow closely.
    ranks: npt.NDArray[np.int64] = (10 * ((size + 10) / 10) ** random.random(count) - 10).astype(np.int64)
    return ranks


def _words(count: int) -> list[str]:
    """Words that can be told apart by their first three syllables."""
    syllables = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
    made = ("".join(parts) for parts in product(syllables, repeat=3))
    return list(islice(made, count))
