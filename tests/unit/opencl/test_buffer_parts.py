"""Parts of a buffer are freed newest first, in whichever order they are let go of."""

from __future__ import annotations

import gc
import random
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from opencl_devices import first_working_device

from eps.opencl.cl import objects
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.foreign import keep_buffer
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Buffer, Context, Queue
from eps.opencl.runtime.arena import SharedArena

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = 4096
COUNT = 24


class _Api:
    """The loader, which notes what is freed."""

    def __init__(self, freed: list[int]) -> None:
        self._freed = freed

    def __getattr__(self, name: str) -> object:
        return getattr(api(), name)

    def clReleaseMemObject(self, handle: int) -> None:  # noqa: N802 - OpenCL's name
        self._freed.append(getattr(handle, "value", handle))
        api().clReleaseMemObject(handle)


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Handles of memory in the order in which it is freed."""
    handles: list[int] = []
    noting = _Api(handles)
    monkeypatch.setattr(objects, "api", lambda: noting)
    yield handles
    gc.collect()


@pytest.fixture
def whole(freed: list[int]) -> Buffer:
    context = Context(first_working_device().device)
    return Buffer.of(context, CL_MEM_READ_WRITE, STEP * COUNT)


def parts_of(whole: Buffer) -> tuple[list[Buffer], list[int]]:
    parts = [whole.part(STEP * number, STEP) for number in range(COUNT)]
    return parts, [part.handle for part in parts]


@pytest.mark.parametrize("seed", range(4))
def test_parts_that_are_released_in_any_order(seed: int, whole: Buffer, freed: list[int]) -> None:
    parts, handles = parts_of(whole)
    random.Random(seed).shuffle(parts)
    for part in parts:
        assert len(freed) <= len(handles)
        part.release()
    assert freed == handles[::-1]


def test_parts_that_python_lets_go_of(whole: Buffer, freed: list[int]) -> None:
    """A session that is not closed: a dictionary lets go of the first of its values first."""
    parts, handles = parts_of(whole)
    kept = dict(enumerate(parts))
    del parts
    kept.clear()
    gc.collect()
    assert freed == handles[::-1]


def test_a_part_stays_only_until_newer_ones_are_gone(whole: Buffer, freed: list[int]) -> None:
    old, new = whole.part(0, STEP), whole.part(STEP, STEP)
    handles = [old.handle, new.handle]
    old.release()
    assert freed == []
    newest = whole.part(2 * STEP, STEP)
    handles.append(newest.handle)
    newest.release()
    assert freed == [handles[2]]
    new.release()
    assert freed == handles[::-1]


def test_owners_of_a_buffer_have_its_parts_in_common(whole: Buffer, freed: list[int]) -> None:
    """Each array of pyopencl's that is a part of a buffer has an owner of its own of that."""
    others = [keep_buffer(whole.handle, None) for _ in range(2)]
    parts = [other.part(STEP * number, STEP) for number, other in enumerate(others)]
    handles = [part.handle for part in parts]
    parts[0].release()
    assert freed == []
    parts[1].release()
    assert freed == handles[::-1]


def test_the_buffer_may_be_released_before_its_parts(whole: Buffer, freed: list[int]) -> None:
    parts, handles = parts_of(whole)
    whole.release()
    for part in parts:
        part.release()
    assert freed[-COUNT:] == handles[::-1]


def test_threads_that_make_and_release_parts(whole: Buffer, freed: list[int]) -> None:
    made: list[int] = []
    wrong: list[BaseException] = []

    def use(seed: int) -> None:
        choice = random.Random(seed)
        try:
            for _ in range(100):
                parts = [whole.part(STEP * choice.randrange(COUNT), STEP) for _ in range(4)]
                made.extend(part.handle for part in parts)
                choice.shuffle(parts)
                for part in parts:
                    part.release()
        except BaseException as exc:  # noqa: BLE001 - reported by the test
            wrong.append(exc)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(freed) == len(made) == 1600


class _User:
    """A program that asks for other parts in each turn."""

    left = 0

    def enter_arena(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def leave_arena(self) -> None:
        self.left += 1


def test_an_arena_has_a_bounded_number_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eps.opencl.runtime.arena.MOST_PARTS", 8)
    context = Context(first_working_device().device)
    arena, queue, user = SharedArena(context), Queue(context), _User()
    arena.join(user, STEP * COUNT)
    user.left = 0
    content = np.arange(STEP, dtype=np.uint8)
    for number in range(COUNT):
        with arena.turn(user, queue, waits=True):
            part = arena.part(STEP * number, STEP)
            assert arena.part(STEP * number, STEP) is part
            queue.write(part, content)
            found = np.empty_like(content)
            queue.read(found, part)
            np.testing.assert_array_equal(found, content)
    assert user.left == COUNT // 8 - 1
    arena.leave(user)
    assert arena.size == 0
