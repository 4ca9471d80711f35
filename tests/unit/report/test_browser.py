"""The page in a real browser: hostile names are text, and the controls do what they say."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape

import pytest

from seqray.report.pages.alignments import render_alignments
from seqray.report.pages.audit import render_audit
from seqray.report.pages.evaluation import render_evaluation, render_summary
from seqray.report.pages.scan import render_scan
from seqray.report.pages.sequences import render_sequences

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "</script><svg onload=\"document.title='owned'\">",
)
PROBE = """<script>
const visible = (element) => getComputedStyle(element).display !== "none";
const seen = (mark) => [...document.querySelectorAll(mark)].map(visible);
const click = (box) => { box.click(); };
const report = {};
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const shade = () => document.querySelector("[data-l]").innerHTML.replace(/ xmlns="[^"]*"/g, "");
report.before = seen(".m1").every(Boolean);
click(document.querySelector("[data-for=m1]"));
report.hidden = seen(".m1").some(Boolean);
report.others = seen(".m0, .m2, .lg").every(Boolean);
report.mixed = document.querySelector("#every").indeterminate;
click(document.querySelector("#every"));
report.all = seen(".m0, .m1, .m2").every(Boolean);
click(document.querySelector("#every"));
report.none = seen(".m0, .m1, .m2").some(Boolean);
const first = shade(), select = document.querySelector("#shade");
select.value = "1"; select.dispatchEvent(new Event("change"));
report.shaded = /class="l[1-6]"/.test(shade()) && !/class="l[A-Fa-f]"/.test(shade());
select.value = "0"; select.dispatchEvent(new Event("change"));
report.same = first.match(/d="[^"]*"/g).sort().join() === shade().match(/d="[^"]*"/g).sort().join();
const filter = document.querySelector("#filter");
filter.value = "ONERROR"; filter.dispatchEvent(new Event("input"));
report.found = document.querySelector("#found").textContent;
report.left = seen(".record").filter(Boolean).length;
report.some = visible(document.querySelector("#none"));
filter.value = "no such record"; filter.dispatchEvent(new Event("input"));
report.nothing = visible(document.querySelector("#none"));
filter.value = ""; filter.dispatchEvent(new Event("input"));
report.steps = [..."jjjk"].map((key) => { press(key); return document.activeElement.id; }).join();
document.documentElement.dataset.report = JSON.stringify(report);
</script></body>"""


def dump(page, folder):
    """The document after its scripts ran, as Chromium writes it."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]
    options += ["--window-size=1400,900"]
    command = [BROWSER, *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180)
    return done.stdout


@pytest.fixture
def hostile_page(make_report):
    data = make_report(records=3)
    renamed = [replace(e, id=HOSTILE[e.record], label=HOSTILE[e.record]) for e in data.explanations]
    return render_sequences(replace(data, explanations=renamed, title="Safe & sound", provenance=HOSTILE))


def without_policy(page):
    """A copy in which any script would run: what keeps hostile names quiet is then the escaping alone."""
    weak, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert count == 1
    return weak


def test_hostile_names_are_text_and_the_controls_work(hostile_page, tmp_path):
    weak = without_policy(hostile_page).replace("</body>", PROBE)
    page = dump(weak, tmp_path)
    assert re.findall(r"<title>([^<]*)</title>", page) == ["Safe &amp; sound"]
    assert [unescape(found) for found in re.findall(r"<h3><a[^>]*><bdi>([^<]*)</bdi>", page)] == list(HOSTILE)
    assert "<img" not in page
    report = unescape(re.search(r'data-report="([^"]*)"', page)[1])
    expected = (
        '{"before":true,"hidden":false,"others":true,"mixed":true,"all":true,"none":false,"shaded":true,'
        '"same":true,"found":"1 of 3","left":1,"some":false,"nothing":true,"steps":"r0,r1,r2,r1"}'
    )
    assert report == expected


def test_the_policy_lets_the_page_run_and_nothing_else(hostile_page, tmp_path):
    foreign = "<script>document.title = 'owned'</script></body>"
    page = dump(hostile_page.replace("</body>", foreign), tmp_path)
    assert re.search(r'<html lang="en" class="js"', page)
    assert "<title>Safe &amp; sound</title>" in page


WIDTHS = """<!DOCTYPE html><meta charset=utf-8><body><script>
const report = {};
const measure = (kind, text, width) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.srcdoc = text;
  document.body.append(frame);
  frame.addEventListener("load", () => {
    const page = frame.contentDocument.documentElement;
    const parts = width < 1280 ? "none" : ".scroll:not(.wide), .heads, .ranks";
    const cut = [...page.querySelectorAll(parts)].filter((one) => one.scrollWidth > one.clientWidth);
    const shown = cut.map((one) => one.outerHTML.slice(0, 300)).join();
    report[`${kind} ${width}`] = [page.scrollWidth > page.clientWidth, shown];
    document.documentElement.dataset.report = JSON.stringify(report);
  });
};
for (const [kind, text] of Object.entries(PAGES)) [1280, 500].forEach((width) => measure(kind, text, width));
</script></body>"""
LONG = "a name of some length "


