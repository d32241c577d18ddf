"""The documentation site: no broken link, a page for every public name, readable on a phone."""

from __future__ import annotations

import json
import os
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
from unit.hw.test_report import FAILED, put_results, report

import ort_lite
from ort_lite import ep

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PHONE = 390
"""Width of a phone's screen in CSS pixels."""
LOOK = """<!doctype html><title>look</title><pre id="answer"></pre><script>
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
  document.getElementById("answer").textContent = JSON.stringify(answer);
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
def address(site: Path) -> Iterator[str]:
    """Where a local server has the site."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line on stderr for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


def widths_on_a_phone(
    address: str, pages: list[str], site: Path, profile: Path
) -> dict[str, list[int]]:
    """By page: width of its content, width of the screen, and length of its text."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("chromium is not installed")
    (site / "look.html").write_text(LOOK % (json.dumps(pages), PHONE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options += [f"--user-data-dir={profile}", "--virtual-time-budget=60000", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, f"{address}/look.html"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert answer is not None, done.stdout[-2000:]
    widths: dict[str, list[int]] = json.loads(answer[1])
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


def test_pages_fit_a_phone(address: str, site: Path, tmp_path: Path) -> None:
    pages = sorted(p.relative_to(site).as_posix() for p in site.glob("*.html"))
    pages = [page for page in pages if page != "look.html"] + ["reference/python.html"]
    widths = widths_on_a_phone(address, pages, site, tmp_path)
    assert {page: w for page, w in widths.items() if w[0] > w[1]} == {}
    assert min(length for _, _, length in widths.values()) > 100


def test_a_hardware_report_fits_a_phone(address: str, site: Path, tmp_path: Path) -> None:
    code, out = report(tmp_path, put_results(tmp_path / "results", FAILED))
    assert code == 1
    shutil.copy(out / "index.html", site / "hardware.html")
    wide = f"<p style='width:{2 * PHONE}px'>{'wide ' * 30}</p>"
    (site / "wide.html").write_text(f"<!doctype html>{wide}", encoding="utf-8")
    widths = widths_on_a_phone(address, ["hardware.html", "wide.html"], site, tmp_path / "profile")
    assert widths["hardware.html"][0] <= widths["hardware.html"][1]
    assert widths["wide.html"][0] > widths["wide.html"][1], "the measurement sees what is too wide"
