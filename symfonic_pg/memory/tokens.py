"""The one tokeniser: what counts as a word, for cues and texts alike."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import category, normalize

# Scripts written without spaces between words (Han, Kana, Thai, Lao, Khmer), by their blocks; what of a
# block is neither letter, mark nor digit never gets here.
_UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b"
    "\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00016ff0-\U00016ff1\U0001aff0-\U0001afff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"[{_UNSPACED}]+|[^ {_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_ASCII_RUNS = re.compile("[a-z0-9_]+")
_ASCII_WORD = re.compile("[A-Za-z0-9_]")


class _Kept(dict[int, int]):
    """Code point to itself where it can be part of a word, else to a space; filled as texts are read."""

    def __missing__(self, code: int) -> int:
        kind = category(chr(code))
        # U+3007 is the Han zero, a number by category and a digit in use.
        word = kind[0] in "LM" or kind == "Nd" or code in (0x5F, 0x3007)
        mapped = code if word else 0x20
        if code < 0x10000:  # what lies above is rare and would let a stranger's text fill the table
            self[code] = mapped
        return mapped


_KEPT = _Kept()


def words(text: str) -> list[str]:
    """The words of a text, in its order and with repeats.

    After NFKC and casefold: maximal runs of letters, marks, digits and `_`. Runs of Han, Kana, Thai, Lao and
    Khmer, which put no space between words, are cut into overlapping pairs; a run of one stays one.
    """
    if text.isascii():
        return _ASCII_RUNS.findall(text.lower())
    runs: list[str] = _RUNS.findall(normalize("NFKC", text).casefold().translate(_KEPT))
    if not any(map(_UNSPACED_START.match, runs)):
        return runs
    return [word for run in runs for word in _cut(run)]


def has_word(text: str) -> bool:
    """Whether words(text) would find any."""
    if text.isascii():
        return _ASCII_WORD.search(text) is not None
    return bool(normalize("NFKC", text).casefold().translate(_KEPT).strip(" "))


# One cue meets every text of a search.
@lru_cache(maxsize=16)
def word_set(text: str) -> frozenset[str]:
    """The distinct words of a text; meant for cues, of which the last few are remembered."""
    return frozenset(words(text))


def _cut(run: str) -> list[str]:
    if len(run) == 1 or not _UNSPACED_START.match(run):
        return [run]
    return [run[place : place + 2] for place in range(len(run) - 1)]
