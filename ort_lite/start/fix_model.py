"""A model that was read again, for one set of input shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.context.nodes import has_context_nodes
from ort_lite.status import Fail

if TYPE_CHECKING:
    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model.loader import LoadedModel

MAX_BYTES = 1 << 26
"""Of a model with its weights: each plan holds them once more."""


def fix_model(loaded: LoadedModel, inputs: FixedInputs) -> LoadedModel:
    """`loaded` for these inputs alone.

    Raises:
        Fail: It is compiled, larger than MAX_BYTES, or records its kernels, as models in the ORT
            format do; it is closed then.
    """
    size = len(loaded.data) + sum(file.stamp.size for _, file in loaded.external.files())
    why = ""
    if has_context_nodes(loaded.model.graph):
        why = "the model is compiled"
    elif loaded.model.kernel_types is not None:
        why = "the model records its kernels"
    elif size > MAX_BYTES:
        why = f"the model has {size} bytes, at most {MAX_BYTES} are read again"
    if why:
        loaded.close()
        raise Fail(why)
    graph = inputs.fix(loaded.model.graph)
    return replace(loaded, model=replace(loaded.model, graph=graph))
