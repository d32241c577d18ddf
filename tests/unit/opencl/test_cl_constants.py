"""The numbers of cl/constants.py are those of the headers that pyopencl was compiled with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eps.opencl.cl import constants

NAMES = sorted(name for name in vars(constants) if name.startswith("CL_"))
ENUMS = {
    "CL_DEVICE_NOT_": ("status_code", "DEVICE_NOT_"),
    "CL_DEVICE_TYPE_": ("device_type", ""),
    "CL_PLATFORM_": ("platform_info", ""),
    "CL_DEVICE_": ("device_info", ""),
    "CL_DRIVER_": ("device_info", "DRIVER_"),
    "CL_LOCAL": ("device_local_mem_type", "LOCAL"),
    "CL_FP_": ("device_fp_config", ""),
    "CL_CONTEXT_": ("context_info", ""),
    "CL_QUEUE_CONTEXT": ("command_queue_info", "CONTEXT"),
    "CL_QUEUE_DEVICE": ("command_queue_info", "DEVICE"),
    "CL_QUEUE_PROPERTIES": ("command_queue_info", "PROPERTIES"),
    "CL_QUEUE_": ("command_queue_properties", ""),
    "CL_MEM_SIZE": ("mem_info", "SIZE"),
    "CL_MEM_CONTEXT": ("mem_info", "CONTEXT"),
    "CL_MEM_ASSOCIATED_MEMOBJECT": ("mem_info", "ASSOCIATED_MEMOBJECT"),
    "CL_MEM_OFFSET": ("mem_info", "OFFSET"),
    "CL_MEM_": ("mem_flags", ""),
    "CL_PROGRAM_BUILD_": ("program_build_info", ""),
    "CL_PROGRAM_": ("program_info", ""),
    "CL_KERNEL_": ("kernel_work_group_info", ""),
    "CL_PROFILING_COMMAND_": ("profiling_info", ""),
}
"""Prefix of a name in cl.h to pyopencl's enum, and the prefix of the name there."""
NOT_IN_PYOPENCL = {
    "CL_DEVICE_UUID_KHR",
    "CL_DEVICE_IP_VERSION_INTEL",
    "CL_BUFFER_CREATE_TYPE_REGION",
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_IN_PYOPENCL])
def test_a_constant_has_the_value_that_pyopencl_has(name: str) -> None:
    cl = pytest.importorskip("pyopencl")
    prefix = next(prefix for prefix in ENUMS if name.startswith(prefix))
    enum, start = ENUMS[prefix]
    assert getattr(getattr(cl, enum), start + name.removeprefix(prefix)) == vars(constants)[name]


def test_no_constant_is_unused() -> None:
    folder = Path(constants.__file__).parents[1]
    texts = [p.read_text() for p in folder.rglob("*.py") if p != Path(constants.__file__)]
    used = set(re.findall(r"\bCL_\w+", "\n".join(texts)))
    assert [name for name in NAMES if name not in used] == []
