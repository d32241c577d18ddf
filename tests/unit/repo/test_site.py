"""The documentation site: no broken link, a page for every public name, readable on a phone."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from unit.hw.test_report import FAILED, PASSED, put_results, report

import ort_lite
from ort_lite import ep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[3]
PHONE = 390
"""Width of a phone's screen in CSS pixels."""
LOOK = """<!doctype html><title>look</title><body><script>
const pages = %s, answer = {};
async function look() {
  for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.width = %d; frame.height = 800; frame.src = page;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const root = frame.contentDocument.documentElement;
    answer[page] = [root.scrollWidth, root.clientWidth, root.innerText.length];
    frame.remove();
  }
  await fetch("answer", {method: "POST", body: JSON.stringify(answer)});
}
look();
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    command += ["--config-file", str(ROOT / ".ci/site/mkdocs.yml")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def server(site: Path) -> Iterator[SiteServer]:
    """A local server that has the site."""
    with SiteServer(("127.0.0.1", 0), partial(SiteHandler, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class SiteServer(ThreadingHTTPServer):
    """Serves the site, and keeps the answer that its last page posts."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: Callable[..., SiteHandler]) -> None:
        super().__init__(address, handler)
        self.answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that ends closes its connections in the middle of an answer."""


class SiteHandler(SimpleHTTPRequestHandler):
    """Serves files, and takes the answer of the page that looks at them."""

    server: SiteServer

    def do_POST(self) -> None:
        self.server.answers.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """No line on stderr for each request."""


def widths_on_a_phone(
    server: SiteServer, pages: list[str], site: Path, profile: Path
) -> dict[str, list[int]]:
    """By page: width of its content, width of the screen, and length of its text."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("chromium is not installed")
    (site / "look.html").write_text(LOOK % (json.dumps(pages), PHONE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options += [f"--user-data-dir={profile}", "--no-first-run", "--remote-debugging-port=0"]
    address = f"http://127.0.0.1:{server.server_port}/look.html"
    silent = subprocess.DEVNULL
    process = subprocess.Popen([browser, *options, address], stdout=silent, stderr=silent)
    try:
        widths: dict[str, list[int]] = json.loads(server.answers.get(timeout=300))
    finally:
        process.terminate()
        process.wait()
    assert list(widths) == pages
    return widths


def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text("utf-8")
    missing = [
        name
        for name in ort_lite.__all__
        if callable(getattr(ort_lite, name)) and f".{name}" not in page
    ]
    assert missing == []


def test_the_reference_has_every_name_for_authors_of_execution_providers(site: Path) -> None:
    page = (site / "reference" / "execution_providers.html").read_text("utf-8")
    assert [name for name in ep.__all__ if name not in page] == []


def test_no_page_loads_anything_from_another_site(site: Path) -> None:
    foreign = {
        (path.name, source)
        for path in site.rglob("*.html")
        for source in re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', path.read_text("utf-8")
        )
    }
    assert foreign == set()


def test_pages_fit_a_phone(server: SiteServer, site: Path, tmp_path: Path) -> None:
    pages = sorted(p.relative_to(site).as_posix() for p in site.rglob("*.html"))
    pages = [page for page in pages if page not in ("look.html", "hardware.html", "wide.html")]
    assert {"index.html", "reference/python.html", "reports/hw_matrix.html"} <= set(pages)
    widths = widths_on_a_phone(server, pages, site, tmp_path)
    assert {page: w for page, w in widths.items() if w[0] > w[1]} == {}
    assert min(length for _, _, length in widths.values()) > 100


def test_a_hardware_report_fits_a_phone(server: SiteServer, site: Path, tmp_path: Path) -> None:
    results = put_results(tmp_path / "results", PASSED)
    report(tmp_path, results)
    put_results(tmp_path / "results", FAILED)
    (results / "plain" / "log.txt").write_text("what was said", "utf-8")
    code, out = report(tmp_path, results)
    assert code == 1
    assert "Since the last run: 2 worse" in (out / "index.html").read_text("utf-8")
    shutil.copy(out / "index.html", site / "hardware.html")
    wide = f"<p style='width:{2 * PHONE}px'>{'wide ' * 30}</p>"
    (site / "wide.html").write_text(f"<!doctype html>{wide}", encoding="utf-8")
    widths = widths_on_a_phone(server, ["hardware.html", "wide.html"], site, tmp_path / "profile")
    assert widths["hardware.html"][0] <= widths["hardware.html"][1]
    assert widths["wide.html"][0] > widths["wide.html"][1], "the measurement sees what is too wide"
