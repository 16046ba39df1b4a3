"""Reads what an OpenAI-compatible endpoint answers: pure functions over bodies and headers."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from symfonic_pg.embedders.errors import EmbedderError, EmbedderUnavailable
from symfonic_pg.embedders.protocol import check_count

_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429
_HINTS = {
    401: "is api_key right?",
    403: "may this api_key use the model?",
    404: "are base_url (with its /v1) and the model's name right?",
    413: "lower batch_size or max_characters",
}
# Out of credit is reported as 429 too, and does not pass by waiting.
_LASTING = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


def read_vectors(body: object, count: int, model: str) -> list[list[float]]:
    """The `count` vectors of an embeddings response, in the order of the texts.

    They are ordered by their `index`, or stand in order where none has one. A vector is a list of
    numbers or the base64 of little-endian 32-bit floats. EmbedderError for anything else.
    """
    entries = body.get("data") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _malformed(model, "no list `data`")
    check_count(entries, count, model)
    indexes = [entry.get("index", position) for position, entry in enumerate(entries)]
    if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(count)):
        raise _malformed(model, "`index` does not number the texts")
    vectors: list[list[float]] = [[]] * count
    for index, entry in zip(indexes, entries, strict=True):
        vectors[index] = _vector(entry.get("embedding"), model)
    return vectors


def refusal(status: int, body: object, headers: Mapping[str, str], model: str) -> EmbedderError:
    """The error for a response that is not a success; EmbedderUnavailable where trying again may help.

    Of the body only the error's code or type is quoted: its message may repeat the text or the key.
    """
    code = _error_code(body)
    message = f"{model}: the endpoint answered {status}{f' ({code})' if code else ''}"
    passing = status in (_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS) or status >= 500
    if passing and code not in _LASTING:
        return EmbedderUnavailable(message, model=model, retry_after=retry_after(headers))
    hint = _HINTS.get(status)
    return EmbedderError(f"{message}: {hint}" if hint else message, model=model)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait by the header Retry-After, a number or an HTTP date; None where it says nothing."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    # A NaN compares false and so counts as nothing said.
    return max(0.0, seconds) if seconds == seconds else None


def _vector(value: Any, model: str) -> list[float]:
    if isinstance(value, str):
        try:
            packed = base64.b64decode(value, validate=True)
            return list(struct.unpack(f"<{len(packed) // 4}f", packed))
        except (binascii.Error, struct.error, ValueError) as exc:
            raise _malformed(model, "an embedding is not base64 of 32-bit floats") from exc
    if not isinstance(value, list) or not all(type(number) in (int, float) for number in value):
        raise _malformed(model, "an embedding is not a list of numbers")
    try:
        return [float(number) for number in value]
    except OverflowError as exc:
        raise _malformed(model, "an embedding holds a number beyond a float") from exc


def _error_code(body: object) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return ""
    found = error.get("code") or error.get("type")
    return found[:64] if isinstance(found, str) else ""


def _malformed(model: str, what: str) -> EmbedderError:
    return EmbedderError(f"{model}: the endpoint's answer cannot be read: {what}", model=model)
