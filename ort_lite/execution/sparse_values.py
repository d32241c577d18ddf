"""SparseTensor of onnxruntime's binding: elements and their places, as runs take and give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ort_lite.model.tensor_values import to_numpy, type_string
from ort_lite.named_enum import NamedIntEnum
from ort_lite.providers.memory_info import OrtDevice, require_host
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import SparseTensor as SparseConstant

    Array = np.ndarray[Any, np.dtype[Any]]


class OrtSparseFormat(NamedIntEnum):
    """OrtSparseFormat of onnxruntime_c_api.h."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseCooView:
    """Places of the elements: coordinates [n, rank], or offsets [n] in the flat dense tensor."""

    def __init__(self, indices: Array) -> None:
        """The view of one tensor."""
        self._indices = indices

    def indices(self) -> Array:
        """int64 [n, rank] or [n]."""
        return _read_only(self._indices)


class SparseCsrView:
    """Places of the elements of a matrix, row by row."""

    def __init__(self, inner: Array, outer: Array) -> None:
        """The view of one tensor."""
        self._inner, self._outer = inner, outer

    def inner(self) -> Array:
        """Column of each element, int64 [n]."""
        return _read_only(self._inner)

    def outer(self) -> Array:
        """Of each row, the number of its first element; int64 [rows + 1]."""
        return _read_only(self._outer)


class SparseBlockSparseView:
    """Indices of the blocks of a block-sparse tensor."""

    def __init__(self, indices: Array) -> None:
        """The view of one tensor."""
        self._indices = indices

    def indices(self) -> Array:
        """Coordinates of each block, in blocks; int32 [2, blocks]."""
        return _read_only(self._indices)


def _read_only(array: Array) -> Array:
    """The same memory, which others hold, too; onnxruntime lends it so."""
    lent = array.view()
    lent.flags.writeable = False
    return lent


