"""Commands that ask: recall, explain, list and count."""

from __future__ import annotations

from typing import Annotated

import typer

from symfonic_pg.cli.asking import Judging, Layers, Question, Scope, Where, chosen_layers, condition
from symfonic_pg.cli.console import answers, note, print_json
from symfonic_pg.cli.embedding import NoEmbed, local_embedder
from symfonic_pg.cli.failures import FAILED
from symfonic_pg.cli.place import Place
from symfonic_pg.cli.rendering import plain, print_explanation, print_recall
from symfonic_pg.cli.shapes import (
    Shape,
    contributions_shape,
    explanation_shape,
    recall_shape,
    record_shape,
    working_shape,
)
from symfonic_pg.cli.writing import JsonOption
from symfonic_pg.memory import HydratedRecall, MemoryContractError, MemoryQuery
from symfonic_pg.memory.layers import layers_of


async def recall(
    question: Question,
    judging: Judging,
    place: Place,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every number, and everything that was left out.")
    ] = False,
    no_embed: NoEmbed = False,
    as_json: JsonOption = False,
) -> None:
    """Recall, in order, what is worth knowing at a scope, and say why the rest was left out."""
    query, options = question.query(), judging.options(local_embedder(no_embed))
    async with place.store(**options) as store:
        recalled = await store.recall(query)
    if as_json:
        print_json(_recall_document(query, recalled, turns=judging.turns, explain=explain))
    else:
        print_recall(answers(), query, recalled, slots=judging.profile_slots, explained=explain)
    if recalled.degraded:
        note("degraded: associations or conversation could not be read to the end")


async def explain(
    record_id: Annotated[str, typer.Argument(metavar="RECORD_ID", help="The memory to explain.")],
    question: Question,
    judging: Judging,
    place: Place,
    no_embed: NoEmbed = False,
    as_json: JsonOption = False,
) -> int | None:
    """Say why one memory is in the answer of a recall, or out of it.

    Takes the options of recall. Exit code 1 where the memory does not exist or cannot be seen from the scope,
    which is the same.
    """
    query, options = question.query(), judging.options(local_embedder(no_embed))
    async with place.store(**options) as store:
        explanation = await store.explain(query, record_id)
    if as_json:
        missing = {"record_id": record_id, "visible": False}
        print_json(missing if explanation is None else explanation_shape(explanation))
    elif explanation is None:
        note(f"{plain(record_id)!r} is not visible from {query.scope}, or does not exist")
    else:
        print_explanation(answers(), explanation)
    return FAILED if explanation is None else None


async def list_memories(
    scope: Scope,
    place: Place,
    layer: Layers = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only this kind.")] = None,
    where: Where = None,
    exactly: Annotated[bool, typer.Option("--exactly", help="Only this scope, not those above.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many.")] = 100,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="The last memory of the page before.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what is visible at a scope, newest first."""
    layers, condition_ = layers_of(chosen_layers(layer)), condition(where)
    async with place.store() as store:
        last = None if after is None else await store.get(scope, [after])
        if last == []:
            raise MemoryContractError(f"--after names a memory that is not visible: {after!r}", field="after")
        records = await store.list(
            scope,
            layers=layers,
            kind=kind,
            where=condition_,
            exactly=exactly,
            limit=limit,
            after=last[0] if last else None,
        )
    if as_json:
        print_json({"memories": [record_shape(record) for record in records]})
        return
    console = answers()
    for record in records:
        when = f"{record.updated_at:%Y-%m-%d %H:%M}"
        console.print(plain(f"{record.record_id}  {when}  {record.layer}  {record.scope}"), style="bold")
        console.print(f"  {plain(record.text)}")


async def count(scope: Scope, place: Place, as_json: JsonOption = False) -> None:
    """Count what is visible at a scope, of every layer, valid or not."""
    async with place.store() as store:
        number = await store.count(scope)
    if as_json:
        print_json({"scope": scope, "count": number})
    else:
        answers().print(str(number))


def _recall_document(query: MemoryQuery, recalled: HydratedRecall, *, turns: int, explain: bool) -> Shape:
    """The shape of a recall, and what was asked for beyond it."""
    document = recall_shape(query, recalled)
    if turns:
        document["working"] = working_shape(recalled.working)
    if explain:
        document["explanations"] = [contributions_shape(memory.explain()) for memory in recalled.memories]
    return document
