"""The report on paper: an installed browser prints it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from leakgauge.errors import MissingExtra, StoreError
from leakgauge.training import write_atomically

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PDF_TIMEOUT_SECONDS = 120


def print_pdf(page: Path) -> Path:
    """Print a page to a PDF file beside it, readable by its owner alone, and return its path.

    Raises:
        MissingExtra: no browser is installed.
        StoreError: the browser made no file.
    """
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise MissingExtra(
            f"a PDF needs Chromium or Chrome, and neither is installed; open {page} and print it instead"
        )
    target = page.with_suffix(".pdf")
    with tempfile.TemporaryDirectory(prefix="leakgauge-") as profile:
        options = [
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={profile}",
            # Chromium refuses its sandbox to root; the page is our own and loads nothing.
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        ]
        printed = Path(profile) / "report.pdf"
        try:
            subprocess.run(
                [browser, *options, f"--print-to-pdf={printed}", page.resolve().as_uri()],
                check=False,
                capture_output=True,
                timeout=PDF_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise StoreError(
                f"{browser} did not finish printing within {PDF_TIMEOUT_SECONDS} seconds; print {page} yourself"
            ) from None
        if not printed.is_file():
            raise StoreError(f"{browser} made no PDF of {page}; open the page and print it instead")
        write_atomically(target, lambda file: file.write(printed.read_bytes()))
    return target
