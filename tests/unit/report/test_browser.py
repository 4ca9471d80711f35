"""The page in a real browser: hostile names are text, and the controls do what they say."""

import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape

import pytest

from seqray.report.pages.alignments import render_alignments
from seqray.report.pages.sequences import render_sequences

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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
filter.value = ""; filter.dispatchEvent(new Event("input"));
press("j"); report.next = document.activeElement.id;
document.documentElement.dataset.report = JSON.stringify(report);
</script></body>"""


def dump(page, folder):
    """The document after its scripts ran, as Chromium writes it."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]
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


@pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on this machine")
def test_hostile_names_are_text_and_the_controls_work(hostile_page, tmp_path):
    weak = without_policy(hostile_page).replace("</body>", PROBE)
    page = dump(weak, tmp_path)
    assert re.findall(r"<title>([^<]*)</title>", page) == ["Safe &amp; sound"]
    assert [unescape(found) for found in re.findall(r"<h3><a[^>]*><bdi>([^<]*)</bdi>", page)] == list(HOSTILE)
    assert "<img" not in page
    report = unescape(re.search(r'data-report="([^"]*)"', page)[1])
    expected = (
        '{"before":true,"hidden":false,"others":true,"mixed":true,"all":true,"none":false,"shaded":true,'
        '"same":true,"found":"1 of 3","left":1,"next":"r0"}'
    )
    assert report == expected


@pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on this machine")
def test_the_policy_lets_the_page_run_and_nothing_else(hostile_page, tmp_path):
    foreign = "<script>document.title = 'owned'</script></body>"
    page = dump(hostile_page.replace("</body>", foreign), tmp_path)
    assert re.search(r'<html lang="en" class="js"', page)
    assert "<title>Safe &amp; sound</title>" in page


@pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on this machine")
def test_the_page_of_alignments_shows_names_as_text(explained, report, tmp_path):
    e = explained(3, 20)
    alignment = replace(e.alignment, id=HOSTILE[0], names=HOSTILE, metadata={"DE": HOSTILE[1]})
    e = replace(e, alignment=alignment, label=HOSTILE[2], target=HOSTILE[1])
    page = render_alignments(report(e, title="Safe & sound", provenance=HOSTILE))
    page = dump(without_policy(page), tmp_path)
    assert re.search(r"<title>([^<]*)</title>", page)[1] == "Safe &amp; sound"
    assert unescape(re.search(r'<h2 id="r0-title"><bdi>([^<]*)</bdi>', page)[1]) == HOSTILE[0]
    assert "<img" not in page
    drawn = re.findall(r"<rect[^>]*><title>([^<]*)</title>", page)
    assert sum(title.startswith("column ") for title in drawn) == 20
    assert sum(title.startswith("columns ") for title in drawn) == 12
