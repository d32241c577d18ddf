"""Damaged JSON and YAML: values of other kinds, sizes and depths; or plain bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hostile.byte_mutations import mutated

if TYPE_CHECKING:
    from random import Random

_HERE = "@@here@@"
TOKENS = 3
"""Odd values in one file: a list of a thousand would be 100 MB of text."""


def damaged_json(data: bytes, random: Random) -> bytes:
    """JSON that differs from `data` in a value, a key, or in some bytes."""
    if random.random() < 0.2:
        return mutated(data, [(0, len(data))], random)
    content = json.loads(data)
    for _ in range(random.choice((1, 1, 2))):
        content = _changed(content, random)
    text = json.dumps(content)
    for _ in range(TOKENS):
        text = text.replace(f'"{_HERE}"', _token(random), 1)
    return text.replace(f'"{_HERE}"', "0").encode(errors="surrogatepass")


def _changed(value: Any, random: Random) -> Any:
    """`value` with one change somewhere inside."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        return random.choice((_deeper, _deeper, _deeper, _without, _renamed))(value, key, random)
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        inner = _changed(value[at], random)
        repeated = [value[at]] * random.choice((0, 2, 1000))
        return [*value[:at], *random.choice(([inner], repeated)), *value[at + 1 :]]
    return random.choice((_HERE, _HERE, None, True, -1, 0, 1.5, "", [], {}, [[]], [value] * 3))


def _deeper(value: dict[str, Any], key: str, random: Random) -> dict[str, Any]:
    return {**value, key: _changed(value[key], random)}


def _without(value: dict[str, Any], key: str, random: Random) -> dict[str, Any]:
    return {k: v for k, v in value.items() if k != key}


def _renamed(value: dict[str, Any], key: str, random: Random) -> dict[str, Any]:
    new = random.choice(("", "x" * 100_000, key.upper(), "\ud800", "\0"))
    return {new if k == key else k: v for k, v in value.items()}


def _token(random: Random) -> str:
    """The text of a value that json.dumps would not write."""
    depth = random.choice((100, 900, 950, 970, 980, 985, 990, 995, 50_000))
    return random.choice(
        (
            "[" * depth + "]" * depth,
            '{"a":' * depth + "1" + "}" * depth,
            "9" * random.choice((19, 400, 5000, 200_000)),
            "-" + "9" * 30,
            "1e999",
            "NaN",
            "1" + "0" * 400 + ".5",
            '"' + "x" * random.choice((300, 70_000, 300_000)) + '"',
            '"\\ud800"',
            '"\\u0000"',
            '{"a":1,"a":2}',
            "[" + "0," * 50_000 + "0]",
            "[" + "[]," * 20_000 + "[]]",
        )
    )


def damaged_yaml(data: bytes, random: Random) -> bytes:
    """YAML that differs from `data` in some lines, or in some bytes."""
    if random.random() < 0.25:
        return mutated(data, [(0, len(data))], random)
    lines = data.decode().splitlines()
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(lines))
        random.choice(_LINES)(lines, at, random)
    return ("\n".join(lines) + "\n").encode(errors="surrogatepass")


def _lose(lines: list[str], at: int, random: Random) -> None:
    del lines[at : at + random.choice((1, 1, 5))]
    lines.append("")


def _twice(lines: list[str], at: int, random: Random) -> None:
    lines[at:at] = lines[at : at + random.choice((1, 4))] * random.choice((1, 2, 50))


def _swap(lines: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent(lines: list[str], at: int, random: Random) -> None:
    lines[at] = random.choice(("  ", "\t", " " * 2000, "- ", "- " * 200, "? ")) + lines[at]


def _value(lines: list[str], at: int, random: Random) -> None:
    key = lines[at].partition(":")[0]
    lines[at] = f"{key}: {_odd(random)}"


def _insert(lines: list[str], at: int, random: Random) -> None:
    lines.insert(at, _odd(random))


def _odd(random: Random) -> str:
    depth = random.choice((3, 30, 3000))
    return random.choice(
        (
            "[" * depth,
            "[" * depth + "]" * depth,
            "{a: " * depth + "}" * depth,
            "&a [*a, *a]",
            "*a",
            "!!python/object:os.system x",
            '"\\U00110000"',
            '"\\x41\\UFFFFFFFF"',
            "%YAML 1." + "1" * 5000,
            "%TAG ! " + "x" * 5000,
            "x" * random.choice((100, 5000, 50_000)),
            "9" * 6000,
            "'" + "''" * 3000 + "'",
            "|\n" + "  x\n" * 500,
            "<<: {a: 1}",
            "? " * 100,
            "\u2028\x85\ufeff",
            "\x07",
            "---",
            "... ",
            ">=" + "9" * 5000 + ".1",
            "*" * 200,
            "~",
            "[" + "a, " * 5000 + "]",
        )
    )


_LINES = (_lose, _twice, _swap, _indent, _value, _value, _insert)
