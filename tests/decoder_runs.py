"""Tiny decoders of language models: their feeds, and their answers by onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

from benchmarks.decoders.make_decoder import SHAPES, DecoderShape, make_decoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import ort_lite as ort

    Array = np.ndarray[Any, np.dtype[Any]]
    Answers = dict[str, Array]

ROOM = 24
"""Positions of the caches."""
HALF_ATOL = 2e-3
"""Of numbers up to 2 whose sums and products are rounded to float16 in other places."""
STEPS = (7, 1, 1, 3, 1)
"""Tokens of each run."""
VARIANTS: Mapping[str, DecoderShape] = {
    "plain": SHAPES["tiny"],
    "packed": replace(SHAPES["tiny"], packed=True, zero_points=True, block=16),
    "bytes": replace(SHAPES["tiny"], bits=8, quantised_embedding=False, last_only=False),
    "window": replace(SHAPES["tiny"], softcap=5.0, window=6, layers=1),
    "half": replace(SHAPES["tiny"], half=True),
    "half packed": replace(
        SHAPES["tiny"], half=True, packed=True, zero_points=True, block=16, window=6
    ),
}


def fix_sizes(options: ort.SessionOptions, tokens: int, room: int = ROOM) -> ort.SessionOptions:
    """The options with the shapes of a run of so many tokens."""
    sizes = {"batch_size": 1, "sequence_length": tokens}
    sizes |= dict.fromkeys(("past_sequence_length", "total_sequence_length"), room)
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    return options


def draw_tokens(shape: DecoderShape, steps: Sequence[int] = STEPS) -> list[Array]:
    """Tokens [1, n] of each run."""
    random = np.random.default_rng(1)
    return [random.integers(0, shape.vocabulary, (1, n)) for n in steps]


def step_feed(
    shape: DecoderShape,
    tokens: Array,
    past: int,
    before: Answers | None,
    room: int | None = ROOM,
) -> Answers:
    """The feed of a run after `past` positions; its caches are those that `before` gave.

    They have room for so many positions, or grow from none on (None).
    """
    filled = past + tokens.shape[1]
    mask = np.zeros((1, filled if room is None else room), np.int64)
    mask[:, :filled] = 1
    kind = np.float16 if shape.half else np.float32
    empty = np.zeros((1, shape.kv_heads, room or 0, shape.head_size), kind)
    caches = {
        f"past_key_values.{i}.{kind}": empty if before is None else before[f"present.{i}.{kind}"]
        for i in range(shape.layers)
        for kind in ("key", "value")
    }
    return {"input_ids": tokens, "attention_mask": mask, **caches}


def run_steps(
    sessions: Any, shape: DecoderShape, steps: Sequence[int] = STEPS, room: int | None = ROOM
) -> list[Answers]:
    """What each run gives; the caches of one are the next one's, valid parts alone.

    Args:
        sessions: One for all runs, or by their number of tokens.
        shape: Of the decoder.
        steps: Tokens of each run.
        room: Of the caches, as in `step_feed`.
    """
    answers: list[Answers] = []
    past, before = 0, None
    for tokens in draw_tokens(shape, steps):
        session = sessions[tokens.shape[1]] if isinstance(sessions, dict) else sessions
        names = [info.name for info in session.get_outputs()]
        results = session.run(None, step_feed(shape, tokens, past, before, room))
        before = dict(zip(names, results, strict=True))
        past += tokens.shape[1]
        answers.append({n: v if v.ndim == 3 else v[:, :, :past] for n, v in before.items()})
    return answers


def run_in_onnxruntime(
    path: Path, shape: DecoderShape, steps: Sequence[int] = STEPS, room: int | None = ROOM
) -> list[Answers]:
    """The same by onnxruntime's CPU."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return run_steps(session, shape, steps, room)


def assert_close(found: list[Answers], right: list[Answers], atol: float = 2e-5) -> None:
    """The same names, shapes and numbers; of float16 as near as its roundings on the way allow."""
    for mine, theirs in zip(found, right, strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in theirs.items():
            assert mine[name].dtype == value.dtype
            is_half = value.dtype == np.float16
            limits = (4e-3, HALF_ATOL) if is_half else (1e-4, atol)
            np.testing.assert_allclose(mine[name], value, *limits, err_msg=name)


def write_decoder(folder: Path, variant: str) -> Path:
    """The model of a variant."""
    return make_decoder(folder / variant, VARIANTS[variant])
