"""`seqray.predict`, `scan` and `explain` say what the command line writes."""

import math
from copy import copy
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from Bio import SeqIO
from Bio.Align import MultipleSeqAlignment
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

import seqray
from seqray.api import verbs
from seqray.api.verbs import ExplainSettings, ScanSettings
from seqray.cli.main import main
from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError, settings_as_options
from seqray.explanations.options import AlignmentOptions, ExplainOptions
from seqray.io.calls import CALL_COLUMNS
from seqray.io.explanations import COLUMN_COLUMNS, EXPLANATION_COLUMNS
from seqray.kinds.objects import as_alignments
from seqray.modelfile.file import save_model
from seqray.scanning.options import ScanOptions

RNG = np.random.default_rng(2)
SHORT = {f"r{i}": "".join(RNG.choice(list("ACGT"), 20 - i % 4)) for i in range(10)} | {"n": "ACGTNNACGTACGT"}
LONG = {f"c{i}": "".join(RNG.choice(list("ACGT"), 300 + i)) for i in range(2)}


def written(tmp_path, words, sequences) -> pd.DataFrame:
    """Table that a verb writes for these sequences."""
    source, out = tmp_path / "in.fa", tmp_path / "out.tsv"
    source.write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences.items()))
    assert main([words[0], str(source), *map(str, words[1:]), "--quiet", "-o", str(out)]) == 0
    return pd.read_csv(out, sep="\t", comment="#", keep_default_na=False)


def same(frame: pd.DataFrame, table: pd.DataFrame) -> bool:
    """Whether all cells agree, numbers to the six digits that a table carries; ``.`` is nan."""

    def cell(a, b):
        if isinstance(a, float):
            return (b == "." and math.isnan(a)) or math.isclose(a, float(b), rel_tol=1e-5, abs_tol=1e-9)
        return str(a) == str(b) or (a is pd.NA and b == ".")

    if list(frame.columns) != list(table.columns) or len(frame) != len(table):
        return False
    return all(
        cell(a, b) for name in frame.columns for a, b in zip(frame[name].tolist(), table[name], strict=True)
    )


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.9}, {"prior": 0.01}])
def test_predict_is_the_table_of_the_verb(settings, tiny_model, tiny_model_file, tmp_path):
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    table = written(tmp_path, ["predict", "-m", tiny_model_file, *words], SHORT)
    frame = seqray.predict(tiny_model, SHORT, **settings)
    assert same(frame, table)
    assert frame.attrs["threshold"] == settings.get("threshold", tiny_model.card.threshold)
    assert same(seqray.predict(tiny_model_file, pd.Series(SHORT), **settings), table)


def test_sets_come_with_a_coverage(tmp_path):
    letters = {"a": "ACGT" * 20}
    table = written(tmp_path, ["predict", "-m", "bacteria-promoter", "--coverage", 0.9], letters)
    assert same(seqray.predict("bacteria-promoter", letters, coverage=0.9), table)


@pytest.mark.parametrize(("rule", "ahead", "behind"), [("ends", 10, 10), ("start", 20, 0)])
def test_longer_sequences_are_cut_as_asked(rule, ahead, behind, tiny_model, tmp_path):
    path = tmp_path / "anywhere.safetensors"
    save_model(path, tiny_model.networks, replace(tiny_model.card, site=None))
    model = seqray.load_model(path)
    table = written(tmp_path, ["predict", "-m", path, "--truncate", rule], LONG)
    frame = seqray.predict(model, LONG, truncate=rule)
    assert same(frame, table)
    assert frame["flags"].str.contains("truncated").all()
    cut = {name: x[:ahead] + x[len(x) - behind :] for name, x in LONG.items()}
    assert frame["p_promoter"].tolist() == seqray.predict(model, cut)["p_promoter"].tolist()
    explained = seqray.explain(model, LONG, truncate=rule, shuffles=0)
    read = explained[(explained.record == "c0") & (explained.score > 0)]["position"]
    assert set(read) == {*range(ahead), *range(300 - behind, 300)}
    unread = explained[(explained.record == "c0") & ~explained.position.isin(read)]
    assert unread[["score", "rank"]].isna().all(axis=None)
    with pytest.raises(InputError, match=r"by truncate='ends'$"):
        seqray.predict(model, LONG)
    with pytest.raises(ConfigError, match="reads windows around a site"):
        seqray.predict(tiny_model, LONG, truncate=rule)


