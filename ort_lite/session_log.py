"""Logging with ONNX Runtime's severities: of the process, of a session and of a run.

Everything goes to Python's logger `ort_lite` and those below it. Where the program has set up
handlers, they get the records; where it has not, lines go to stderr in ONNX Runtime's form.
Python's logging is imported with the first line that is logged: few starts log any.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator
    from typing import Protocol

    class LogSettings(Protocol):
        """The logging attributes that SessionOptions and RunOptions share."""

        log_severity_level: int
        log_verbosity_level: int
        logid: str


ROOT = "ort_lite"
NOT_SET = -1
DEBUG, INFO, WARNING, ERROR, CRITICAL = 10, 20, 30, 40, 50
"""Levels of Python's logging."""
SEVERITIES = (DEBUG, INFO, WARNING, ERROR, CRITICAL)
"""Python's level of OrtLoggingLevel 0 (verbose) to 4 (fatal): onnxruntime_c_api.h."""
_LETTERS = "VIWEF"
_DEFAULT_ID = "Default"


@dataclass(frozen=True, slots=True)
class LogScope:
    """The logging settings of the session or run that this code is part of.

    Attributes:
        level: Of Python's logging, below DEBUG for verbosity; None leaves it to the logger.
        logid: Named in every line.
    """

    level: int | None = None
    logid: str = ""

    @property
    def is_plain(self) -> bool:
        """True if the process's settings apply unchanged."""
        return self.level is None and not self.logid

    def inherit_from(self, outer: LogScope) -> LogScope:
        """This one for a run of a session with `outer`: what is not set is the session's."""
        level = self.level if self.level is not None else outer.level
        return LogScope(level, ":".join(filter(None, (outer.logid, self.logid))))


NOTHING_SAID = LogScope()

_SCOPE: ContextVar[LogScope] = ContextVar("ort_lite_log", default=NOTHING_SAID)


def scope_of(options: LogSettings) -> LogScope:
    """The scope that options ask for.

    Raises:
        InvalidArgument: `log_severity_level` or `log_verbosity_level` is out of range.
    """
    severity = options.log_severity_level
    level = None if severity == NOT_SET else _level(severity, options.log_verbosity_level)
    return LogScope(level, options.logid)


def set_default_logger_severity(severity: int) -> None:
    """Log from `severity` on wherever a session's options say nothing.

    It is the level of Python's logger `ort_lite`, so `logging` can set and see it too.

    Args:
        severity: 0 verbose, 1 info, 2 warning (as from the start), 3 error, 4 fatal.

    Raises:
        InvalidArgument: It is none of these.
    """
    _python_logger(ROOT).setLevel(_level(severity, 0))


def set_default_logger_verbosity(verbosity: int) -> None:
    """Log more than verbose; without effect unless the default severity is 0 already.

    Raises:
        InvalidArgument: It is negative.
    """
    level, root = _level(0, verbosity), _python_logger(ROOT)
    if root.getEffectiveLevel() <= DEBUG:
        root.setLevel(level)


def _level(severity: int, verbosity: int) -> int:
    if not 0 <= severity < len(SEVERITIES):
        raise InvalidArgument(f"log severity is {severity}, expected 0 (verbose) to 4 (fatal)")
    if verbosity < 0:
        raise InvalidArgument(f"log verbosity is {verbosity}, expected 0 or more")
    return max(SEVERITIES[severity] - verbosity, 1) if severity == 0 else SEVERITIES[severity]


def verbose_level(verbosity: int) -> int:
    """The level of a line that `log_verbosity_level` must ask for."""
    return DEBUG - verbosity


@contextmanager
def logging_as(scope: LogScope) -> Iterator[None]:
    """Make `scope` that of all that is logged meanwhile."""
    token = _SCOPE.set(scope)
    try:
        yield
    finally:
        _SCOPE.reset(token)


class SessionLogger:
    """A module's logger, which applies the scope that the code runs in."""

    __slots__ = ("_logger", "_name")

    def __init__(self, name: str) -> None:
        """A logger of this name in Python's logging."""
        self._name = name
        self._logger: logging.Logger | None = None

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        """True if a line of `level` would be written somewhere."""
        session_level = _SCOPE.get().level
        if session_level is not None:
            return level >= session_level
        if "logging" not in sys.modules:  # so nobody has set a level; Python's own is WARNING
            return level >= WARNING
        return self._python().isEnabledFor(level)

    def debug(self, msg: object, *args: object) -> None:
        """Log one decision at DEBUG."""
        self._emit(DEBUG, msg, args)

    def info(self, msg: object, *args: object) -> None:
        """Log one session at INFO."""
        self._emit(INFO, msg, args)

    def warning(self, msg: object, *args: object) -> None:
        """Log a warning under the session's id."""
        self._emit(WARNING, msg, args)

    def exception(self, msg: object, *args: object) -> None:
        """Log an error with the exception that is being handled."""
        self._emit(ERROR, msg, args, with_exception=True)

    def log(self, level: int, msg: object, *args: object) -> None:
        """Log a line at `level`."""
        self._emit(level, msg, args)

    def _emit(
        self, level: int, msg: object, args: tuple[object, ...], *, with_exception: bool = False
    ) -> None:
        """Hand a record to the program's handlers, or a line to stderr."""
        if not self.isEnabledFor(level):
            return
        logger = self._python()
        path, number, function, _ = logger.findCaller(stacklevel=3)
        logid = _SCOPE.get().logid
        has_handlers = logger.hasHandlers()
        text = f"[{logid}] {msg}" if logid and has_handlers else str(msg)
        exc_info = sys.exc_info() if with_exception else None
        record = logger.makeRecord(self._name, level, path, number, text, args, exc_info, function)
        record.logid = logid
        _make_encodable(record)
        if has_handlers:
            logger.handle(record)
        elif logger.filter(record):
            sys.stderr.write(_as_onnxruntime(record, logid) + "\n")

    def _python(self) -> logging.Logger:
        if self._logger is None:
            self._logger = _python_logger(self._name)
        return self._logger


def _make_encodable(record: logging.LogRecord) -> None:
    """Escape what no text encoding holds: handlers fail on a file name that is not UTF-8."""
    text = record.getMessage()
    try:
        text.encode()
    except UnicodeEncodeError:
        record.msg, record.args = text.encode(errors="backslashreplace").decode(), ()


def _python_logger(name: str) -> logging.Logger:
    import logging  # noqa: PLC0415 - lazy: rare

    return logging.getLogger(name)


def _as_onnxruntime(record: logging.LogRecord, logid: str) -> str:
    """As in onnxruntime: `2026-01-31 12:00:00.123 [W:ort_lite:id, file.py:1 function] text`."""
    import logging  # noqa: PLC0415 - lazy: rare

    letter = _LETTERS[min(max(record.levelno // 10 - 1, 0), len(_LETTERS) - 1)]
    time = f"{logging.Formatter().formatTime(record, '%Y-%m-%d %H:%M:%S')}.{int(record.msecs):03d}"
    where = f"{record.filename}:{record.lineno} {record.funcName}"
    line = f"{time} [{letter}:{ROOT}:{logid or _DEFAULT_ID}, {where}] {record.getMessage()}"
    if record.exc_info is None:
        return line
    return f"{line}\n{logging.Formatter().formatException(record.exc_info)}"


def get_logger(module: str) -> SessionLogger:
    """The logger of a module, below `ort_lite` whatever the module's package."""
    inside = module == ROOT or module.startswith(f"{ROOT}.")
    return SessionLogger(module if inside else f"{ROOT}.{module}")
