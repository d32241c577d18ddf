"""The public names are those of a list that one changes on purpose."""

from __future__ import annotations

from pathlib import Path

import ort_lite

LIST = Path(__file__).with_name("public_api.txt")


def test_the_public_names_are_those_of_the_list() -> None:
    agreed = LIST.read_text(encoding="utf-8").split()
    assert sorted(ort_lite.__all__) == agreed, f"edit {LIST.name} if this is meant"


def test_every_public_name_can_be_had() -> None:
    for name in ort_lite.__all__:
        assert getattr(ort_lite, name) is not None


def test_dir_shows_the_public_names_before_any_is_used() -> None:
    assert set(ort_lite.__all__) <= set(dir(ort_lite))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ort_lite, "InferenceSessions")
