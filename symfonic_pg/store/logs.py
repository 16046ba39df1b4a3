"""What a store leaves in the log: numbers, never a text, an id or a cue."""

from __future__ import annotations

import logging

from symfonic_pg.memory import RetrievalResult

logger = logging.getLogger("symfonic_pg.store")


def log_slow(seconds: float, threshold: float, result: RetrievalResult) -> None:
    """One warning for a recall that took too long; its facts are also attributes of the log record."""
    if seconds < threshold:
        return
    facts = {
        "seconds": round(seconds, 3),
        "returned": len(result.memories),
        "dropped": len(result.dropped),
        "routes": dict(result.sources),
        "unavailable": list(result.unavailable),
        "completeness": dict(result.completeness),
    }
    logger.warning("slow recall: %s", facts, extra=facts)
