"""Libraries of operators in C++, which cannot be loaded, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ort_lite.status import Fail

if TYPE_CHECKING:
    import os


def refuse_library(path: str | os.PathLike[str]) -> NoReturn:
    """Refuse a library, such as that of onnxruntime-extensions.

    Raises:
        Fail: Always: onnxruntime's C API, which such a library calls, is not here.
    """
    if not Path(path).is_file():
        raise Fail(f"Failed to load library {path} with error: there is no such file")
    raise Fail(
        f"Failed to load library {path}: libraries of operators in C++ call onnxruntime's C API, "
        "which ort_lite does not have. Write the operators as kernels in Python: "
        "SessionOptions.register_custom_kernel, docs/custom_kernels.md"
    )
