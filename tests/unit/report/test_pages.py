"""Each page as a document: nothing comes from outside, links have targets, names make no element."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from seqray.core.explanation import Check, Place
from seqray.report.pages.alignments import render_alignments
from seqray.report.pages.audit import render_audit
from seqray.report.pages.evaluation import render_evaluation
from seqray.report.pages.scan import render_scan
from seqray.report.pages.sequences import render_sequences

SCRIPTS = {
    "scan": 2,
    "sequences": 1,
    "alignments": 0,
    "audit": 0,
    "evaluation": 0,
}  # of a scan: also its data
HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">\u202e',
    "' onmouseover='alert(1)",
    "</script></title></style><svg onload=alert(1)>",
    "&lt;b&gt; javascript:alert(1)",
)


class Elements(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(page)
        self.text = "".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(params=SCRIPTS)
def page(request, made_scan, make_report, explained, report, made_audit, made_evaluation):
    """Kind of a page, and what renders it with some text in place of every name."""

    def scan(text):
        return render_scan(
            made_scan(title=text, contig=text, names=text + "{}", gene_source=text, expected_note=text)
        )

    def sequences(text):
        plain = make_report(records=2)
        info = {"licence": text, "limits": [text]}
        card = replace(plain.card, name=text, summary=text, info=info, training={text: text})
        curves = [replace(c, method=c.method + text, kind=c.kind + text) for c in plain.faithfulness.curves]
        checks = (Check(text, text, text, 1.0, 0.5, 1.5, 3),)
        faithfulness = replace(plain.faithfulness, verdicts={text: text}, checks=checks, curves=tuple(curves))
        names = {"id": text, "label": text, "target": text, "member": text}
        place = Place(text, 0, 80, "+", 1000)
        explanations = [replace(e, method=e.method + text, place=place, **names) for e in plain.explanations]
        motifs = [replace(m, name=text, consensus=text, known=text) for m in plain.motifs]
        more = {"explanations": explanations, "motifs": motifs, "provenance": [text]}
        return render_sequences(replace(plain, title=text, card=card, faithfulness=faithfulness, **more))

    def alignments(text):
        e = explained(3, 20)
        alignment = replace(e.alignment, id=text, names=(text,) * 3, metadata={"DE": text})
        e = replace(e, alignment=alignment, label=text, target=text)
        return render_alignments(replace(report(e), title=text, provenance=[text]))

    def evaluation(text):
        return render_evaluation(made_evaluation(("background", text), text), text, [text], {"summary": text})

    def audit(text):
        return render_audit(made_audit(text), [text])

    render = {f.__name__: f for f in (scan, sequences, alignments, audit, evaluation)}
    return request.param, render[request.param]


def test_a_page_refers_to_nothing_outside_and_is_the_same_each_time(page):
    kind, render = page
    text = render("plain")
    elements = Elements(text)
    ids = [value for _, key, value in elements.attributes if key == "id"]
    links = [value for _, key, value in elements.attributes if key in {"href", "src", "xlink:href", "srcset"}]
    assert len(ids) == len(set(ids))
    assert {link for link in links if link[0] == "#"} <= {f"#{name}" for name in ids}
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert not {"link", "img", "iframe"} & set(elements.tags)
    assert not re.search(r"https?://|@import|unsafe", text.replace("http://www.w3.org/2000/svg", ""))
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#sign"}
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'; ")
    for part in ("script", "style") if SCRIPTS[kind] else ("style",):
        content = re.search(f"<{part}>(.*?)</{part}>", text, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{part}-src 'sha256-{digest}'" in policy
    assert not [key for _, key, _ in elements.attributes if key == "style"]
    assert text == render("plain")


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_files_is_shown_and_makes_no_element(page, text):
    kind, render = page
    rendered = render(text)
    elements = Elements(rendered)
    expected = {"script": SCRIPTS[kind], "style": 1, "img": 0}
    assert {tag: elements.tags.count(tag) for tag in expected} == expected
    assert not [key for _, key, _ in elements.attributes if key.startswith("on")]
    assert elements.text.count(text.replace("\u202e", "\ufffd")) >= 4
    assert "\u202e" not in rendered
    assert rendered.count("</script") == SCRIPTS[kind]
