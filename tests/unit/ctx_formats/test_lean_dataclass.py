"""ctx_formats.lean_dataclass does what the standard library's dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any, ClassVar

import pytest

from ctx_formats import lean_dataclass

KINDS = [dataclasses, lean_dataclass]


def made(kind: Any) -> dict[str, Any]:
    """The same classes, by `kind`'s dataclass."""
    dataclass, field = kind.dataclass, kind.field

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        count: ClassVar[int] = 7

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x is negative")

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named(Point):
        name: str
        secret: str = field(default="s", repr=False)

    @dataclass(slots=True)
    class Open:
        a: object
        b: int = field(init=False)
        c: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            self.b = self.c + 1

    @dataclass(eq=False, slots=True)
    class Same:
        a: int

    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 3

    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    classes = (Point, Named, Open, Same, Own, Nothing)
    return {cls.__name__: cls for cls in classes}


def told(act: Any) -> tuple[str, Any]:
    """What `act` gives or raises; texts of a TypeError are Python's and differ by version."""
    try:
        return "gives", act()
    except TypeError:
        return "raises", TypeError
    except Exception as exc:  # noqa: BLE001 - compared with the other kind's
        return "raises", (type(exc), str(exc))


ACTS = {
    "positional": lambda c: repr(c["Point"](1, 3)),
    "defaults": lambda c: repr(c["Point"](x=1)),
    "own lists": lambda c: c["Point"](1).tags is c["Point"](1).tags,
    "mixed": lambda c: repr(c["Point"](1, tags=["t"])),
    "checked": lambda c: c["Point"](-1),
    "missing": lambda c: c["Point"](),
    "too many": lambda c: c["Point"](1, 2, [], 4),
    "unknown": lambda c: c["Point"](1, z=4),
    "twice": lambda c: c["Point"](1, x=4),
    "keyword only": lambda c: c["Named"](1, 2, [], "n"),
    "keyword missing": lambda c: c["Named"](1),
    "derived": lambda c: repr(c["Named"](1, name="n")),
    "derived is checked": lambda c: c["Named"](-1, name="n"),
    "equal": lambda c: c["Point"](1, 2, ["a"]) == c["Point"](1, 2, ["b"]),
    "unequal": lambda c: c["Point"](1, 2) == c["Point"](1, 3),
    "other class": lambda c: c["Point"](1, 2) == c["Named"](1, 2, name="n"),
    "other type": lambda c: c["Point"](1, 2) == (1, 2),
    "hash": lambda c: hash(c["Point"](1, 2, ["a"])) == hash(c["Point"](1, 2)),
    "in a set": lambda c: len({c["Named"](1, name="n"), c["Named"](1, name="n")}),
    "unhashable": lambda c: hash(c["Open"](1)),
    "identity": lambda c: c["Same"](1) == c["Same"](1),
    "identity is hashable": lambda c: isinstance(hash(c["Same"](1)), int),
    "open": lambda c: repr(c["Open"]([1])),
    "open changes": lambda c: setattr(c["Open"](1), "a", 2),
    "late is no argument": lambda c: c["Open"](1, b=2),
    "frozen": lambda c: setattr(c["Point"](1), "x", 2),
    "frozen in derived": lambda c: setattr(c["Named"](1, name="n"), "name", "m"),
    "frozen deletion": lambda c: delattr(c["Point"](1), "x"),
    "no other attribute": lambda c: setattr(c["Same"](1), "z", 2),
    "no dict": lambda c: hasattr(c["Point"](1), "__dict__"),
    "class variable": lambda c: c["Point"](1).count,
    "own methods": lambda c: (repr(c["Own"](1)), c["Own"](1) == c["Own"](2), hash(c["Own"](1))),
    "no fields": lambda c: (repr(c["Nothing"]()), c["Nothing"]() == c["Nothing"]()),
    "match": lambda c: [cls.__match_args__ for cls in c.values()],
    "doc": lambda c: c["Point"].__doc__,
    "names": lambda c: [(cls.__qualname__, cls.__module__) for cls in c.values()],
    "slots": lambda c: [cls.__slots__ for cls in c.values()],
    "asdict": lambda c: dataclasses.asdict(c["Named"](1, name="n")),
    "nested asdict": lambda c: dataclasses.asdict(c["Open"](c["Point"](1))),
    "fields": lambda c: [(f.name, f.type, f.init, f.repr) for f in dataclasses.fields(c["Named"])],
    "is one": lambda c: dataclasses.is_dataclass(c["Point"]),
    "signature": lambda c: [str(inspect.signature(cls)) for cls in (c["Point"], c["Named"])],
    "their replace": lambda c: repr(dataclasses.replace(c["Named"](1, name="n"), y=9)),
    "checked anew": lambda c: lean_dataclass.replace(c["Point"](1), x=-1),
    "replace": lambda c: repr(lean_dataclass.replace(c["Named"](1, name="n"), y=9)),
    "late is not replaced": lambda c: repr(lean_dataclass.replace(c["Open"](1), a=3)),
    "copy": lambda c: repr(copy.copy(c["Named"](1, name="n"))),
    "deep copy": lambda c: repr(copy.deepcopy(c["Open"](c["Point"](1, 2, ["t"])))),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_both_kinds_do_the_same(act: Any) -> None:
    theirs, ours = (told(lambda kind=kind: act(made(kind))) for kind in KINDS)
    assert ours == theirs


def test_a_shared_default_that_could_change_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Shared\.a: \[\] needs default_factory"):

        @lean_dataclass.dataclass(slots=True)
        class Shared:
            a: list[int] = []  # noqa: RUF012 - what is refused


def test_what_is_not_taken_is_refused() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        lean_dataclass.dataclass()
    with pytest.raises(TypeError, match="order"):
        lean_dataclass.dataclass(slots=True, order=True)


def test_a_base_of_the_standard_library_is_refused() -> None:
    @dataclasses.dataclass
    class Base:
        a: int

    with pytest.raises(TypeError, match="not a lean dataclass"):

        @lean_dataclass.dataclass(slots=True)
        class Derived(Base):
            b: int
