"""The benchmark on sets of other sources: windows, sets, the figures of a card; and its data."""

import json

import numpy as np
import pytest

import transfer
from machine import keep_rows
from other_sources import antisense, window
from published_sets import hold_out
from seqray.core.alphabet import reverse_complement
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.genome.genes import Gene
from seqray.homology.kmers import KmerSet
from seqray.modelfile.model import TrainedModel
from transfer import LEFT_OUT, QUESTIONS, Known, Scored, middle
from transfer_cards import card_figures, put_first

RNG = np.random.default_rng(3)
CONTIG = "".join(RNG.choice(list("ACGT"), 400))


class _Letters:
    """A baseline whose probability is the share of G among the known letters."""

    def predict_proba(self, sequences: list[str]) -> np.ndarray:
        share = np.array([s.count("G") / max(1, len(s) - s.count("N")) for s in sequences])
        return np.stack([1 - share, share], axis=1)


def _row(model: str, name: str, shift: int, auroc: float, protocol: str = "unrelated") -> dict[str, str]:
    names = (*transfer.MEASURES, "coverage", "floor_auroc", "floor_mcc")
    figures = dict.fromkeys(names, "0.5000")
    figures |= {"auroc": f"{auroc:.4f}", "low": f"{auroc - 0.1:.4f}", "high": f"{auroc + 0.1:.4f}"}
    return {"model": model, "set": name, "context": "-", "shift": str(shift), "protocol": protocol, **figures}


def test_the_headline_of_a_card_is_the_lowest_on_a_source_that_was_left_out():
    rows = [
        _row("mouse-tata-promoter", "gue-tata", 0, 0.6),  # its source was in training
        _row("tata-no-gue", "gue-tata", 0, 0.8),
        _row("tata-no-gue", "gue-tata", -5, 0.4),  # cut elsewhere
        _row("tata-no-cnnprom", "tata-cnnprom", 0, 0.9),
        _row("tata-no-cnnprom", "tata-cnnprom", 0, 0.3, "all"),  # has relatives of the training data
        _row("human-promoter-300", "ipromoter-human", 0, 0.2),  # another model
    ]
    figures = card_figures(rows, "mouse-tata-promoter")
    split = f"gue-tata, {LEFT_OUT}; the lowest of 2 sets"
    expected = {"metric": "auroc", "split": split, "value": 0.8, "low": 0.7, "high": 0.9}
    assert figures["headline"] == expected
    assert [name for name in figures if name != "headline"] == [
        f"another source, gue-tata, {LEFT_OUT}",
        f"another source, gue-tata, {LEFT_OUT}, cut 5 letters off",
        f"another source, tata-cnnprom, {LEFT_OUT}",
        "source in training, gue-tata",
    ]


def test_the_headline_of_a_model_that_saw_no_other_source_is_its_lowest():
    scored = (("ipromoter-human", 0, 0.9), ("ipromoter-mouse", 0, 0.8), ("ipromoter-mouse", -5, 0.5))
    figures = card_figures([_row("human-promoter-300", *row) for row in scored], "human-promoter-300")
    assert figures["headline"]["value"] == 0.8
    assert figures["headline"]["split"] == "ipromoter-mouse, another source; the lowest of 2 sets"
    assert figures["another source, ipromoter-mouse, cut 5 letters off"]["auroc"]["value"] == 0.5


def test_figures_of_other_sources_come_first_and_the_rest_stays(tmp_path):
    path = tmp_path / "model.card.json"
    path.write_text('{"headline": {"value": 0.99}, "another source, old": {}, "own, official": {"mcc": 0.7}}')
    put_first(path, {"headline": {"value": 0.8}, "another source, new": {}})
    written = json.loads(path.read_text())
    assert list(written) == ["headline", "another source, new", "own, official"]
    assert written["headline"] == {"value": 0.8}


def test_models_that_lack_a_source_are_scored_on_sets_of_the_model_beside_them():
    shipped = {name for question in QUESTIONS if not question.without for name in question.sets}
    assert {name for question in QUESTIONS if question.without for name in question.sets} <= shipped
    assert shipped <= set(transfer.OTHER_SOURCES)


