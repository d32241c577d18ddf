"""Dataclasses that are quick to define: the standard library's, without generated source code.

`dataclasses.dataclass` compiles five functions for each class, about a millisecond, whether or not
anybody makes an instance; a reload defines sixty classes, which took longer than OpenVINO's
own start (docs/adr/0014-lean-dataclasses.md). Here all classes share functions that go by a table.
What is rarely asked for (`fields`, `asdict`, `inspect.signature`) the standard library makes then,
from a twin of the class.

A type checker takes this for the standard library's. It takes `frozen`, `eq` and `kw_only`, with
`slots` always; classes with anything else stay with the standard library.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["dataclass", "field", "field_names", "replace"]

_MISSING: Any = object()
_TABLE = "__lean_table__"
_STANDARD = "__dataclass_fields__"


class _Field:
    """One field: what `field` was given, and what its class adds."""

    __slots__ = ("compare", "default", "factory", "init", "kw_only", "name", "repr", "store")

    name: str
    kw_only: bool
    store: Callable[[object, object], None]

    def __init__(
        self,
        *,
        default: object = _MISSING,
        default_factory: Callable[[], object] | None = None,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - the standard library's name
        compare: bool = True,
    ) -> None:
        self.default = default
        self.factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare

    def store_default(self, instance: object) -> bool:
        """Whether there is one."""
        if self.factory is not None:
            self.store(instance, self.factory())
        elif self.default is not _MISSING:
            self.store(instance, self.default)
        else:
            return False
        return True


class _Table:
    """How instances of one class are made, compared and shown; worked out with the first of them.

    Attributes:
        key: Gives what instances are compared by.
        late: Fields that no argument sets.
        plain: How many arguments set everything by position; -1 where there is more to do.
        settable: The others, as many as `positional` first.
        setters: What sets each of `settable`.
        stores: The same by name.
        post: Whether there is a __post_init__.
        twin: See `_twin_of`.
    """

    __slots__ = (
        *("fields", "key", "late", "plain", "positional", "post", "settable", "setters"),
        *("stores", "twin"),
    )

    key: Callable[[Any], object]
    late: tuple[_Field, ...]
    plain: int
    settable: tuple[_Field, ...]
    setters: tuple[Callable[[object, object], None], ...]
    stores: dict[str, Callable[[object, object], None]]

    def __init__(self, fields: tuple[_Field, ...], *, post: bool) -> None:
        self.fields = fields
        self.positional = tuple([one for one in fields if one.init and not one.kw_only])
        self.post = post
        self.twin: type | None = None

    def __getattr__(self, name: str) -> object:
        """Compute a missing attribute on first use and store it on the instance."""
        if name not in _Table.__slots__:
            raise AttributeError(name)
        compared = [one.name for one in self.fields if one.compare]
        self.key = attrgetter(*compared) if compared else type
        self.late = tuple([one for one in self.fields if not one.init])
        keywords = [one for one in self.fields if one.init and one.kw_only]
        self.settable = (*self.positional, *keywords)
        self.setters = tuple([one.store for one in self.settable])
        self.stores = {one.name: one.store for one in self.settable}
        self.plain = -1 if keywords or self.late or self.post else len(self.positional)
        return getattr(self, name)


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    if not slots:
        raise TypeError("a lean dataclass has slots=True; else take the standard library's")

    def make_class(original: type) -> type:
        own = _own_fields(original, kw_only=kw_only)
        fields = {one.name: one for one in _inherited_fields(original)} | own
        table = _Table(tuple(fields.values()), post=hasattr(original, "__post_init__"))
        cls = _class_with_slots(original, own, _members(table, frozen=frozen, eq=eq))
        written = cls.__dict__
        for name, one in own.items():
            one.store = written[name].__set__
        return cls

    return make_class


def _members(table: _Table, *, frozen: bool, eq: bool) -> dict[str, object]:
    members: dict[str, object] = {
        _TABLE: table,
        _STANDARD: _FIELDS_OF_TWIN,
        "__init__": _init,
        "__repr__": _repr,
        "__match_args__": tuple([one.name for one in table.positional]),
        "__signature__": _SIGNATURE_OF_TWIN,
    }
    if eq:
        members["__eq__"] = _eq
        members["__hash__"] = _hash if frozen else None
    if frozen:
        members |= _FROZEN
    return members


def _own_fields(original: type, *, kw_only: bool) -> dict[str, _Field]:
    """The fields that the class itself annotates, in order.

    Raises:
        TypeError: Annotations are not text: `from __future__ import annotations` is missing.
        ValueError: A default that instances would share and could change.
    """
    fields = {}
    for name, annotation in _annotations(original).items():
        if not isinstance(annotation, str):
            raise TypeError(f"{original.__qualname__} needs from __future__ import annotations")
        if annotation.startswith("ClassVar"):
            continue
        default = original.__dict__.get(name, _MISSING)
        one = default if isinstance(default, _Field) else _Field(default=default)
        if type(one.default).__hash__ is None:
            raise ValueError(f"{original.__qualname__}.{name}: {default!r} needs default_factory")
        one.name, one.kw_only = name, kw_only
        fields[name] = one
    return fields


def _annotations(cls: type) -> dict[str, str]:
    annotations: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - inspect is slow to import
    return annotations


def _inherited_fields(original: type) -> tuple[_Field, ...]:
    """The fields of the base.

    Raises:
        TypeError: It is a dataclass of the standard library.
    """
    table: _Table | None = getattr(original, _TABLE, None)
    if table is not None:
        return table.fields
    if hasattr(original, _STANDARD):
        raise TypeError(f"the base of {original.__qualname__} is not a lean dataclass")
    return ()


def _class_with_slots(
    original: type, own: Mapping[str, _Field], members: dict[str, object]
) -> type:
    """The class made anew with slots, as a class that is there cannot get any.

    What is written in it wins over `members`, but for the None that a class with __eq__ has for
    __hash__.
    """
    content = members
    for name, value in original.__dict__.items():
        if name not in own and (value is not None or name not in members):
            content[name] = value
    content.pop("__dict__", None)
    content.pop("__weakref__", None)
    content["__slots__"] = tuple(own)
    cls = type(original)(original.__name__, original.__bases__, content)
    cls.__qualname__ = original.__qualname__
    return cls


def _init(self: Any, /, *args: object, **kwargs: object) -> None:  # noqa: ANN401 - of any class
    table: _Table = self.__lean_table__
    if kwargs or len(args) != table.plain:
        _init_by_names(self, table, args, kwargs)
        return
    for store, value in zip(table.setters, args, strict=True):
        store(self, value)


def _init_by_names(
    self: Any,  # noqa: ANN401 - see _init
    table: _Table,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    if args:
        _take(self, args, kwargs)
    stores = table.stores
    for name, value in kwargs.items():
        store = stores.get(name)
        if store is None:
            raise _argument_error(self, f"got an unexpected keyword argument '{name}'")
        store(self, value)
    if len(args) + len(kwargs) < len(stores):
        for one in table.settable[len(args) :]:
            if one.name not in kwargs and not one.store_default(self):
                raise _argument_error(self, f"missing a required argument: '{one.name}'")
    for one in table.late:
        one.store_default(self)
    if table.post:
        self.__post_init__()


def _take(self: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> None:  # noqa: ANN401 - as above
    positional = self.__lean_table__.positional
    if len(args) > len(positional):
        raise _argument_error(
            self, f"takes {len(positional)} positional arguments, not {len(args)}"
        )
    for one, value in zip(positional, args, strict=False):
        if one.name in kwargs:
            raise _argument_error(self, f"got multiple values for argument '{one.name}'")
        one.store(self, value)


def _argument_error(self: object, what: str) -> TypeError:
    return TypeError(f"{type(self).__qualname__}.__init__() {what}")


def _repr(self: Any) -> str:  # noqa: ANN401 - see _init
    shown = (one.name for one in self.__lean_table__.fields if one.repr)
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({inside})"


def _eq(self: Any, other: Any) -> Any:  # noqa: ANN401 - see _init
    if type(other) is not type(self):
        return NotImplemented
    key = self.__lean_table__.key
    return key(self) == key(other)


def _hash(self: Any) -> int:  # noqa: ANN401 - see _init
    return hash(self.__lean_table__.key(self))


def _refuse_set(self: object, name: str, value: object) -> None:  # noqa: ARG001 - __setattr__
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - lazy: rare

    raise FrozenInstanceError(f"cannot assign to field '{name}'")


def _refuse_delete(self: object, name: str) -> None:  # noqa: ARG001 - __delattr__
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - lazy: rare

    raise FrozenInstanceError(f"cannot delete field '{name}'")


def _getstate(self: Any) -> list[object]:  # noqa: ANN401 - see _init
    return [getattr(self, one.name) for one in self.__lean_table__.fields]


def _setstate(self: Any, state: list[object]) -> None:  # noqa: ANN401 - see _init
    for one, value in zip(self.__lean_table__.fields, state, strict=True):
        one.store(self, value)


class _OfTwin:
    """An attribute that the standard library would have set, made when it is asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: Any) -> object:  # noqa: ANN401 - see _init
        table: _Table = owner.__lean_table__
        if table.twin is None:
            table.twin = _twin_of(owner, table)
        return getattr(table.twin, self._name)