class SparseTensor:
    """Elements that are not zero, and their places, in host memory.

    The arrays are the caller's: neither copied nor compared with the dense shape until a kernel
    reads them.
    """

    def __init__(
        self, dense_shape: Sequence[int], values: Array, kind: OrtSparseFormat, *places: Array
    ) -> None:
        """Use a class method instead; the shapes of `places` must fit."""
        self._shape = tuple(int(dim) for dim in dense_shape)
        self._values, self._kind, self._places = values, kind, places

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, coo_indices: Array, device: OrtDevice, /
    ) -> SparseTensor:
        """One in coordinate form.

        Args:
            dense_shape: Of the tensor with its zeros.
            values: Elements [n].
            coo_indices: [n] offsets in the flat dense tensor, or [n, 2] rows and columns.
            device: The host's memory.

        Raises:
            BindingError: `values` has another rank, or the number of indices is neither n nor 2n.
        """
        values = _check_values(values, device)
        if values.ndim != 1:
            raise BindingError(
                f"Expecting values 1-D numpy values array for COO, got {values.ndim}-D"
            )
        indices, count = _integers(coo_indices, np.int64), len(values)
        if indices.size not in (count, 2 * count):
            raise BindingError(
                f"Index size: {indices.size} must be equal to or twice the values size: {count}"
            )
        if indices.size != count:
            indices = indices.reshape(count, 2)
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_COO, indices)

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int],
        values: Array,
        inner_indices: Array,
        outer_indices: Array,
        device: OrtDevice,
        /,
    ) -> SparseTensor:
        """A matrix by rows.

        Args:
            dense_shape: [rows, columns].
            values: Elements [n], row by row.
            inner_indices: [n] columns.
            outer_indices: [rows + 1]: where each row begins in `values`, and n.
            device: The host's memory.

        Raises:
            BindingError: A shape that does not fit, or no matrix.
        """
        values = _check_values(values, device)
        if values.ndim != 1 or len(dense_shape) != 2:
            raise BindingError(
                f"CSR expects values [n] of a matrix, got {list(values.shape)} of "
                f"{list(dense_shape)}"
            )
        inner, outer = _integers(inner_indices, np.int64), _integers(outer_indices, np.int64)
        if inner.shape != values.shape or outer.shape not in ((dense_shape[0] + 1,), (0,)):
            raise BindingError(
                f"CSR of {len(values)} values and {dense_shape[0]} rows expects as many inner "
                f"indices and one outer index more than rows, got {list(inner.shape)} and "
                f"{list(outer.shape)}"
            )
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_CSRC, inner, outer)

    @classmethod
    def blocksparse_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, indices: Array, device: OrtDevice, /
    ) -> SparseTensor:
        """One of dense blocks.

        Args:
            dense_shape: Of the tensor with its zeros.
            values: [blocks, ...]: the elements of each block.
            indices: int32 [2, blocks]: coordinates, in blocks.
            device: The host's memory.

        Raises:
            BindingError: A shape that does not fit.
        """
        values, places = _check_values(values, device), _integers(indices, np.int32)
        if values.ndim < 3 or places.ndim != 2 or places.shape != (2, values.shape[0]):
            raise BindingError(
                "block sparse tensors expect values [blocks, rows, columns] and indices "
                f"[2, blocks], got {list(values.shape)} and {list(places.shape)}"
            )
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, places)

    @classmethod
    def of_constant(cls, constant: SparseConstant) -> SparseTensor:
        """Convert a SparseTensorProto, whose indices are [n] or [n, rank]."""
        values, indices = to_numpy(constant.values), to_numpy(constant.indices)
        return cls(constant.dims, values, OrtSparseFormat.ORT_SPARSE_COO, indices)

    @property
    def format(self) -> OrtSparseFormat:
        """In which of the forms the places are."""
        return self._kind

    def values(self) -> Array:
        """The elements, in the memory that was given; read-only."""
        return _read_only(self._values)

    def dense_shape(self) -> list[int]:
        """Sizes with the zeros."""
        return list(self._shape)

    def data_type(self) -> str:
        """`sparse_tensor(float)` and the like."""
        return f"sparse_{type_string(self._values.dtype)}"

    def device_name(self) -> str:
        """The place of the memory."""
        return "cpu"

    def get_coo_data(self) -> SparseCooView:
        """Places of the elements.

        Raises:
            BindingError: The tensor is in another form.
        """
        return SparseCooView(*self._of(OrtSparseFormat.ORT_SPARSE_COO, "COO"))

    def get_csrc_data(self) -> SparseCsrView:
        """Places of the elements, by rows.

        Raises:
            BindingError: The tensor is in another form.
        """
        return SparseCsrView(*self._of(OrtSparseFormat.ORT_SPARSE_CSRC, "CSR(C)"))

    def get_blocksparse_data(self) -> SparseBlockSparseView:
        """Places of the blocks.

        Raises:
            BindingError: The tensor is in another form.
        """
        return SparseBlockSparseView(
            *self._of(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, "BlockSparse")
        )

    def to_cuda(self, device: OrtDevice, /) -> NoReturn:  # noqa: ARG002 - onnxruntime's signature
        """Nothing here puts values into a device's memory.

        Raises:
            BindingError: Always.
        """
        raise BindingError("Cuda is not available in this build: values live in host memory")

    def _of(self, kind: OrtSparseFormat, name: str) -> tuple[Array, ...]:
        if self._kind is not kind:
            raise BindingError(f"This sparse tensor does not contain {name} format")
        return self._places

    def _get_c_tensor(self) -> SparseTensor:
        return self


def _check_values(values: Array, device: OrtDevice) -> Array:
    require_host(device, "sparse tensors are")
    values = np.asarray(values)
    if values.dtype == object:
        raise BindingError(f"Unsupported values data type: {values.dtype}")
    return np.ascontiguousarray(values)


def _integers(indices: Array, dtype: type[np.signedinteger[Any]]) -> Array:
    return np.ascontiguousarray(indices, dtype)
