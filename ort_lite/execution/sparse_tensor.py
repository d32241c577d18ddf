"""SparseTensor: onnxruntime's public class around the one of its binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_lite.execution import sparse_values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    import numpy as np

    from ort_lite.providers.memory_info import OrtDevice

    Array = np.ndarray[Any, np.dtype[Any]]


class SparseTensor:
    """Elements that are not zero, and their places, in host memory.

    `OrtValue.ort_value_from_sparse_tensor` makes a value of it for a run.
    """

    def __init__(self, sparse_tensor: sparse_values.SparseTensor) -> None:
        """One around what `OrtValue.as_sparse_tensor` or a run gave.

        Raises:
            ValueError: It is something else.
        """
        if not isinstance(sparse_tensor, sparse_values.SparseTensor):
            raise ValueError(  # noqa: TRY004 - onnxruntime's class
                "`Provided object` needs to be of type "
                "`onnxruntime.capi.onnxruntime_pybind11_state.SparseTensor`"
            )
        self._tensor = sparse_tensor

    def _get_c_tensor(self) -> sparse_values.SparseTensor:
        return self._tensor

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, coo_indices: Array, ort_device: OrtDevice
    ) -> SparseTensor:
        """One in coordinate form; arguments and errors as in `sparse_values`."""
        return cls(
            sparse_values.SparseTensor.sparse_coo_from_numpy(
                dense_shape, values, coo_indices, ort_device
            )
        )

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int],
        values: Array,
        inner_indices: Array,
        outer_indices: Array,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        """A matrix by rows; arguments and errors as in `sparse_values`."""
        return cls(
            sparse_values.SparseTensor.sparse_csr_from_numpy(
                dense_shape, values, inner_indices, outer_indices, ort_device
            )
        )

    def values(self) -> Array:
        """The elements that are stored, as an array."""
        return self._tensor.values()

    def as_coo_view(self) -> sparse_values.SparseCooView:
        """Places of the elements; BindingError where the tensor is in another form."""
        return self._tensor.get_coo_data()

    def as_csrc_view(self) -> sparse_values.SparseCsrView:
        """Places of the elements, by rows; BindingError where the tensor is in another form."""
        return self._tensor.get_csrc_data()

    def as_blocksparse_view(self) -> sparse_values.SparseBlockSparseView:
        """Places of the blocks; BindingError where the tensor is in another form."""
        return self._tensor.get_blocksparse_data()

    def to_cuda(self, ort_device: OrtDevice) -> NoReturn:
        """BindingError: nothing here puts values into a device's memory."""
        self._tensor.to_cuda(ort_device)

    def format(self) -> sparse_values.OrtSparseFormat:
        """In which of the forms the places are."""
        return self._tensor.format

    def dense_shape(self) -> list[int]:
        """Sizes with the zeros."""
        return self._tensor.dense_shape()

    def data_type(self) -> str:
        """`sparse_tensor(float)` and the like."""
        return self._tensor.data_type()

    def device_name(self) -> str:
        """The place of the memory."""
        return self._tensor.device_name()