_FIELDS_OF_TWIN, _SIGNATURE_OF_TWIN = _OfTwin(_STANDARD), _OfTwin("__signature__")
_FROZEN = {
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}


def _twin_of(cls: type, table: _Table) -> type:
    """A class by the standard library's `dataclass` with the same fields."""
    import dataclasses  # noqa: PLC0415 - lazy: rare
    import inspect  # noqa: PLC0415 - lazy: reload

    annotations: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        annotations |= _annotations(base)
    specs = []
    for one in table.fields:
        options: dict[str, Any] = {"init": one.init, "repr": one.repr, "compare": one.compare}
        if one.factory is not None:
            options["default_factory"] = one.factory
        elif one.default is not _MISSING:
            options["default"] = one.default
        spec: dataclasses.Field[object] = dataclasses.field(**options, kw_only=one.kw_only)
        specs.append((one.name, annotations[one.name], spec))
    twin: Any = dataclasses.make_dataclass(cls.__name__, specs)
    twin.__signature__ = inspect.signature(twin)
    return twin  # type: ignore[no-any-return] # a class


def field_names(cls: Any) -> tuple[str, ...]:  # noqa: ANN401 - see _init
    """Names of the fields of a class made here, in order."""
    return tuple(one.name for one in cls.__lean_table__.fields)


def _replace(value: Any, /, **changes: object) -> Any:  # noqa: ANN401 - see _init
    """`dataclasses.replace`, for classes of either kind."""
    table: _Table | None = getattr(type(value), _TABLE, None)
    if table is None:
        from dataclasses import replace  # noqa: PLC0415 - lazy: rare

        return replace(value, **changes)
    kept = {name: getattr(value, name) for name in table.stores if name not in changes}
    return type(value)(**kept, **changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
