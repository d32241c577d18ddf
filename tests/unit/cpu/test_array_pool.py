from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ml_dtypes import bfloat16

from eps.cpu.array_pool import LEAST_BYTES, MOST_KEPT_BYTES, ArrayPool

LARGE = (4, LEAST_BYTES)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_once_the_array_is_gone() -> None:
    pool = ArrayPool()
    first = pool.empty(LARGE, np.float32)
    where = address(first)
    del first
    assert address(pool.empty(LARGE, np.float32)) == where


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:],
        lambda x: x.T,
        lambda x: x.reshape(-1),
        lambda x: x.view(np.int32),
        lambda x: memoryview(x),
        lambda x: np.broadcast_to(x[:, :1], LARGE),
    ],
    ids=["slice", "transpose", "reshape", "view", "memoryview", "broadcast"],
)
def test_memory_stays_with_any_view_of_the_array(view) -> None:
    pool = ArrayPool()
    first = pool.empty(LARGE, np.float32)
    where = address(first)
    kept = view(first)
    del first
    assert address(pool.empty(LARGE, np.float32)) != where
    del kept


def test_arrays_are_aligned_and_as_asked_for() -> None:
    pool = ArrayPool()
    for dtype in (np.float32, np.int8, np.float64, bfloat16):
        made = pool.empty(LARGE, dtype)
        assert made.shape == LARGE
        assert made.dtype == dtype
        assert made.flags.writeable
        assert address(made) % 64 == 0


def test_small_arrays_and_texts_own_their_memory() -> None:
    pool = ArrayPool()
    assert pool.empty((3, 0), np.float32).shape == (3, 0)
    assert pool.empty((8,), np.float32).flags.owndata
    assert pool.empty(LARGE, object).flags.owndata


def test_what_is_kept_is_bounded() -> None:
    pool = ArrayPool()
    shape = (MOST_KEPT_BYTES // 2,)
    several = [pool.empty(shape, np.uint8) for _ in range(4)]
    several.clear()
    free = sum(len(block) for blocks in pool._free.values() for block in blocks)
    assert free <= MOST_KEPT_BYTES


def test_threads_never_share_memory() -> None:
    pool = ArrayPool()

    def fill(number: int) -> bool:
        for _ in range(200):
            made = pool.empty((LEAST_BYTES,), np.uint8)
            made[:] = number
            again = pool.empty((LEAST_BYTES,), np.uint8)
            again[:] = number + 100
            if not (made == number).all():
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(fill, range(8)))