def test_scan_is_the_table_of_the_verb(tiny_model, tiny_model_file, tmp_path):
    table = written(tmp_path, ["scan", "-m", tiny_model_file, "--threshold", 0.6, "--strand", "plus"], LONG)
    frame = seqray.scan(tiny_model, LONG, threshold=0.6, strand="plus")
    assert len(frame)
    assert same(frame, table)
    assert frame.attrs["threshold"] == 0.6
    assert frame.attrs["letters"] == 601
    assert frame.attrs["expected_false_calls"] > 0
    assert frame.attrs["skipped"] == {}
    quick = seqray.scan(tiny_model, LONG, threshold=0.6, null_mb=0)
    assert quick.attrs["expected_false_calls"] is None


def test_sites_in_lower_case_are_left_out_of_every_kind_of_sequence(tiny_model, tmp_path):
    letters = LONG["c0"][:100] + LONG["c0"][100:200].lower() + LONG["c0"][200:]
    path = tmp_path / "masked.fa"
    path.write_text(f">c0\n{letters}\n")
    settings = {"threshold": 0.0, "stride": 1, "null_mb": 0, "min_distance": 1}
    everywhere = seqray.scan(tiny_model, path, **settings)
    assert everywhere.site.between(100, 199).any()
    expected = everywhere[~everywhere.site.between(100, 199)].site.tolist()
    options = seqray.ScanOptions(**settings, skip_soft_masked=True)
    for records in ([seqray.SequenceRecord("c0", letters)], list(seqray.read_fasta(path))):
        frame = seqray.scan(tiny_model, records, **settings, skip_soft_masked=True)
        calls = seqray.scan_records(tiny_model, records, options).calls
        assert frame.site.tolist() == [call.site for call in calls] == expected
    assert seqray.scan(tiny_model, path, **settings, skip_soft_masked=True).site.tolist() == expected


def test_explain_is_the_table_of_the_verb(tiny_model, tiny_model_file, tmp_path):
    words = ["explain", "-m", tiny_model_file, "--no-check", "--shuffles", 3]
    words += ["--method", "rollout", "--method", "ism"]
    table = written(tmp_path, words, SHORT)
    frame = seqray.explain(tiny_model, SHORT, ["rollout", "ism"], shuffles=3)
    assert same(frame, table)
    top = seqray.explain(tiny_model, SHORT, top=2, shuffles=0)
    assert sorted(top["rank"]) == sorted([1, 2] * len(SHORT))


def test_explained_sequences_have_the_flags_of_predicted_ones(tiny_model):
    sequences = {"short": "ACGTACGTAC", "n": "ACGTNNACGTACGTACGTAC", "whole": "ACGTAGCTAGCTGACTGACT"}
    flags = seqray.explain(tiny_model, sequences, shuffles=0).attrs["flags"]
    assert "short" in flags["short"].split(",")
    assert "ambiguous=2" in flags["n"].split(",")
    predicted = seqray.predict(tiny_model, sequences).set_index("id")["flags"]
    assert flags == predicted[predicted != "."].to_dict()


def test_nothing_gives_frames_of_no_rows_with_all_columns(tiny_model):
    assert list(seqray.predict(tiny_model, []).columns)[:3] == ["id", "length", "label"]
    assert list(seqray.scan(tiny_model, []).columns) == list(CALL_COLUMNS)
    assert list(seqray.explain(tiny_model, []).columns) == list(EXPLANATION_COLUMNS)
    assert all(len(f(tiny_model, [])) == 0 for f in (seqray.predict, seqray.scan, seqray.explain))


def test_a_short_contig_is_skipped_and_named(tiny_model):
    with pytest.warns(UserWarning, match="skipped 1 sequence: 'short'"):
        frame = seqray.scan(tiny_model, {"short": "ACGT", **LONG}, threshold=0.6, null_mb=0)
    assert frame.attrs["skipped"] == {"short": "4 bases, shorter than the window of 20"}
    pd.testing.assert_frame_equal(frame, seqray.scan(tiny_model, LONG, threshold=0.6, null_mb=0))
    with pytest.raises(InputError, match="shorter than the window"):
        seqray.scan(tiny_model, {"short": "ACGT"}, strict=True)


