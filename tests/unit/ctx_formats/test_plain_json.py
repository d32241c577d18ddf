"""Plain JSON against the json module: the same values and spelling, or left to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctx_formats.plain_json import MAX_DEPTH, read_plain_object, spell_plain_object

if TYPE_CHECKING:
    from collections.abc import Sequence

DENSE = (",", ":")
plain_text = st.text(st.characters(exclude_characters='"\\', exclude_categories=("C", "Z")))
plain_values = st.recursive(
    plain_text | st.integers(0, 10**18 - 1),
    lambda inner: st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=12,
)
any_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def spell(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read(text: str) -> object:
    """As ctx_formats/notes.py reads it: a name twice is an error."""

    def collect(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            raise ValueError("a name twice")
        return content

    return json.loads(text, object_pairs_hook=collect)


@given(st.dictionaries(plain_text, plain_values, max_size=5))
def test_plain_objects_are_read_and_spelled_as_json_does_it(content: dict[str, Any]) -> None:
    assert read_plain_object(json.dumps(content, separators=(",", ":"), ensure_ascii=False)) == (
        content
    )
    assert spell_plain_object(content) == spell(content)


@given(st.dictionaries(st.text(), any_values, max_size=4), st.sampled_from([DENSE, (", ", ": ")]))
@example({"a": "\x7f"}, DENSE)
@example({"a": "\u2028"}, DENSE)
@example({"a": "\ud800"}, DENSE)
@example({"a": 10**18}, DENSE)
@example({"a": -1}, DENSE)
@example({"a": True}, DENSE)
def test_other_values_are_left_to_json_or_read_alike(
    content: dict[str, Any], separators: tuple[str, str]
) -> None:
    text = json.dumps(content, separators=separators, ensure_ascii=False)
    found = read_plain_object(text)
    if found is not None:
        assert spell(found) == spell(content) == spell_plain_object(found)


@given(
    st.dictionaries(plain_text, plain_values, max_size=3).map(spell),
    st.integers(0, 200),
    st.integers(0, 3),
    st.text('{}[]",:0123456789\\ ea-.\n\u00e9', max_size=3),
)
def test_damaged_text_is_left_to_json_or_read_alike(
    text: str, at: int, removed: int, inserted: str
) -> None:
    damaged = text[:at] + inserted + text[at + removed :]
    found = read_plain_object(damaged)
    if found is not None:
        assert found == read(damaged)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[]",
            '"a"',
            "1",
            "{}x",
            " {}",
            "{} ",
            '{"a"}',
            '{"a":}',
            '{"a":1,}',
            '{"a":01}',
        ),
        *('{"a":1 }', '{"a":-1}', '{"a":1.0}', '{"a":true}', '{"a":null}', '{"a":"\\n"}', "{,}"),
        *('{"a":"\n"}', '{"a":1,"a":1}', "{a:1}", '{"a":\u0661}', '{"a":' + "1" * 19 + "}"),
        '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        '{"a":' * 100_000,
    ],
)
def test_what_is_not_plain_is_left_to_json(text: str) -> None:
    assert read_plain_object(text) is None


def test_objects_may_be_as_deep_as_is_said() -> None:
    text = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    assert read_plain_object(text) == read(text)
