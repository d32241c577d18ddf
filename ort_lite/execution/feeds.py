"""A user's feed checked against the model's inputs, with ONNX Runtime's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ctx_formats.onnx_model import DataType, SparseTensorType, TensorType
from ort_lite.model.tensor_values import numpy_dtype, to_numpy, type_string
from ort_lite.model.type_text import type_text
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, Tensor, ValueInfo
    from ort_lite.ep.interface import Value
    from ort_lite.model.graph import Graph


class BoundFeed(dict[str, Any]):
    """Values by the names of inputs, which a binding feeds to one run after another.

    `Feeds` checks a tensor of a device once: its shape, type and order never change. Arrays are
    checked in every run, because a program may give them another shape meanwhile.
    """

    __slots__ = ("_accepted", "_checker")

    def __init__(self) -> None:
        """Nothing is bound."""
        super().__init__()
        self._accepted: set[str] = set()
        self._checker: Feeds | None = None

    def bind(self, name: str, value: Value) -> None:
        """Feed another value from now on."""
        self._accepted.discard(name)
        self[name] = value

    def unbind_all(self) -> None:
        """Feed nothing from now on."""
        self._accepted.clear()
        self.clear()

    def find_accepted(self, checker: Feeds) -> set[str]:
        """Names of the tensors that `checker` has accepted; it adds those that it accepts now."""
        if self._checker is not checker:  # the session has other EPs since then
            self._accepted.clear()
            self._checker = checker
        return self._accepted


class Feeds:
    """The inputs of one session, prepared so that checking a correct feed is cheap."""

    def __init__(self, inputs: Sequence[ValueInfo], defaults: Mapping[str, Value]) -> None:
        """`defaults` are the values of overridable initializers, which come after `inputs`."""
        self._required = tuple(info.name for info in inputs if info.name not in defaults)
        self._known = frozenset(info.name for info in inputs)
        self._defaults = dict(defaults)
        self._checks = tuple(_InputCheck(info) for info in inputs)

    @classmethod
    def of(cls, graph: Graph, weights: Mapping[str, Tensor]) -> Self:
        """The feed of a graph whose overridable initializers are among `weights`."""
        defaults = {info.name: to_numpy(weights[info.name]) for info in graph.overridable}
        return cls((*graph.inputs, *graph.overridable), defaults)

    def order_feed(self, feed: Mapping[str, Any]) -> list[Value]:
        """The values in the order of the inputs, each of the declared type and contiguous.

        Raises:
            ValueError: A required input is missing (onnxruntime's class and text).
            InvalidArgument: An unknown name, a wrong type, rank or dimension.
            TypeError: `feed` is not a mapping.
        """
        if type(feed) is not dict and not isinstance(feed, Mapping):
            raise TypeError(f"input_feed must be a mapping of names to values, not {feed!r:.80}")
        if len(feed) != len(self._checks):
            self._complain(feed)
        if type(feed) is BoundFeed:
            return self._order_bound(feed)
        values = []
        for check in self._checks:
            value = feed.get(check.name)
            if value is None:
                value = self._absent_value(check, feed)
            values.append(check.accept(value))
        return values

    def _order_bound(self, feed: BoundFeed) -> list[Value]:
        """As `order_feed`, without a look at the tensors that it accepted before."""
        accepted = feed.find_accepted(self)
        values = []
        for check in self._checks:
            value = feed.get(check.name)
            if check.name not in accepted:
                if value is None:
                    value = self._absent_value(check, feed)
                value = check.accept(value)
                if hasattr(value, "copy_from"):
                    accepted.add(check.name)
            values.append(value)
        return values

    def require_names(self, feed: Mapping[str, Any]) -> None:
        """Check that no required input is missing.

        Raises:
            ValueError: One is; onnxruntime's class and text.
        """
        if not all(name in feed for name in self._required):
            self._complain(feed)

    def _absent_value(self, check: _InputCheck, feed: Mapping[str, Any]) -> Value:
        if check.name in self._defaults:
            return self._defaults[check.name]
        if check.name not in feed:
            self._complain(feed)
        if check.optional:
            return None
        raise InvalidArgument(f"Invalid input: {check.name} is None")

    def _complain(self, feed: Mapping[str, Any]) -> None:
        unknown = [name for name in feed if name not in self._known]
        missing = [name for name in self._required if name not in feed]
        if missing:
            raise ValueError(
                f"Required inputs ({missing}) are missing from input feed ({list(feed)})."
            )
        if unknown:
            raise InvalidArgument(f"Invalid input name: {unknown[0]}")


def is_on_device(values: Sequence[Value]) -> bool:
    """Whether one of the values is a tensor in the memory of a device."""
    for value in values:  # noqa: SIM110 - `any` takes five times as long for one value
        if type(value) is not np.ndarray and hasattr(value, "copy_from"):
            return True
    return False


class _InputCheck:
    """One input: its dtype and static dimensions."""

    def __init__(self, info: ValueInfo) -> None:
        self.name = info.name
        self.optional = type_text(info.type).startswith("optional(")
        self._expected = type_text(info.type)
        self._tensor = isinstance(info.type, TensorType)
        self._sparse = info.type if isinstance(info.type, SparseTensorType) else None
        self._dtype: np.dtype[Any] | None = None
        self._strings = False
        self._shape: tuple[Dim, ...] | None = None
        if isinstance(info.type, TensorType):
            self._strings = info.type.elem_type == DataType.STRING
            self._dtype = None if self._strings else numpy_dtype(info.type.elem_type)
            self._shape = info.type.shape
        self._fixed_dims = known_sizes(self._shape)
        exact = self._shape is not None and len(self._fixed_dims) == len(self._shape)
        self._exact = self._shape if exact else None  # nothing else is asked of most inputs

    def accept(self, value: Any) -> Value:  # noqa: ANN401 - whatever a user feeds
        """`value` as the partitions take it: an array of the declared type, C-contiguous."""
        if (
            type(value) is np.ndarray
            and value.shape == self._exact
            and value.dtype is self._dtype
            and value.flags.c_contiguous
        ):
            return value
        if not self._tensor:
            return self._array_of(value)
        if type(value) is not np.ndarray:
            value = self._as_array(value)
        if value.dtype != self._dtype:
            value = self._convert(value)
        if self._shape is not None and value.ndim != len(self._shape):
            raise InvalidArgument(
                f"Invalid rank for input: {self.name} Got: {value.ndim} Expected: "
                f"{len(self._shape)} Please fix either the inputs/outputs or the model."
            )
        for axis, size in self._fixed_dims:
            if value.shape[axis] != size:
                raise InvalidArgument(self._wrong_dims(value))
        if type(value) is not np.ndarray or value.flags.c_contiguous:  # a device's are contiguous
            return value
        return np.ascontiguousarray(value)

    def _array_of(self, value: Any) -> Value:  # noqa: ANN401 - see accept
        """A sequence, map, optional or sparse tensor, out of an OrtValue perhaps."""
        held = getattr(value, "held_value", None)
        if callable(held):
            value = held()
        if self._sparse is not None:
            self._check_sparse(value, self._sparse)
        return value

    def _check_sparse(self, value: Value, declared: SparseTensorType) -> None:
        actual = value.data_type() if hasattr(value, "data_type") else type(value).__name__
        if actual != self._expected:
            raise InvalidArgument(
                f"Unexpected input data type for '{self.name}'. Actual: ({actual}) , "
                f"expected: ({self._expected}); see OrtValue.ort_value_from_sparse_tensor"
            )
        shape = value.dense_shape()
        dims = shape if declared.shape is None else declared.shape
        if len(dims) != len(shape) or any(shape[axis] != dim for axis, dim in known_sizes(dims)):
            raise InvalidArgument(
                f"Got invalid dimensions for input: {self.name} Got: {shape} Expected: "
                f"{list(dims)} Please fix either the inputs/outputs or the model."
            )

    def _as_array(self, value: Any) -> Any:  # noqa: ANN401 - see accept
        """Lists and scalars become arrays of the declared type, as onnxruntime allows.

        A tensor on a device stays there.
        """
        held = getattr(value, "held_value", None)
        tensor = held() if callable(held) else value
        if hasattr(tensor, "copy_from"):
            return tensor
        as_numpy = getattr(value, "numpy", None)
        if callable(as_numpy):
            return np.asarray(as_numpy())
        if isinstance(value, np.ndarray | np.generic):
            return np.asarray(value)
        if isinstance(value, list | tuple | int | float | bool | str):
            try:
                return np.asarray(value, dtype=object if self._strings else self._dtype)
            except (ValueError, TypeError, OverflowError) as exc:
                raise InvalidArgument(
                    f"Invalid input: {self.name} cannot be made {self._expected}: {exc}"
                ) from exc
        raise InvalidArgument(
            f"Unexpected input data type for '{self.name}'. Actual: ({type(value).__name__}) , "
            f"expected: ({self._expected})"
        )

    def _convert(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self._strings and value.dtype.kind in "OUSVT":
            return _texts(value, self.name)
        order = self._dtype is not None and value.dtype.newbyteorder("=") == self._dtype
        if order and hasattr(value, "astype"):  # a tensor on a device has the machine's order
            return value.astype(self._dtype)
        raise InvalidArgument(
            f"Unexpected input data type. Actual: ({type_string(value.dtype)}) , expected: "
            f"({self._expected})"
        )

    def _wrong_dims(self, value: np.ndarray[Any, Any]) -> str:
        wrong = "\n".join(
            f" index: {axis} Got: {value.shape[axis]} Expected: {size}"
            for axis, size in self._fixed_dims
            if value.shape[axis] != size
        )
        return (
            f"Got invalid dimensions for input: {self.name} for the following indices\n{wrong}\n"
            " Please fix either the inputs/outputs or the model."
        )


def _texts(value: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Elements as str: bytes are UTF-8, as are records of them; other objects as `str` has them."""
    if value.dtype.kind == "V":
        items = [item.tobytes() for item in np.ascontiguousarray(value).reshape(-1)]
    else:
        items = value.reshape(-1).tolist()
    if value.dtype.kind in "SV":
        try:
            items = [item.decode() for item in items]
        except UnicodeDecodeError as exc:
            raise InvalidArgument(f"Invalid input: {name} is not UTF-8: {exc}") from exc
    elif value.dtype == object:
        if all(type(item) is str for item in items):
            return value
        items = [item if isinstance(item, str) else str(item) for item in items]
    texts = np.empty(len(items), object)
    texts[:] = items
    return texts.reshape(value.shape)


def known_sizes(shape: Sequence[Dim] | None) -> tuple[tuple[int, int], ...]:
    """Axes with a size; a negative size is some exporters' way to say "unknown"."""
    return tuple(
        (axis, dim) for axis, dim in enumerate(shape or ()) if isinstance(dim, int) and dim >= 0
    )