@pytest.mark.parametrize("shift", [0, -2, 3])
def test_windows_move_and_letters_beyond_the_end_are_unknown(monkeypatch, tiny_model, shift):
    seen: list[str] = []

    def answers(model: object, sequences: list[str]) -> tuple[np.ndarray, np.ndarray]:
        seen.extend(sequences)
        return np.linspace(0, 1, len(sequences)), np.ones((len(sequences), 2), dtype=bool)

    monkeypatch.setattr(transfer, "answers", answers)
    length = tiny_model.card.window
    rows = [CONTIG[:length], CONTIG[length : 2 * length]]
    examples = [LabeledSequence(s, label, s) for s, label in zip(rows, ("promoter", "other"), strict=True)]
    words = KmerSet([np.zeros(50, dtype=np.uint8)], transfer.SHARED_WORD)
    scored = Scored.score(examples, shift, tiny_model, Known(_Letters(), _Letters(), words))  # pyright: ignore[reportArgumentType]
    assert scored is not None
    expected = "N" * -shift + rows[0][: length + shift] if shift < 0 else rows[0][shift:] + "N" * shift
    assert seen[0] == expected
    assert scored.truth.tolist() == [True, False]
    assert scored.fresh.all()


def test_a_context_is_told_or_recognized_from_the_windows(monkeypatch, tiny_model):
    seen: list[str] = []

    def recognize(model: TrainedModel, records: list[SequenceRecord]) -> tuple[TrainedModel, object]:
        seen.extend(record.sequence for record in records)
        return model, records

    monkeypatch.setattr(transfer, "recognize_context", recognize)
    for asked, told, read in (("", "-", []), (transfer.RECOGNIZED, "recognized: none", ["ACGT"])):
        assert (transfer.set_context(tiny_model, asked, ["ACGT"])[1], seen) == (told, read)


def test_a_window_has_the_start_at_its_index_on_both_strands_and_its_middle_no_flanks():
    assert middle("NNACGTNN", 4) == middle("ACGT", 4) == "ACGT"
    forward, reverse = window(CONTIG, 150, "+"), window(CONTIG, 150, "-")
    assert forward == CONTIG[90:171]
    assert reverse == reverse_complement(CONTIG[130:211])
    assert reverse[60] == reverse_complement(CONTIG[150])
    assert window(CONTIG, 59, "+") == window(CONTIG, 380, "+") == ""


def test_antisense_fragments_lie_in_coding_genes_and_are_read_against_them():
    genes = {"c": [Gene(100, 250, "+", "a"), Gene(300, 390, "+", "b", coding=False)]}
    fragments = list(antisense({"c": SequenceRecord("c", CONTIG)}, genes, 30))
    assert len(fragments) == 30
    assert all(reverse_complement(letters) in CONTIG[100:250] for letters in fragments)


def test_groups_of_a_source_are_held_out_whole_and_large_ones_stay():
    small = [LabeledSequence("A", "p", f"s{i}", f"g{i // 2}", "train", "one") for i in range(400)]
    large = [LabeledSequence("A", "p", f"l{i}", "big", "train", "one") for i in range(30)]
    other = [LabeledSequence("A", "p", f"o{i}", f"g{i}", "train", "two") for i in range(10)]
    marked = hold_out([*small, *large, *other], "one", 0.2)
    assert all(a.split == b.split for a, b in zip(marked[:400:2], marked[1:400:2], strict=True))
    assert {e.split for e in marked[400:]} == {"train"}
    shares = [sum(e.split == part for e in marked[:400]) / 400 for part in ("test", "validation")]
    assert shares == pytest.approx([0.2, 0.125], abs=0.1)  # more than three deviations of 200 groups


def test_rows_that_are_not_measured_anew_stay_with_their_notes(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("# command: b\n# rows kept: command: a\nmodel\tset\none\tx\ntwo\ty\n", encoding="utf-8")
    notes, rows = keep_rows(table, "model", ["one"])
    assert notes == ["rows kept: command: b", "rows kept: command: a"]
    assert rows == [{"model": "two", "set": "y"}]
    assert keep_rows(tmp_path / "none.tsv", "model", ["one"]) == ([], [])
