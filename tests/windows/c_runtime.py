"""A ucrtbase.dll with C99's complex functions, which Wine 8 exports and ends the process for.

numpy calls them. All other exports are handed on to a copy of Wine's own library under another
name, `ucrtwine.dll`, from which the mark is removed that makes Wine load its own in its place.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

COMPILER = "x86_64-w64-mingw32-gcc"
OBJDUMP = "x86_64-w64-mingw32-objdump"
NM = "x86_64-w64-mingw32-nm"
BUILTIN_MARK = b"Wine builtin DLL"
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows",
    "/usr/lib/wine/x86_64-windows",
    "/usr/lib64/wine/x86_64-windows",
)

TO_COMPLEX = (
    *("cacos", "cacosh", "casin", "casinh", "catan", "catanh", "ccos", "ccosh", "cexp", "clog"),
    *("conj", "cproj", "csin", "csinh", "csqrt", "ctan", "ctanh"),
)
TO_REAL = ("cabs", "carg", "cimag", "creal")
KINDS = {"": ("double", ""), "f": ("float", "f"), "l": ("double", "")}
"""Suffix to the type and the suffix of gcc's own function; Microsoft's long double is a double."""


def write_c_runtime(target: Path) -> None:
    """Put ucrtbase.dll and ucrtwine.dll into `target`.

    Raises:
        FileNotFoundError: Wine's library is not where distributions put it.
        subprocess.CalledProcessError: The compiler failed.
    """
    wine = _wine_library()
    exports = _exports(wine)
    stubs = set(re.findall(r"__wine_stub_(\w+)$", _output(NM, wine), re.MULTILINE))
    written = {name: body for name, body in _functions().items() if name in stubs}
    shapes = [f"struct pair{suffix} {{ {part} re, im; }};" for suffix, (part, _) in KINDS.items()]
    with TemporaryDirectory() as folder:
        code, definitions = Path(folder, "runtime.c"), Path(folder, "runtime.def")
        code.write_text("\n".join(["#include <complex.h>", *shapes, *written.values(), ""]))
        own = [f"  {name} = own_{name}" for name in written]
        others = [f'  "{name}" = "ucrtwine.{name}"' for name in exports if name not in written]
        definitions.write_text("\n".join(["LIBRARY ucrtbase.dll", "EXPORTS", *own, *others, ""]))
        subprocess.run(
            [
                COMPILER,
                "-O2",
                "-fno-builtin",
                "-shared",
                "-static",
                "-o",
                target / "ucrtbase.dll",
                code,
                definitions,
            ],
            check=True,
        )
    image = bytearray(wine.read_bytes())
    mark = image.index(BUILTIN_MARK, 0, 0x100)
    image[mark : mark + len(BUILTIN_MARK)] = bytes(len(BUILTIN_MARK))
    (target / "ucrtwine.dll").write_bytes(image)


def _wine_library() -> Path:
    for folder in FOLDERS:
        path = Path(folder, "ucrtbase.dll")
        if path.exists():
            return path
    raise FileNotFoundError(f"no ucrtbase.dll of Wine in {', '.join(FOLDERS)}")


def _exports(library: Path) -> list[str]:
    table = _output(OBJDUMP, "-p", library).partition("[Ordinal/Name Pointer] Table")[2]
    return re.findall(r"^\s+\[\s*\d+\] (\S+)$", table, re.MULTILINE)


def _output(*command: object) -> str:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=True
    ).stdout


def _functions() -> dict[str, str]:
    """C source by exported name; a complex number is a structure of two parts at this border."""
    found = {}
    for suffix, (part, gcc) in KINDS.items():
        pair = f"struct pair{suffix}"
        into = f"({{ {part} _Complex c; __real__ c = z.re; __imag__ c = z.im; c; }})"
        for name in TO_COMPLEX:
            found[name + suffix] = (
                f"{pair} own_{name}{suffix}({pair} z) {{ {part} _Complex r = {name}{gcc}({into}); "
                f"return ({pair}){{ __real__ r, __imag__ r }}; }}"
            )
        for name in TO_REAL:
            found[name + suffix] = (
                f"{part} own_{name}{suffix}({pair} z) {{ return {name}{gcc}({into}); }}"
            )
        found[f"norm{suffix}"] = (
            f"{part} own_norm{suffix}({pair} z) {{ return z.re * z.re + z.im * z.im; }}"
        )
        found[f"clog10{suffix}"] = (
            f"{pair} own_clog10{suffix}({pair} z) {{ {part} _Complex r = clog{gcc}({into}); "
            f"{part} to = 0.43429448190325182765; "
            f"return ({pair}){{ __real__ r * to, __imag__ r * to }}; }}"
        )
        found[f"cpow{suffix}"] = (
            f"{pair} own_cpow{suffix}({pair} z, {pair} w) {{ {part} _Complex e; "
            f"__real__ e = w.re; __imag__ e = w.im; {part} _Complex r = cpow{gcc}({into}, e); "
            f"return ({pair}){{ __real__ r, __imag__ r }}; }}"
        )
    return found
