"""`session.placement`: whether execution providers run what pays there or all that they support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.context.keys import ENABLE_KEY
from ort_lite.planning.placement import NO_FALLBACK_KEY
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions

PLACEMENT_KEY = "session.placement"
PAYS, ALL = "pays", "all"
"""Nodes on an EP that run faster there than on the default EP; all nodes that it supports."""


def choose_placement(options: SessionOptions, *, context: bool = False) -> str:
    """`session.placement`, where it is set, or its default.

    A context model is compiled for its EPs on request and ahead of time, so that all that they
    support goes into it. Where nodes must not run on the default EP, none is left to it.

    Args:
        options: Of a session or compiler.
        context: Whether a context model is written whatever `options` say.

    Raises:
        InvalidArgument: It is neither `pays` nor `all`.
    """
    written = context or options.flag(ENABLE_KEY)
    text = options.config.get(PLACEMENT_KEY, ALL if written else PAYS)
    if text not in (PAYS, ALL):
        raise InvalidArgument(f"{PLACEMENT_KEY} is '{text}', expected {PAYS} or {ALL}")
    return ALL if options.flag(NO_FALLBACK_KEY) else text
