"""Draw what the pages show: plots by `seqray explain --plot`, screenshots by a headless Chromium.

    python docs/figures.py

Without Chromium the screenshots are left as they are, and a line says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
EXAMPLE = ROOT / "data/example/promoters.fa"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
RECORDS = ("lacUV5", "recA")


def draw(folder: Path) -> dict[str, Path]:
    """Make the files in a folder; name of the figure to where it lies."""
    chosen = folder / "two.fa"
    records = EXAMPLE.read_text(encoding="utf-8").split(">")[1:]
    chosen.write_text("".join(f">{r}" for r in records if r.split()[0] in RECORDS), encoding="utf-8")
    explain(
        chosen, "--no-check", "--shuffles", "0", "--plot", folder / "explain.svg", "--out", folder / "two.tsv"
    )
    made = {"explain.svg": folder / "explain.svg"}
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"none of {', '.join(BROWSERS)} is here: no screenshots", file=sys.stderr)
        return made
    explain(EXAMPLE, "--shuffles", "0", "--out", folder / "all.tsv", "--html", folder / "page.html")
    screenshot(browser, folder / "page.html", folder / "explain-page.png")
    return made | {"explain-page.png": folder / "explain-page.png"}


def explain(source: Path, *words: object) -> None:
    command = ["explain", source, "--model", "ecoli-promoter", "--method", "rollout", "--quiet", *words]
    subprocess.run([sys.executable, "-m", "seqray", *map(str, command)], check=True)


def screenshot(browser: str, page: Path, picture: Path) -> None:
    """The top of a page, as a browser without a window draws it."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,900"]
    subprocess.run(
        [browser, *flags, "--virtual-time-budget=4000", f"--screenshot={picture}", page.as_uri()],
        check=True,
        capture_output=True,
    )


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in draw(Path(folder)).items():
            shutil.copyfile(path, FIGURES / name)
            print(f"wrote docs/figures/{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
