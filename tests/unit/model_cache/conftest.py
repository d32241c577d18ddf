"""A model and a folder for its compiled form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from small_models import sandwich

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(sandwich().SerializeToString())
    return path