@pytest.mark.parametrize("verb", [seqray.predict, partial(seqray.explain, shuffles=0)])
def test_what_the_model_cannot_read_is_left_out_where_asked(verb, tiny_model):
    usable = {"a": "ACGT" * 5, "b": "GATTC" * 4}
    others = {"long": "A" * 21, "odd": "AC!T", "none": "", "missing": None, "nan": math.nan}
    with pytest.raises(InputError):
        verb(tiny_model, usable | others)
    with pytest.warns(UserWarning, match="skipped 5 sequences: 'odd' .*'long' .has 21 letters"):
        frame = verb(tiny_model, {"odd": "AC!T", **usable} | others, skip_unusable=True)
    assert list(frame.attrs["skipped"]) == ["odd", "long", "none", "missing", "nan"]
    pd.testing.assert_frame_equal(frame, verb(tiny_model, usable))


@pytest.mark.parametrize(
    ("verb", "function", "sequences"),
    [
        ("predict", seqray.predict, {f"r{i}": "AC" * 8 for i in range(400)}),
        ("scan", partial(seqray.scan, null_mb=0), {"c": "AC" * 6000}),
    ],
)
def test_all_sequences_together_are_judged_as_by_the_verb(
    verb, function, sequences, tiny_model, tiny_model_file, tmp_path, capfd
):
    source = tmp_path / "in.fa"
    source.write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences.items()))
    options = ["--null-mb", "0"] if verb == "scan" else []
    words = [verb, str(source), "--model", str(tiny_model_file), *options, "-o", str(tmp_path / "o.tsv")]
    assert main(words) == 0
    said = [line.removeprefix("seqray: ") for line in capfd.readouterr().err.splitlines()]
    with pytest.warns(UserWarning, match="caution: ") as warned:
        found = function(tiny_model, sequences).attrs["findings"]
    with pytest.warns(UserWarning, match="caution: "), settings_as_options({}):
        assert set(function(tiny_model, sequences).attrs["findings"]) < set(said)
    assert [str(one.message) for one in warned] == [line for line in found if line.startswith("caution: ")]


def test_evaluate_is_the_table_of_the_verb(tiny_model, tiny_model_file, tmp_path):
    letters, known = (
        {f"{name}{i:02}": "".join(RNG.choice(list("ACGT"), 20)) for i in range(60)} for name in "et"
    )
    labels, learned = (RNG.choice(tiny_model.card.classes, 60).tolist() for _ in "et")
    for name, part, classes in (("e", letters, labels), ("t", known, learned)):
        rows = zip(part, part.values(), classes, range(60), strict=True)
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        (tmp_path / f"{name}.tsv").write_text("id\tsequence\tlabel\tgroup\n" + text)
    out, tables = tmp_path / "o.tsv", [str(tmp_path / f"{name}.tsv") for name in "et"]
    words = ["evaluate", "-m", str(tiny_model_file), "--test", tables[0], "--train", tables[1]]
    assert main([*words, "--quiet", "-o", str(out)]) == 0
    written = pd.read_csv(out, sep="\t", comment="#")
    found = seqray.evaluate(tiny_model, letters, labels, train=(known, learned))
    assert found.subset.tolist() == written.subset.tolist()
    assert found.source.tolist() == written.source.tolist()
    assert {"model", "floor", "forest", "model-forest"} < {*found.source}
    assert found.metric.tolist() == written.metric.tolist()
    np.testing.assert_allclose(found.value.astype(float), written.value.astype(float), rtol=1e-5)
    predicted = seqray.predict(seqray.SequenceClassifier.load(tiny_model_file), letters)
    found = found.query("source == 'model' and subset == 'all'").set_index("metric")
    assert found.value["accuracy"] == pytest.approx((predicted.label == labels).mean())


