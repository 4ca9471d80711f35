"""Outputs of one scan in igv.js: calls and scores stand where the table of the scan says.

igv.js is fetched once by npm, as the lock file beside this test says, into the cache of pytest. The browser
reaches nothing but a server of this test.
"""

import json
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seqray.cli.main import main
from tables import letters

HERE = Path(__file__).parent
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NPM = shutil.which("npm")
LENGTHS = {"one": 3000, "two": 1500}
PAGE = """<!DOCTYPE html><meta charset=utf-8><div id=igv></div><script type=module>
import igv from "./igv.esm.min.js";
const lengths = LENGTHS;
const tracks = {
  gff3: { url: "calls.gff3", format: "gff3", type: "annotation" },
  bed: { url: "calls.bed", format: "bed", type: "annotation" },
  plus: { url: "score.plus.bw", format: "bigwig", type: "wig" },
  minus: { url: "score.minus.bw", format: "bigwig", type: "wig" },
};
const shown = ({ start, end, strand, score, value }) => ({ start, end, strand, score, value });
const report = {};
try {
  const browser = await igv.createBrowser(document.querySelector("#igv"), {
    loadDefaultGenomes: false,
    reference: { id: "genome", fastaURL: "genome.fa", indexed: false },
    locus: "one:1-1000",
  });
  for (const [name, settings] of Object.entries(tracks)) {
    const track = await browser.loadTrack({ ...settings, name });
    report[name] = {};
    for (const [contig, length] of Object.entries(lengths)) {
      report[name][contig] = (await track.getFeatures(contig, 0, length, 0.1)).map(shown);
    }
  }
} catch (error) {
  report.error = String(error?.stack ?? error);
}
await fetch("report", { method: "POST", body: JSON.stringify(report) });
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, parts of its files too, and takes one report."""

    def do_GET(self):
        span = self.headers.get("Range", "")
        path = Path(self.translate_path(self.path))
        if not span.startswith("bytes=") or not path.is_file():
            super().do_GET()
            return
        first, last = span.removeprefix("bytes=").split("-")
        data = path.read_bytes()
        part = data[int(first) : int(last) + 1 if last else None]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def do_POST(self):
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.reported.set()

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def igv(pytestconfig):
    """The script of igv.js, from the cache."""
    if BROWSER is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on this machine")
    if NPM is None:
        pytest.skip("no npm on this machine")
    folder = Path(pytestconfig.cache.mkdir("igv"))
    script = folder / "node_modules" / "igv" / "dist" / "igv.esm.min.js"
    lock = (HERE / "package-lock.json").read_bytes()
    if not script.exists() or (folder / "package-lock.json").read_bytes() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder / name)
        command = [NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"npm can't fetch igv.js: {done.stderr.strip().splitlines()[-1:]}")
    return script


def scanned(model, folder, *options):
    """Scan two contigs into each format, and return the rows of the table."""
    genome = folder / "genome.fa"
    records = (f">{name}\n{letters(n, n)}\n" for name, n in LENGTHS.items())
    genome.write_text("".join(records))
    outputs = [word for name in ("calls.gff3", "calls.bed", "calls.tsv") for word in ("--out", folder / name)]
    words = ["scan", genome, "--model", model, "--threads", "1", "--null-mb", "0", *outputs, *options]
    assert main([*map(str, words), "--track", str(folder / "score.bw")]) == 0
    lines = (folder / "calls.tsv").read_text().splitlines()
    header, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [dict(zip(header, row, strict=True)) for row in rows]


def opened(folder, igv):
    """What igv.js says of the files in a folder."""
    shutil.copy(igv, folder / igv.name)
    (folder / "index.html").write_text(PAGE.replace("LENGTHS", json.dumps(LENGTHS)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.reported = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0"]
    address = f"http://127.0.0.1:{server.server_address[1]}/index.html"
    chromium = subprocess.Popen(
        [BROWSER, *flags, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert server.reported.wait(180), "igv.js did not finish"
    finally:
        chromium.terminate()
        chromium.wait()
        server.shutdown()
        server.server_close()
    assert "error" not in server.report, server.report["error"]
    return server.report


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("tiny_model_file", ("--stride", "1", "--threshold", "0.6")),
        ("locator_file", ("--genes", "none", "--threshold", "0.5")),
    ],
)
def test_calls_and_scores_stand_where_the_table_says(request, tmp_path, igv, model, options):
    rows = scanned(request.getfixturevalue(model), tmp_path, *options)
    assert {row["contig"] for row in rows} == set(LENGTHS)
    assert {row["strand"] for row in rows} == {"+", "-"}
    found = opened(tmp_path, igv)
    for contig in LENGTHS:
        there = [row for row in rows if row["contig"] == contig]
        places = sorted((int(row["start"]), int(row["end"]), row["strand"]) for row in there)
        assert sorted((f["start"], f["end"], f["strand"]) for f in found["bed"][contig]) == places
        features = found["gff3"][contig]  # each holds its call and the boxes before it
        assert len(features) == len(places)
        for start, end, strand in places:
            assert any(f["start"] <= start < end <= f["end"] and f["strand"] == strand for f in features)
        for kind, strand in (("plus", "+"), ("minus", "-")):
            scores = {
                site: f["value"]
                for f in found[kind][contig]
                for site in range(int(f["start"]), int(f["end"]))
            }
            for row in there:
                if row["strand"] == strand:
                    assert scores[int(row["site"])] == pytest.approx(float(row["score"]), abs=1e-5)
