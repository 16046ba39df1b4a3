"""Remember at a height, recall into a prompt, count what was used: no framework, and no server to install.

    pip install 'symfonic-pg[embedded]'
    python examples/plain_script.py [FOLDER]

The memories stay under FOLDER (./memories): run it twice, and it has them already.
"""

from __future__ import annotations

import asyncio
import sys

from symfonic_pg import MemoryQuery, MemoryRecord, MemoryScope, MemoryStore
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import Association, ConversationTurn

ORG = MemoryScope.of(("org", "acme"))
ANA = ORG.child("user", "ana")
# Nothing was ever written at this level: it sees Ana's memories and the organisation's all the same.
SESSION = ANA.child("session", "monday")

RECALLED = MemoryRecord("recall", ORG, "semantic", "Lamps of batch 7 are recalled: the driver overheats", 0.9)
MEMORIES = [
    RECALLED,
    MemoryRecord("tone", ORG, "procedural", "Offer a replacement before a refund"),
    MemoryRecord("lamp", ANA, "episodic", "Ana bought a desk lamp of batch 7"),
    MemoryRecord("name", ANA, "semantic", "Ana prefers short answers", kind="profile"),
    MemoryRecord("party", ORG, "episodic", "The summer party is in the garden"),
]


async def main(folder: str) -> None:
    # HashingEmbedder needs nothing, and knows spelling alone: take a model's embedder for real work.
    async with MemoryStore.embedded(folder, embedder=HashingEmbedder(), max_hops=1, recent_turns=4) as store:
        report = await store.remember(MEMORIES)
        print(f"# {report.inserted} new memories, {report.unchanged} known ones")
        await store.associate(ANA, Association("lamp", RECALLED, "belongs to", 1.0))
        await store.append_turn(SESSION, ConversationTurn("t1", "ana", "My desk lamp gets very hot", turn=1))

        query = MemoryQuery(SESSION, "the desk lamp is hot", limit=3, max_chars=2000)
        recalled = await store.recall(query)
        prompt = recalled.render()
        print(prompt)

        # Here the prompt goes to a language model. What its answer was built on has been of use:
        used = [memory.record_id for memory in recalled.memories]
        counted = await store.reinforce(ANA, used)
        print(f"# {counted} uses counted")

        print("# why the party is not in it:")
        print(await store.explain(query, "party"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "memories"))
