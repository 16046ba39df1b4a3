"""From observations to signals: the formulas that every store shares."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from math import fsum, log, log1p

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observations import Observation
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals, trusted_signals

# BM25's saturation and length normalisation, as measured on conversation memories.
K1 = 0.6
B = 0.75
# The access count at which the frequency signal is full.
FREQUENT = 100
HALF_LIFE = timedelta(days=7)
COSINE_SHARE = 0.5

_NO_TIME = timedelta(0)


def recency(age: timedelta, half_life: timedelta) -> float:
    """2^(-age / half_life): 1.0 now and in the future, 0.5 after one half-life (exponential forgetting)."""
    return 2.0 ** -(age / half_life) if age > _NO_TIME else 1.0


def frequency(access_count: int) -> float:
    """min(1, ln(1 + n) / ln(101)): logarithmic, full at 100 uses."""
    return min(1.0, log1p(access_count) / log(1 + FREQUENT))


def proximity(hops: int | None) -> float:
    """1 / (1 + hops): 1.0 for the context record itself, 0.0 without a path."""
    return 0.0 if hops is None else 1.0 / (1 + hops)


def rescaled_cosine(cosine: float, baseline: float) -> float:
    """max(0, (cosine - baseline) / (1 - baseline)), in [0, 1].

    `baseline`, below 1, is the model's cosine of unrelated texts: the order stays, and a floor means the same
    with every model.
    """
    return min(1.0, max(0.0, (cosine - baseline) / (1.0 - baseline)))


def cue_signal(cosine: float | None, lex: float | None, cosine_share: float) -> float | None:
    """cosine_share * cosine + (1 - cosine_share) * lex of values in [0, 1]; the one there is, or None."""
    if cosine is None:
        return lex
    return cosine if lex is None else cosine_share * cosine + (1.0 - cosine_share) * lex


def inverse_document_frequency(total: int, holding: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)) of N texts, n of them holding the term.

    Robertson and Zaragoza 2009, in the form that is never negative. Bounded counts may give n above N; that
    counts as n = N.
    """
    return log1p((max(0, total - holding) + 0.5) / (holding + 0.5))


def lex(
    query_terms: Set[str],
    counts: Mapping[str, int],
    total: int,
    mean_total: float | None,
    idf: Mapping[str, float],
) -> float | None:
    """How well a text answers the query's terms, in [0, 1); None without a term or in an empty lineage.

    The sum over query terms w of idf(w) * f / (f + k1 * (1 - b + b * L / L_avg)), divided by the sum of
    idf(w): BM25 (Robertson and Zaragoza 2009) without its factor k1 + 1, on an absolute scale. f comes from
    `counts`, the terms of the text; L is `total`, their number with repeats; L_avg is `mean_total` over the
    lineage, None if that is empty. `idf` holds every query term, those that no text has too.
    """
    if not query_terms or mean_total is None:
        return None
    # Where no text of the lineage has a term, L and L_avg are both 0 and nothing matches.
    norm = K1 * (1.0 - B + B * (total / mean_total if mean_total > 0.0 else 0.0))
    # fsum: a set has no order, and the sum must not depend on one.
    matched = fsum(
        idf[term] * count / (count + norm) for term in query_terms if (count := counts.get(term, 0))
    )
    return matched / fsum(idf[term] for term in query_terms)


def observed_signals(
    observation: Observation,
    query: MemoryQuery,
    *,
    moment: datetime,
    baseline: float = 0.0,
    half_life: timedelta | Mapping[MemoryLayer, timedelta] = HALF_LIFE,
    cosine_share: float = COSINE_SHARE,
) -> RelevanceSignals:
    """The signals of one observation at a moment, clamped to [0, 1].

    The cue is 1.0 where the query asks nothing; proximity is None where it has no context; salience is left
    to the record. A `half_life` per layer falls back on 7 days for layers that it does not name.
    """
    record = observation.record
    if query.asks_nothing:
        cue: float | None = 1.0
    else:
        cosine = observation.cosine
        scaled = None if cosine is None else rescaled_cosine(cosine, baseline)
        cue = _clamped(cue_signal(scaled, observation.lex, cosine_share))
    if isinstance(half_life, Mapping):
        half_life = half_life.get(record.layer, HALF_LIFE)
    return trusted_signals(
        cue,
        None,
        recency(moment - record.updated_at, half_life),
        frequency(record.access_count),
        proximity(observation.hops) if query.context_ids else None,
    )


def _clamped(value: float | None) -> float | None:
    return None if value is None else min(1.0, max(0.0, value))
