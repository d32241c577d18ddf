"""Numbers of threads for all sessions of the process that want none of their own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.status import BindingError, Fail

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions


@dataclass(frozen=True, slots=True)
class _Sizes:
    intra_op: int
    inter_op: int


_lock = threading.Lock()
_shared: list[_Sizes] = []


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Give all sessions of the process these numbers of threads.

    From then on every session must have `use_per_session_threads` off, and its own numbers do
    not count. Threads themselves are not shared: each session has as many.

    Args:
        intra_op_num_threads: As in SessionOptions; 0 leaves it to the execution provider.
        inter_op_num_threads: As in SessionOptions; 0 is one for each core.

    Raises:
        Fail: They were set before.
        BindingError: A negative number.
    """
    if min(intra_op_num_threads, inter_op_num_threads) < 0:
        raise BindingError(
            f"numbers of threads are {intra_op_num_threads} and {inter_op_num_threads}, expected "
            "0 or more"
        )
    with _lock:
        if _shared:
            raise Fail("Global thread pools have already been created, cannot replace them")
        _shared.append(_Sizes(intra_op_num_threads, inter_op_num_threads))


def with_global_threads(options: SessionOptions) -> SessionOptions:
    """`options` with the numbers of the process, which are set.

    Raises:
        BindingError: Numbers of the process are set and the session wants its own, or the
            session does not and none are; a RuntimeError, as in onnxruntime.
    """
    with _lock:
        sizes = _shared[0] if _shared else None
    if options.use_per_session_threads:
        if sizes is not None:
            raise BindingError(
                "use_per_session_threads must be false when using a global thread pool"
            )
        return options
    if sizes is None:
        raise BindingError(
            "When the session is not configured to use per session threadpools, "
            "set_global_thread_pool_sizes must be called before"
        )
    return replace(
        options, intra_op_num_threads=sizes.intra_op, inter_op_num_threads=sizes.inter_op
    )
