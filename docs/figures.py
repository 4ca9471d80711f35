"""Draw what the pages show: plots of explanations and of measurements, screenshots by a headless Chromium.

    python docs/figures.py

Without Chromium the screenshots are left as they are, and a line says so.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from textwrap import fill

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
EXAMPLE = ROOT / "data/example/promoters.fa"
STRETCH = ROOT / "data/example/stretch.gb"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
RECORDS = ("lacUV5", "recA")
COLORS = ("#0072B2", "#D55E00", "#999999")


def draw(folder: Path) -> dict[str, Path]:
    """Make the files in a folder; name of the figure to where it lies."""
    chosen = folder / "two.fa"
    records = EXAMPLE.read_text(encoding="utf-8").split(">")[1:]
    chosen.write_text("".join(f">{r}" for r in records if r.split()[0] in RECORDS), encoding="utf-8")
    explain(
        chosen, "--no-check", "--shuffles", "0", "--plot", folder / "explain.svg", "--out", folder / "two.tsv"
    )
    draw_growth(ROOT / "benchmarks/results/growth.tsv", folder / "growth.svg")
    made = {name: folder / name for name in ("explain.svg", "growth.svg")}
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"none of {', '.join(BROWSERS)} is here: no screenshots", file=sys.stderr)
        return made
    explain(EXAMPLE, "--shuffles", "0", "--out", folder / "all.tsv", "--html", folder / "page.html")
    scan = ["scan", STRETCH, "--model", "bacteria-genome", "--quiet", "--out", folder / "calls.tsv"]
    seqray(*scan, "--html", folder / "scan.html")
    pages = {"explain-page.png": "page.html", "scan-page.png": "scan.html"}
    for picture, page in pages.items():
        screenshot(browser, folder / page, folder / picture)
    return made | {picture: folder / picture for picture in pages}


def explain(source: Path, *words: object) -> None:
    seqray("explain", source, "--model", "ecoli-promoter", "--method", "rollout", "--quiet", *words)


def seqray(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "seqray", *map(str, words)], check=True)


def draw_growth(table: Path, picture: Path) -> None:
    """CPU seconds over size, a panel for each size that grows."""
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        methods = found.setdefault(row["what"], {})
        methods.setdefault(row["method"], []).append((int(row["x"]), float(row["cpu_s"])))
    with matplotlib.rc_context({"svg.hashsalt": "seqray", "font.size": 8}):
        figure = Figure(figsize=(13, 5.5), layout="constrained")
        for axes, (what, methods) in zip(
            figure.subplots(2, -(-len(found) // 2)).flat, found.items(), strict=False
        ):
            for (method, points), color in zip(methods.items(), COLORS, strict=False):
                axes.loglog(*zip(*points, strict=True), "o-", ms=3, color=color, label=method)
            sizes = [size for size, _ in next(iter(methods.values()))][::2]
            axes.set(title=fill(what, 28), ylabel="CPU seconds")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
            axes.xaxis.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
            if len(methods) > 1:
                axes.legend(frameon=False, fontsize=7, loc="lower right")
        figure.savefig(picture, format="svg", metadata={"Date": None})


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
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    main()
