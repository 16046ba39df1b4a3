"""The bare statements that the package is measured against; their texts lie in queries/."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "queries"


def bare(name: str, *, schema: str, **literals: object) -> str:
    """A statement by its file's name; literals are put in as they are, as a client that knows them would."""
    text = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    for mark, value in {"schema": f'"{schema}"', **literals}.items():
        text = text.replace(f"{{{mark}}}", str(value))
    return text
