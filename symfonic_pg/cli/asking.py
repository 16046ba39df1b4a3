"""The options of a question: what is asked, from where, and how the answers are judged."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from symfonic_pg.embedders import Embedder
from symfonic_pg.memory import (
    RETRIEVABLE_LAYERS,
    SIGNAL_NAMES,
    MemoryContractError,
    MemoryQuery,
    MemoryScope,
    RelevanceWeights,
    RetrievalPolicy,
    ScopeBlend,
    ScopeBlendMode,
)
from symfonic_pg.store import StoreOptions

_JUDGED, _ADDED = "How candidates are judged", "What comes with them"

Scope = Annotated[str, typer.Option(metavar="SCOPE", help="Where, from the root: org:acme/user:u1.")]
Layers = Annotated[
    list[str] | None, typer.Option("--layer", metavar="LAYER", help="Only this layer; may be repeated.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help="What the metadata must contain, as in jsonb @>."),
]


@dataclass(frozen=True, slots=True)
class Question:
    """The options of MemoryQuery."""

    scope: Scope
    cue: Annotated[str, typer.Option(metavar="TEXT", help="What is asked; nothing is a cold start.")] = ""
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many memories.")] = 10
    layer: Layers = None
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The moment, as 2026-09-15T09:00:00+02:00; else now."),
    ] = None
    where: Where = None
    max_chars: Annotated[
        int | None, typer.Option(metavar="N", help="At most this many characters of text in all.")
    ] = None
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A memory that the conversation is about; may be repeated."),
    ] = None

    def query(self) -> MemoryQuery:
        """The query; MemoryContractError where an option breaks its rule."""
        return MemoryQuery(
            MemoryScope.parse(self.scope),
            self.cue,
            layers=chosen_layers(self.layer),
            limit=self.limit,
            max_chars=self.max_chars,
            context_ids=tuple(self.context or ()),
            as_of=None if self.as_of is None else moment(self.as_of, "--as-of"),
            where=condition(self.where),
        )


@dataclass(frozen=True, slots=True)
class Judging:
    """The options of RetrievalPolicy, and of what a recall adds to the memories that it found."""

    min_relevance: Annotated[
        float, typer.Option(metavar="SCORE", help="Leave out scores under this.", rich_help_panel=_JUDGED)
    ] = 0.0
    min_salience: Annotated[
        float, typer.Option(metavar="SALIENCE", help="Leave out less salient ones.", rich_help_panel=_JUDGED)
    ] = 0.0
    profile_slots: Annotated[
        int, typer.Option(metavar="N", help="Profile memories that come first.", rich_help_panel=_JUDGED)
    ] = 1
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIGNAL=WEIGHT",
            help="The weight of cue, salience, recency, frequency or proximity; may be repeated.",
            rich_help_panel=_JUDGED,
        ),
    ] = None
    blend: Annotated[
        ScopeBlendMode, typer.Option(help="What distance does to the order.", rich_help_panel=_JUDGED)
    ] = ScopeBlendMode.OFF
    half_life_levels: Annotated[
        float,
        typer.Option(
            metavar="LEVELS", help="The distance that halves a score, where blended.", rich_help_panel=_JUDGED
        ),
    ] = 1.0
    hops: Annotated[
        int, typer.Option(metavar="N", help="Follow associations this far.", rich_help_panel=_ADDED)
    ] = 0
    decay: Annotated[
        float, typer.Option(metavar="SHARE", help="What is left of a score a hop on.", rich_help_panel=_ADDED)
    ] = 0.5
    max_nodes: Annotated[
        int, typer.Option(metavar="N", help="At most this many by association.", rich_help_panel=_ADDED)
    ] = 10
    turns: Annotated[
        int, typer.Option(metavar="N", help="The last turns of the conversation.", rich_help_panel=_ADDED)
    ] = 0

    def policy(self) -> RetrievalPolicy:
        """The policy; MemoryContractError where an option breaks its rule."""
        return RetrievalPolicy(
            weights=_weights(self.weight or []),
            blend=ScopeBlend(self.blend, self.half_life_levels),
            min_relevance=self.min_relevance,
            min_salience=self.min_salience,
            profile_slots=self.profile_slots,
        )

    def options(self, embedder: Embedder | None) -> StoreOptions:
        """The settings of the store that answers."""
        return {
            "embedder": embedder,
            "policy": self.policy(),
            "max_hops": self.hops,
            "decay": self.decay,
            "max_nodes": self.max_nodes,
            "recent_turns": self.turns,
        }


def chosen_layers(names: list[str] | None) -> Any:
    """The layers by name, all that can be searched where none is named; the query checks them."""
    return names or RETRIEVABLE_LAYERS


def moment(text: str, name: str) -> datetime:
    """A point in time from ISO 8601 with its time zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        rule = "a time with its zone, as 2026-09-15T09:00:00+02:00"
        raise MemoryContractError(f"{name} must be {rule}, got {text!r}", field=name, rule=rule, got=text)
    return found


def condition(text: str | None) -> dict[str, Any] | None:
    """The JSON object of --where."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise MemoryContractError("--where must be JSON", field="where") from None
    if not isinstance(found, dict):
        raise MemoryContractError("--where must be a JSON object", field="where")
    return found


def _weights(given: list[str]) -> RelevanceWeights:
    pairs = [item.partition("=")[::2] for item in given]
    names = [name for name, _ in pairs]
    try:
        values = {name: float(value) for name, value in pairs}
    except ValueError:
        values = {}
    if len(values) != len(names) or not values.keys() <= set(SIGNAL_NAMES):
        rule = f"SIGNAL=WEIGHT, each signal once, of {', '.join(SIGNAL_NAMES)}"
        raise MemoryContractError(f"--weight must be {rule}", field="weight", rule=rule)
    return RelevanceWeights(**values)