def test_progress_is_shown_where_it_is_asked_for(tiny_model, monkeypatch, capsys):
    calls = (partial(seqray.predict, tiny_model, SHORT), partial(seqray.scan, tiny_model, LONG))
    calls += (partial(seqray.explain, tiny_model, SHORT, shuffles=0),)
    for call in calls:
        quiet = call()
        assert capsys.readouterr().err == ""
        with monkeypatch.context() as patch:
            patch.setattr(verbs, "WAIT", 0)
            shown = call(progress=True)
        assert "s/it" in (said := capsys.readouterr().err) or "/s" in said
        pd.testing.assert_frame_equal(shown, quiet)


def test_keywords_are_the_settings():
    assert ScanSettings.__annotations__.keys() == {field.name for field in fields(ScanOptions)}
    explained = {field.name for kind in (ExplainOptions, AlignmentOptions) for field in fields(kind)}
    assert ExplainSettings.__annotations__.keys() == explained - {"methods", "attention"}


def test_settings_are_checked(tiny_model):
    with pytest.raises(TypeError, match="unknown setting 'strnd'; known are stride"):
        seqray.scan(tiny_model, LONG, strnd="plus")
    with pytest.raises(TypeError, match="unknown setting 'methods'"):
        seqray.explain(tiny_model, SHORT, methods=("ism",))
    with pytest.raises(ConfigError, match="no class 'x'"):
        seqray.explain(tiny_model, SHORT, target="x")
    with pytest.raises(ConfigError, match="unknown dtype 'fp16'; known are fp32, bf16"):
        seqray.predict(tiny_model, SHORT, dtype="fp16")
    with pytest.raises(ConfigError, match="unknown device 'tpu'; give auto, cpu"):
        seqray.predict(tiny_model, SHORT, device="tpu")
    with pytest.raises(ConfigError, match="'top' is -1; give a whole number, 1 or more"):
        seqray.explain(tiny_model, SHORT, top=-1)


def test_errors_name_parameters_and_not_options(tiny_model, tmp_path):
    twice = tmp_path / "twice.fa"
    twice.write_text(">a\nACGT\n>a\nACGT\n")
    with pytest.raises(InputError, match=r"or the column id\), or read the file with duplicates='rename'$"):
        seqray.predict(tiny_model, twice)
    for settings in ({"species": "x"}, {"genes": None}, {"codon_table": 4}):
        [name] = settings
        with pytest.raises(ConfigError, match=f"^'{name}' is for models for genomes"):
            seqray.scan(tiny_model, LONG, **settings)
    with pytest.raises(InputError, match=r"^'circular_ids': the input has no sequence named 'x'"):
        seqray.scan(tiny_model, LONG, circular_ids=("x",))


def plain_cells(frame: pd.DataFrame) -> np.ndarray:
    """Cells but the ids of the calls; what is missing is a dot, of whatever type the column is."""
    return frame.iloc[:, 1:].astype(object).fillna(".").to_numpy()


def test_genes_of_biopython_records_are_those_of_their_file(locator, tmp_path):
    record = SeqRecord(Seq("ATG" + LONG["c0"]), "c", annotations={"molecule_type": "DNA"})
    record.features = [SeqFeature(SimpleLocation(0, 90, 1), "CDS")]
    path = tmp_path / "c.gb"
    SeqIO.write(record, path, "genbank")
    assert seqray.scan(locator, path).attrs["genes"] == "1, GenBank c.gb"
    read = seqray.scan(locator, path)
    nameless, plain = copy(record), SeqRecord(Seq(LONG["c0"]), "d")
    nameless.id = "<unknown id>"
    for records in (record, [record, plain], {"c": nameless}, {"other": record}):
        frame = seqray.scan(locator, records)
        assert frame.attrs["genes"] == "1, GenBank the records"
        ours = frame[frame.contig == "c"].reset_index(drop=True)
        assert plain_cells(ours).tolist() == plain_cells(read).tolist()
    [gene] = read.genes().to_dict("records")
    assert (gene["start"], gene["end"]) == (0, 90)
    assert gene["reason"] == "at the end of the contig: 0 bases before it"
    assert seqray.scan(locator, record, genes="predict").attrs["genes"].startswith("0, predicted")
    for none in (None, "none"):
        assert seqray.scan(locator, record, genes=none).attrs["genes"] is None


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("method", ["input-x-gradient", "integrated-gradients", "grad-rollout"])
def test_gradients_are_computed_where_the_caller_has_none(without, method, tiny_model_file):
    with without():
        model = seqray.load_model(tiny_model_file)
        frame = seqray.explain(model, SHORT, method, shuffles=0)
    pd.testing.assert_frame_equal(frame, seqray.explain(tiny_model_file, SHORT, method, shuffles=0))


