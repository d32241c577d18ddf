"""Name and release of the package whose interface this is."""

from ort_lite.version import ONNXRUNTIME_VERSION as __version__  # noqa: F401, N811 - onnxruntime's name

package_name = "onnxruntime"
