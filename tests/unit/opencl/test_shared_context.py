"""The context of a device that sessions share: threads open and drop it at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from opencl_devices import all_devices

from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Buffer
from eps.opencl.runtime import device
from eps.opencl.runtime.device import ListedDevice, share_context

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Context

DEVICES = all_devices()


@pytest.fixture(params=DEVICES, ids=[listed.name for listed in DEVICES])
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ListedDevice:
    """One whose context nothing else of this process shares."""
    monkeypatch.setattr(device, "_contexts", {})
    result: ListedDevice = request.param
    return result


def test_all_users_have_one_context_until_the_last_drops_it(listed: ListedDevice) -> None:
    first = share_context(listed)
    assert share_context(listed) is first
    allocated = first.allocated
    del first
    assert share_context(listed).allocated is not allocated


def test_a_context_that_is_being_released_is_given_to_nobody(
    listed: ListedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may ask for one while the driver releases it without the GIL."""
    release = api().clReleaseContext
    others: list[Context] = []

    def release_late(handle: Any) -> None:
        if not others:
            others.append(share_context(listed))
        release(handle)

    monkeypatch.setattr(api(), "clReleaseContext", release_late)
    context = share_context(listed)
    dropped = context.allocated
    del context
    (other,) = others
    assert other.allocated is not dropped
    content = np.arange(16, dtype=np.uint8)
    assert Buffer.from_host(other, CL_MEM_READ_WRITE, content).handle
