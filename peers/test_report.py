"""The report, opened in a real browser: it is one file, needs no network and runs no trace text."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RECOUP = os.environ.get("RECOUP_BIN", "recoup")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EXAMPLES = Path(__file__).parent.parent / "examples" / "failed-runs"
HOSTILE = (
    '{"id":"hostile","task_id":"<img src=x onerror=document.title=1>","success":false,"messages":['
    '{"role":"user","content":"<script>document.title=\'owned\'</script>"},'
    '{"role":"assistant","content":"</pre><script>document.title=\'owned\'</script>"}]}\n'
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def chromium(tmp_path: Path, *arguments: str) -> bytes:
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", *arguments,
    ]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "hostile.jsonl").write_text(HOSTILE)
    subprocess.run([RECOUP, "run", str(EXAMPLES), "hostile.jsonl"], cwd=folder, check=True)
    return folder / "recoup-out" / "report.html"


def test_it_opens_and_nothing_of_a_trace_runs(report: Path, tmp_path: Path) -> None:
    dom = chromium(tmp_path, "--dump-dom", report.as_uri()).decode()
    title = re.search(r"<title>(.*?)</title>", dom, re.S)
    assert title is not None
    assert "owned" not in title.group(1)
    assert "<svg" in dom
    assert "<script>document.title" not in dom
    assert "<img" not in dom
    assert "<mark>" in dom, "what is learned is marked"


def test_it_fits_a_phone(report: Path, tmp_path: Path) -> None:
    picture = tmp_path / "phone.png"
    chromium(tmp_path, f"--screenshot={picture}", "--window-size=390,2000", report.as_uri())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_it_asks_for_nothing(report: Path) -> None:
    text = report.read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)", text), "the report refers to another file"
    assert "default-src 'none'" in text