def test_no_page_is_wider_than_its_window(
    made_scan, make_report, explained, report, made_audit, made_evaluation, tmp_path
):
    """At 1280 px no table is cut, either; in narrow windows tables and letters scroll by themselves."""
    calls = dict.fromkeys(("letters", "positions"), "5" * 8) | {"parts": "all", "sequences": "120"}
    calls |= {
        "calls": "1200",
        "calls_per_mb": "1421.4",
        "threshold": "0.26702",
        "expected_precision": "0.5612",
    }
    ends = dict.fromkeys(("expected_precision_low", "expected_precision_high"), "0.8")
    chance = dict.fromkeys([f"false_calls_per_mb{end}" for end in ("", "_low", "_high")], "1321.4")
    of_figures = {"split": "test", "n": "12000", "positives": "1200"}
    figures = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece", "brier")
    figures += ("mcc_low", "mcc_high", "auroc_low", "auroc_high", "floor_mcc", "floor_auroc")
    of_figures |= dict.fromkeys(figures, "0.912345")
    name = {"sample": LONG * 4, "model": "bacteria-promoter-fast sha256:12345678"}
    contig = "gi|9626243|ref|NC_001416.1|_contig_of_some_length_{}"
    of_two, of_three = (made_evaluation((*names, LONG), LONG) for names in (("background",), ("a", "b")))
    pages = {
        "scan": render_scan(made_scan()),
        "predicted": render_scan(made_scan(names=contig, contig=contig)),
        "sequences": render_sequences(make_report()),
        "alignments": render_alignments(report(explained(3, 120))),
        "audit": render_audit(made_audit(LONG), [LONG * 9]),
        "evaluation": render_evaluation(of_two, LONG, [LONG * 9]),
        "classes": render_evaluation(of_three, LONG, [LONG * 9]),
        "scans": render_summary(LONG, [name | calls | ends | chance, name | calls]),
        "evaluations": render_summary(LONG, [name | of_figures]),
    }
    written = json.dumps({kind: without_policy(page) for kind, page in pages.items()}).replace("</", "<\\/")
    page = dump(WIDTHS.replace("PAGES", written), tmp_path)
    found = json.loads(unescape(re.search(r'data-report="([^"]*)"', page)[1]))
    assert found == {f"{kind} {width}": [False, ""] for kind in pages for width in (1280, 500)}


SEARCH = """<script>
const report = {};
const rows = () => document.querySelectorAll("#table tbody tr");
const cells = (n) => [...rows()].map((row) => row.children[n].textContent);
const type = (id, text) => {
  const input = document.querySelector(id);
  input.value = text;
  input.dispatchEvent(new Event("input"));
};
const sort = (column) => document.querySelector(`[data-column=${column}]`).click();
report.all = rows().length;
report.printed = document.querySelector("#printed").textContent;
sort("gene");
report.genes = cells(5).slice(-3);
report.shown = document.querySelector("#shown").textContent;
sort("score");
report.best = cells(2)[0];
sort("score");
report.worst = cells(2)[0];
document.querySelector("#next").click();
report.second = rows().length;
type("#query", "G7");
report.gene = [...new Set(cells(5))].sort().join();
type("#query", "1,001-2,000");
report.range = cells(0).map((text) => Number(text.replace(",", ""))).every((n) => n >= 1001 && n <= 2000);
report.found = rows().length;
const shown = () => document.querySelector("#shown").textContent.split(" ")[0];
const count = (text) => { type("#query", text); return shown(); };
report.places = ["chromosome:1001-2000", "Chromosome:1,001\u20132,000", "other:1,001-2,000"].map(count);
report.spots = ["SPOT", "chromosome:SPOT", "chromosome:SPOT (\u2212)", "other:SPOT"].map(count);
type("#query", "");
type("#least", "0.9");
report.high = cells(2).every((text) => Number(text) >= 0.9) && rows().length;
type("#query", "onerror");
report.hostile = cells(7)[0];
const none = () => !document.querySelector("#none").hidden;
report.none = [none(), count("no such gene") === "0" && none()];
document.documentElement.dataset.report = JSON.stringify(report);
</script></body>"""


def test_the_table_of_calls_sorts_and_searches(made_scan, tmp_path):
    data = made_scan(calls=150)
    calls = list(data.calls)
    hostile = replace(calls[3].context, gene=HOSTILE[1], within=HOSTILE[1], within_strand="opposite")
    calls[3] = replace(calls[3], score=0.95, context=hostile)
    page = render_scan(replace(data, calls=calls, title="Safe & sound"))
    spot = calls[7].site + 1
    page = dump(without_policy(page).replace("</body>", SEARCH.replace("SPOT", f"{spot:,}")), tmp_path)
    there = sum(1001 <= call.site + 1 <= 2000 for call in calls)
    near = str(sum(abs(call.site + 1 - spot) <= 500 for call in calls))
    scores = sorted(call.score for call in calls)
    found = json.loads(unescape(re.search(r'data-report="([^"]*)"', page)[1]))
    assert found == {
        "all": 100,
        "shown": "150 of 150 calls",
        "printed": "100 of 150 calls; the files of the scan have all.",
        "genes": ["g48", "g49", "g49"],  # 1 call of HOSTILE, 1 of g3, 2 of each other
        "best": f"{scores[-1]:.3f}",
        "worst": f"{scores[0]:.3f}",
        "second": 50,
        "gene": ",".join(sorted({call.context.gene for call in calls if "g7" in call.context.gene})),
        "range": True,
        "found": there,
        "places": [str(there), str(there), "0"],
        "spots": [near, near, near, "0"],
        "high": sum(round(score, 3) >= 0.9 for score in scores),
        "hostile": f"{HOSTILE[1]}, antisense",
        "none": [False, True],
    }
    assert re.findall(r"<title>([^<]*)</title>", page)[0] == "Safe &amp; sound"
    assert "<img" not in page
