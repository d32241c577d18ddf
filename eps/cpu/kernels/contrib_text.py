"""ONNX Runtime's contrib operators on strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.cpu.kernels.text import texts
from eps.cpu.regular_expressions import finder
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

    Splitter = Callable[[str], list[str]]

START, END = "\x02", "\x03"
"""Around the tokens of each text with `mark`."""


def _tokenizer(info: KernelInfo) -> KernelFn:
    """com.microsoft Tokenizer-1: [C] or [N, C] texts to [..., tokens], filled with `pad_value`.

    Tokens are the text between matches of `separators`, or what `tokenexp` matches; characters
    where the only separator is empty. Without any token in all texts there are no marks either.
    """
    mark, least = bool(info.attr("mark", 0)), info.attr("mincharnum", 1)
    if least < 1:
        raise ValueError(f"Tokenizer: mincharnum is {least}, expected a positive number")
    split, pad = _splitter(info, least), info.attr("pad_value", "")

    def tokenize(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise ValueError(f"Input dimensions are either [C] or [N][C] allowed, not {x.shape}")
        if not x.size:
            return texts([], x.shape[:1] if x.ndim == 1 else (x.shape[0], 0))
        rows = [[one for one in split(text) if len(one) >= least] for text in x.reshape(-1)]
        if not any(rows):
            return texts([], (*x.shape, 0))
        if mark:
            rows = [[START, *row, END] for row in rows]
        width = max(map(len, rows))
        filled = [one for row in rows for one in (*row, *[pad] * (width - len(row)))]
        return texts(filled, (*x.shape, width))

    return tokenize


def _splitter(info: KernelInfo, least: int) -> Splitter:
    separators, expression = info.attr("separators", []), info.attr("tokenexp")
    if list(separators) == [""]:
        if least > 1:
            raise ValueError(f"Tokenizer: mincharnum is {least}, and tokens are single characters")
        return list
    if separators:
        return _split_by_each(separators)
    if not expression:
        raise ValueError("Tokenizer: it has neither separators nor tokenexp")
    find = _finder(expression)
    return lambda text: [text[begin:end] for begin, end in find(text)]


def _split_by_each(separators: Sequence[str]) -> Splitter:
    """Split by one separator after the other."""
    finders = [_finder(separator) for separator in separators]

    def split(text: str) -> list[str]:
        parts = [text]
        for find in finders:
            parts = [piece for part in parts for piece in _pieces(part, find(part))]
        return parts

    return split


def _finder(pattern: str) -> Callable[[str], list[tuple[int, int]]]:
    try:
        return finder(pattern)
    except ValueError as exc:
        raise ValueError(f"Tokenizer: {exc}") from exc


def _pieces(text: str, matches: Sequence[tuple[int, int]]) -> list[str]:
    """The text between matches; as in onnxruntime 1.31.1 an empty match drops the rest."""
    pieces: list[str] = []
    start = 0
    for begin, end in matches:
        if begin == end:
            return pieces
        pieces.append(text[start:begin])
        start = end
    return [*pieces, text[start:]]


KERNELS: tuple[KernelDef, ...] = (kernel("Tokenizer", domain="com.microsoft")(_tokenizer),)
