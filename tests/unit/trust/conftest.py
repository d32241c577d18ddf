"""Keys of two people."""

from __future__ import annotations

import pytest
from signed_models import Key, make_key


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    """The one that is trusted."""
    return make_key(tmp_path_factory.mktemp("keys"), "ship")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Key:
    """Somebody else's."""
    return make_key(tmp_path_factory.mktemp("keys"), "stranger")
