"""Kernels of Fourier transforms and of what windows a signal for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from eps.cpu.arrays import axis_in, check_allocation, computing_wide
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def _as_complex(x: Array) -> Array:
    """[..., 1] real or [..., 2] real and imaginary parts, as numbers."""
    if x.shape[-1] not in (1, 2):
        raise ValueError(f"last dimension is {x.shape[-1]}, expected 1 (real) or 2 (complex)")
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _parts(values: Array, x: Array) -> Array:
    """Complex numbers as [..., 2] in the type of `x`."""
    values = np.ascontiguousarray(values)
    pairs = values.view(values.real.dtype).reshape(*values.shape, 2)
    return pairs.astype(x.dtype, copy=False)


def _dft_by_chirps(frames: Array, bins: int, x: Array) -> Array:
    """Transforms of real frames as convolutions with a chirp, in the frames' own precision.

    numpy's transform gives exact zeros where samples cancel each other. onnxruntime transforms
    frames whose length is not a power of two like this, with its rounding, and models such as
    Kokoro divide by such a bin. A product with a table of cosines does not do: whether its sums
    are exact zeros depends on the order in which BLAS adds on this CPU.
    Source: Bluestein, "A linear filtering approach to the computation of discrete Fourier
    transform", 1970.
    """
    size = frames.shape[-1]
    steps = np.arange(size)
    precision = np.result_type(frames, np.complex64)
    chirp = np.exp(steps * steps % (2 * size) * (-1j * np.pi / size)).astype(precision)
    length = 1 << (2 * size - 2).bit_length()  # a power of two, at least 2 * size - 1
    response = np.zeros(length, precision)
    response[:size] = chirp.conj()
    response[length - size + 1 :] = chirp[:0:-1].conj()
    spectra = np.fft.fft(frames * chirp, length) * np.fft.fft(response)
    return _parts(np.fft.ifft(spectra)[..., :bins] * chirp[:bins], x)


def _dft(info: KernelInfo) -> KernelFn:
    """ONNX DFT; the axis is an attribute in version 17, then an input."""
    fixed = info.attr("axis", 1) if info.since_version < 20 else None
    inverse, onesided = bool(info.attr("inverse", 0)), bool(info.attr("onesided", 0))

    def dft(x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
        dft_axis = fixed if fixed is not None else -2 if axis is None else integers(axis)[0]
        at = axis_in(dft_axis, x.ndim)
        if at == x.ndim - 1:
            raise ValueError(f"axis {dft_axis} is the axis of real and imaginary parts")
        signal = _as_complex(x)
        size = x.shape[at]
        if length is not None:
            size = integers(length)[0]
        elif inverse and onesided:
            size = 2 * (size - 1)
        check_allocation((size,), signal.dtype)
        if inverse and onesided:
            return np.fft.irfft(signal, size, at)[..., None].astype(x.dtype)
        if inverse:
            return _parts(np.fft.ifft(signal, size, at), x)
        if onesided and not np.iscomplexobj(signal):
            return _parts(np.fft.rfft(signal, size, at), x)
        full = np.fft.fft(signal, size, at)
        return _parts(np.take(full, np.arange(size // 2 + 1), at) if onesided else full, x)

    return computing_wide(info, dft)


def _stft(info: KernelInfo) -> KernelFn:
    """ONNX STFT-17: [B, frames, bins, 2] of signals [B, length, 1 or 2].

    Signals [B, length] are taken as real, as onnxruntime has it.
    """
    onesided = bool(info.attr("onesided", 1))

    def stft(
        x: Array, step: Array, window: Array | None = None, length: Array | None = None
    ) -> Array:
        signal = x if x.ndim == 2 else _as_complex(x)  # [B, length]
        if signal.ndim != 2:
            raise ValueError(f"signal of rank {x.ndim}, expected 2 or 3")
        size = signal.shape[1]
        if window is not None:
            size = window.shape[0]
        if length is not None:
            size = integers(length)[0]
        if window is not None and window.shape != (size,):
            raise ValueError(f"window of shape {window.shape} for frames of {size}")
        stride = integers(step)[0]
        if stride <= 0 or not 0 < size <= signal.shape[1]:
            raise ValueError(f"frames of {size} every {stride} in {signal.shape[1]} samples")
        frames = sliding_window_view(signal, size, axis=1)[:, ::stride]
        weighted = frames if window is None else frames * window
        if not np.iscomplexobj(signal) and size & (size - 1):
            return _dft_by_chirps(weighted, size // 2 + 1 if onesided else size, x)
        if onesided and not np.iscomplexobj(signal):
            return _parts(np.fft.rfft(weighted), x)
        full = np.fft.fft(weighted)
        return _parts(full[..., : size // 2 + 1] if onesided else full, x)

    return computing_wide(info, stft)


KERNELS: tuple[KernelDef, ...] = (
    kernel("DFT", since=(17, 20))(_dft),
    kernel("STFT", since=(17, 17))(_stft),
)
