"""A model's metadata, read before its session is made."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ort_lite.model import loader
from ort_lite.model.info import ModelMetadata

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions


def read_metadata(source: object, options: SessionOptions) -> ModelMetadata:
    """The metadata of a model file or bytes.

    Raises:
        OrtLiteError: As a session that cannot load the model.
        TypeError: `source` is neither a path nor bytes.
    """
    with closing(loader.load(source, options)) as loaded:
        return ModelMetadata.of(loaded.model)
