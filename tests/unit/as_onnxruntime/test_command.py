"""`python -m ort_lite.as_onnxruntime program` is `python program`, but for onnxruntime."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from stand_in_programs import COMMAND, environment, python, stand_in
from system_limits import needs_posix

from ort_lite.as_onnxruntime.command import UsageError, interpreter_flags, parse
from ort_lite.as_onnxruntime.installation import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

SHOW = (
    "import sys\nprint(sys.argv, sys.path[0], __name__, __file__, __package__)\n"
    "print(getattr(__spec__, 'name', None), getattr(sys._getframe().f_back, 'f_lineno', None))\n"
    "print(sys.flags, sys.warnoptions, sys._xoptions)\n"
    "print(sorted(globals()))\n"
)


@pytest.mark.parametrize(
    "arguments",
    [["program.py", "-m", "--providers", "x"], ["-m", "package", "1"], ["-m", "package.inner"]],
)
@pytest.mark.parametrize("flags", [[], ["-O", "-B", "-W", "error", "-X", "dev", "-u"]])
def test_a_program_sees_what_it_sees_without_us(
    tmp_path: Path, arguments: list[str], flags: list[str]
) -> None:
    (tmp_path / "package").mkdir()
    for name in ("program.py", "package/__init__.py", "package/__main__.py", "package/inner.py"):
        (tmp_path / name).write_text(SHOW)
    alone = python(*flags, *arguments, cwd=tmp_path)
    assert stand_in(*arguments, cwd=tmp_path, flags=flags).stdout == alone.stdout


def test_code_and_standard_input_are_programs_too(tmp_path: Path) -> None:
    assert stand_in("-c", "import sys; print(sys.argv)", "-x").stdout == "['-c', '-x']\n"
    done = subprocess.run(
        [sys.executable, *COMMAND, "-", "a"],
        input="import sys, onnxruntime; print(sys.argv, onnxruntime.package_name)",
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['-', 'a'] onnxruntime\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [("import sys; sys.exit(7)", 7), ("raise SystemExit('why')", 1), ("1/0", 1), ("def", 1)],
)
def test_exit_codes_and_tracebacks_are_the_program_s(
    tmp_path: Path, code: str, status: int
) -> None:
    (tmp_path / "program.py").write_text(code)
    alone = python("program.py", cwd=tmp_path, check=False)
    done = stand_in("program.py", cwd=tmp_path, check=False)
    assert done.returncode == alone.returncode == status
    assert done.stderr == alone.stderr


@needs_posix  # Windows replaces no process
def test_a_signal_reaches_the_program_itself() -> None:
    code = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, *COMMAND, "-c", code],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


def test_a_class_of_main_can_be_pickled_to_a_spawned_worker_that_has_the_stand_in(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing as mp\n"
        "class Asked:\n"
        "    def __call__(self):\n"
        "        import onnxruntime\n"
        "        return onnxruntime.__file__\n"
        "def call(asked): return asked()\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(call, (Asked(),)))\n"
    )
    assert stand_in(tmp_path / "program.py").stdout.startswith(FOLDER)
    called = "import ort_lite; ort_lite.as_onnxruntime()\n"
    program = tmp_path / "program.py"
    program.write_text(program.read_text().replace("if __name", f"{called}if __name"))
    assert python(program).stdout.startswith(FOLDER)


def test_a_worker_has_the_stand_in_where_only_the_main_process_calls(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing as mp\n"
        "def call():\n"
        "    import onnxruntime\n"
        "    return onnxruntime.__file__\n"
        "if __name__ == '__main__':\n"
        "    import ort_lite; ort_lite.as_onnxruntime()\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(call))\n"
    )
    assert python(tmp_path / "program.py").stdout.startswith(FOLDER)


def test_a_python_that_the_program_starts_has_the_stand_in() -> None:
    inner = "import onnxruntime; print(onnxruntime.__file__)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    assert stand_in("-c", code).stdout.startswith(FOLDER)


def test_an_environment_without_ort_lite_keeps_its_own_onnxruntime(tmp_path: Path) -> None:
    """PYTHONPATH reaches every Python; one that lacks ort_lite is not ours to change."""
    other = tmp_path / "site"
    (other / "onnxruntime").mkdir(parents=True)
    (other / "onnxruntime" / "__init__.py").write_text("__version__ = 'its own'\n")
    (other / "onnxruntime" / "inner.py").write_text("found = True\n")
    code = (
        f"import sys; sys.path[:0] = [{FOLDER!r}, {str(other)!r}]\n"
        "import onnxruntime.inner; print(onnxruntime.__version__, onnxruntime.inner.found)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "its own True\n"


def test_without_ort_lite_and_without_another_onnxruntime_the_error_says_so() -> None:
    code = f"import sys; sys.path.insert(0, {FOLDER!r})\nimport onnxruntime"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ModuleNotFoundError: " in done.stderr
    assert "pip install ort-lite" in done.stderr


def test_the_help_names_every_option() -> None:
    done = stand_in("--help")
    options = ("--providers LIST", "--cache[=FOLDER]", "--report[=FILE]", "-m module", "-c code")
    assert [option for option in options if option not in done.stdout] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which program"),
        (["--providers"], "argument expected for --providers"),
        (["--provider", "cpu", "x.py"], "unknown option --provider"),
        (["-m"], "argument expected for the -m option"),
        (["--providers", "cpu"], "which program"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(arguments)


def test_a_provider_that_is_not_installed_is_refused_before_the_program_starts() -> None:
    done = stand_in("--providers", "cuda", "-c", "print('started')", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no execution provider 'cuda' is installed" in done.stderr


@pytest.mark.parametrize(
    ("original", "own", "flags"),
    [
        (["-m", "ort_lite.as_onnxruntime", "x.py"], 1, []),
        (["-O", "-X", "dev", "-m", "ort_lite.as_onnxruntime", "-m", "m"], 2, ["-O", "-X", "dev"]),
        (["-Bm", "ort_lite.as_onnxruntime", "x.py"], 1, ["-B"]),
        (["-mort_lite.as_onnxruntime", "x.py"], 1, []),
        (["-BOmort_lite.as_onnxruntime", "x.py"], 1, ["-BO"]),
        (["tool", "x.py"], 1, []),
    ],
)
def test_options_of_the_interpreter_are_handed_on(
    original: list[str], own: int, flags: list[str]
) -> None:
    assert interpreter_flags(original, own) == flags


@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_an_interpreter_that_ignores_pythonpath_is_refused(flag: str) -> None:
    done = python(flag, *COMMAND, "-c", "print('started')", check=False)
    assert done.stdout == ""
    assert done.returncode == 2
    assert "PYTHONPATH" in done.stderr
