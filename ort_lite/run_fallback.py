"""A session's second start, on the CPU EP, after another execution provider failed in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.context.keys import ENABLE_KEY
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.fallback import report_failed_run
from ort_lite.providers.provider_list import Fallback, read_requests, with_threads
from ort_lite.start.load_request import BACKGROUND_KEY, LoadClock
from ort_lite.status import EPFail, OrtLiteError

if TYPE_CHECKING:
    from ort_lite.start.load_session import SessionLoader, SessionState
    from ort_lite.start.prepare_model import PreparedModel


def start_on_cpu(
    first: SessionLoader, path_or_bytes: object, error: EPFail, before: PreparedModel
) -> SessionState:
    """Make the model ready on the CPU EP alone, as ONNX Runtime does where a run fails.

    Nothing is written: neither a context model nor an optimized one.

    Args:
        first: The loader that the session was made with.
        path_or_bytes: The model, as the session was given it.
        error: The run's error.
        before: The model that failed.

    Returns:
        The session's new state; its only note is about this fallback.

    Raises:
        EPFail: `error`; the CPU EP cannot run the model (EPContext nodes), or must not. Another
            one where the model's files are not those that the session was made from.
    """
    options = first.options.snapshot()
    options.optimized_model_filepath = ""
    for key in (ENABLE_KEY, BACKGROUND_KEY):
        options.add_session_config_entry(key, "0")
    strict = Fallback(enabled=False)
    again = replace(first, options=options, clock=LoadClock(), fallback=strict, sdks_loaded=True)
    again = replace(again, measured=False)
    requests = with_threads(read_requests(DEFAULT_PROVIDER, None), options.intra_op_num_threads)
    try:
        state = again.load(path_or_bytes, requests)
    except OrtLiteError as exc:
        raise error from exc
    model = state.model
    assert model is not None, "a session that was just loaded"
    if model.origin != before.origin:
        model.release()
        raise EPFail(
            f"{error.message}. The session cannot go on with {DEFAULT_PROVIDER}: the files of "
            f"{before.loaded.description} have changed since it was loaded. Make a new session"
        ) from error
    failed = [ep.name for ep in before.eps]
    try:
        return replace(state, notes=(report_failed_run(error, failed, [DEFAULT_PROVIDER]),))
    except Warning:
        model.release()
        raise
