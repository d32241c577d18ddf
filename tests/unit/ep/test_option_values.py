"""Provider options as values, checked alike in every execution provider."""

from __future__ import annotations

import pytest

from ort_lite.ep import InvalidArgument, read_choice, read_count, read_flag


@pytest.mark.parametrize(("text", "value"), [("1", True), ("True", True), ("0", False)])
def test_a_flag_is_read(text: str, *, value: bool) -> None:
    assert read_flag({"fast": text}, "fast", default=not value) is value


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_not_set_has_its_default(*, default: bool) -> None:
    assert read_flag({}, "fast", default=default) is default


def test_a_count_and_a_choice_are_read() -> None:
    assert read_count({"n": "65535"}, "n") == 65535
    assert read_count({}, "n") is None
    assert read_count({}, "n", 8) == 8
    assert read_choice({"mode": "slow"}, "mode", ("fast", "slow")) == "slow"
    assert read_choice({}, "mode", ("fast", "slow")) == "fast"


@pytest.mark.parametrize("text", ["0", "65536", "-1", "1.5", "", "²"])
def test_a_count_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"n is '.*', expected a whole number"):
        read_count({"n": text}, "n")


def test_another_text_for_a_flag_or_a_choice_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="fast is 'yes', expected true or false"):
        read_flag({"fast": "yes"}, "fast")
    with pytest.raises(InvalidArgument, match="mode is 'odd', expected one of fast, slow"):
        read_choice({"mode": "odd"}, "mode", ("fast", "slow"))