def test_the_default_number_format_of_torch_changes_nothing(tiny_model_file, alignment_model_file, stockholm):
    inputs = {tiny_model_file: SHORT, alignment_model_file: stockholm[0]}
    frames = [seqray.predict(path, things) for path, things in inputs.items()]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        others = [seqray.predict(path, things) for path, things in inputs.items()]
    finally:
        torch.set_default_dtype(before)
    for one, other in zip(frames, others, strict=True):
        pd.testing.assert_frame_equal(one, other)


# --- alignments ---------------------------------------------------------------------------------------


@pytest.fixture
def stockholm(tmp_path):
    """Two alignments with gaps in the query; the same as Biopython holds them."""
    held, lines = {}, []
    for name, rows in (("one", 3), ("two", 2)):
        texts = ["".join(RNG.choice(list("ACGU-"), 30, p=[0.2] * 5)) for _ in range(rows)]
        records = [SeqRecord(Seq(text), id=f"{name}{i}") for i, text in enumerate(texts)]
        held[name] = MultipleSeqAlignment(records)
        lines += ["# STOCKHOLM 1.0", f"#=GF AC {name}", *(f"{r.id} {r.seq}" for r in records), "//"]
    path = tmp_path / "two.sto"
    path.write_text("\n".join(lines) + "\n")
    return path, held


def test_alignments_are_predicted_and_explained_as_by_the_verbs(stockholm, tmp_path):
    path, held = stockholm
    common = ["-m", "rna-family-type", "--quiet", "-o", str(tmp_path / "out.tsv")]

    def table():
        return pd.read_csv(tmp_path / "out.tsv", sep="\t", comment="#", keep_default_na=False)

    assert main(["predict", str(path), *common]) == 0
    for given in (path, held):
        assert same(seqray.predict("rna-family-type", given), table())
    methods = ["rollout", "occlusion"]
    words = [word for method in methods for word in ("--method", method)]
    for top in (None, 4):
        best = [] if top is None else ["--top", str(top)]
        assert main(["explain", str(path), *common, *words, *best, "--no-check", "--class", "called"]) == 0
        frame = seqray.explain("rna-family-type", held, methods, top=top, target="called")
        assert same(frame, table())
    assert list(seqray.explain("rna-family-type", {}).columns) == list(COLUMN_COLUMNS)


def test_alignments_by_their_place_and_what_is_none(stockholm):
    path, held = stockholm
    assert [one.id for one in as_alignments(held.values(), RNA)] == ["alignment_1", "alignment_2"]
    [one] = as_alignments(held["one"], RNA)
    assert [one.text(row) for row in range(3)] == [str(r.seq) for r in held["one"]]
    assert [a.codes.tolist() for a in as_alignments(as_alignments(path, RNA), RNA)] == [
        a.codes.tolist() for a in as_alignments(held, RNA)
    ]
    with pytest.raises(InputError, match="record 'one': row 'x': unknown letter '!'"):
        list(as_alignments({"one": MultipleSeqAlignment([SeqRecord(Seq("AC!U"), id="x")])}, RNA))
    with pytest.raises(
        InputError, match="alignment 'one': is an alignment of rna, and the model reads protein"
    ):
        list(as_alignments(list(as_alignments(path, RNA)), PROTEIN))
    with pytest.raises(ConfigError, match="reads alignments"):
        seqray.scan("rna-family-type", {"a": "ACGT" * 50})
    with pytest.raises(TypeError, match="unknown setting 'pairs'; known are target"):
        seqray.explain("rna-family-type", path, pairs=True)  # which no frame would hold
    with pytest.raises(TypeError, match="unknown setting 'shuffles'; known are target"):
        seqray.explain("rna-family-type", held, shuffles=2)
