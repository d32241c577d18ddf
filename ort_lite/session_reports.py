"""What a session says of itself: where nodes run and why, and what it took to get there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.execution.run_forms import RunForms

if TYPE_CHECKING:
    from ort_lite.background_compile import BackgroundJob
    from ort_lite.load_clock import LoadClock
    from ort_lite.load_report import BackgroundCompile, LoadReport
    from ort_lite.opening import Opened
    from ort_lite.options import SessionOptions
    from ort_lite.planning import explain
    from ort_lite.planning.assignment_info import OrtEpAssignedSubgraph


class SessionReports(RunForms):
    """Reports of a session, which has these parts."""

    _clock: LoadClock
    _job: BackgroundJob | None
    _no_job: str
    _options: SessionOptions

    def _present(self) -> Opened:
        raise NotImplementedError

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which EP runs which nodes; needs `session.record_ep_graph_assignment_info`.

        Raises:
            Fail: That entry is not "1", or the session is closed.
        """
        from ort_lite.planning.assignment_info import assignment_info  # noqa: PLC0415 - few sessions ask

        return assignment_info(self._present().prepared, self._options)

    def explain(self) -> explain.SessionReport:
        """Which node runs where, and why not elsewhere."""
        from ort_lite.planning import explain  # noqa: PLC0415 - a session that is only run needs it not

        opened, background = self._present(), self.background_compile()
        return explain.report(
            opened.prepared,
            model=opened.loaded.described,
            providers=tuple(ep.name for ep in opened.eps),
            notes=() if background.state == "off" else (str(background),),
            transforms=opened.transforms,
        )

    def background_compile(self, timeout: float | None = 0.0) -> BackgroundCompile:
        """What `session.ep_compile_in_background` has come to.

        Args:
            timeout: Seconds to wait for its end; None waits for as long as it takes.
        """
        from ort_lite.load_report import BackgroundCompile  # noqa: PLC0415 - few sessions are asked

        if self._job is None:
            return BackgroundCompile(reason=self._no_job)
        return self._job.outcome(timeout)

    def load_report(self) -> LoadReport:
        """What it took to get here: time by phase, bytes, memory, and what the cache did.

        Raises:
            Fail: The session is closed.
        """
        from ort_lite.load_report import LoadReport, peak_rss  # noqa: PLC0415 - as above

        opened, background = self._present(), self.background_compile()
        return LoadReport(
            phases=dict(self._clock.phases),
            total=self._clock.total,
            model_bytes=len(opened.loaded.data),
            payload_bytes=self._clock.payload_bytes + background.payload_bytes,
            peak_rss=peak_rss(),
            cache=opened.cache,
            background=background,
        )
