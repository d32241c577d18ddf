"""onnxruntime's names, by ort_lite: what `import onnxruntime` gives in the stand-in."""

from __future__ import annotations

try:
    from ort_lite.as_onnxruntime.names import StandInNames
    from ort_lite.version import ONNXRUNTIME_VERSION as __version__  # noqa: F401, N811 - the usual name
except ModuleNotFoundError as error:
    if error.name != "ort_lite":
        raise
    # PYTHONPATH also reaches Pythons of other environments, which keep what they have.
    from onnxruntime._without_ort_lite import import_other

    import_other()
else:
    __author__ = "ort_lite, in place of Microsoft's onnxruntime"
    _names = StandInNames.of(__spec__)
    __ort_lite__ = _names.settings
    __path__ = [*__path__, *_names.installed_packages()]
    __all__ = _names.public
    __getattr__ = _names.get

    def __dir__() -> list[str]:
        """All names, used so far or not."""
        return sorted({*globals(), *__all__})
