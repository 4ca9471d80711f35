"""``seqray pretrain``, and ``seqray train --init`` after it."""

from seqray.modelfile.file import load_model
from seqray.modelfile.initial_weights import load_pretrained
from tables import fasta, letters, tsv, write

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 1, accelerator: cpu}
"""


def test_weights_are_written_and_begun_with(run, tmp_path):
    write(tmp_path / "c.yaml", YAML)
    write(tmp_path / "a.fa", fasta({f"r{i}": letters(400, i) for i in range(5)} | {"empty": ""}))
    rows = [(letters(40, 10 + i), ("promoter", "other")[i % 2]) for i in range(40)]
    write(tmp_path / "data.tsv", tsv("sequence label", rows))
    err = run("pretrain a.fa --config c.yaml --threads 1 --out w.safetensors").err
    assert "'empty'" in err
    assert "50 windows, 2000 letters" in err
    assert load_pretrained(tmp_path / "w.safetensors").facts["examples"] == 50

    train = run.to("train --config c.yaml --train data.tsv")
    line = train("--set model.d_model=32 --init w.safetensors --out x.safetensors", status=2).err
    assert all(word in line for word in ("'model.d_model'", "16", "32"))
    assert "used all 40" not in train("--init w.safetensors --out m.safetensors").err
    assert load_model(tmp_path / "m.safetensors").card.members == 1
    # A model is a start, too: fine-tuning.
    assert "used all 40 of these records" in train("--init m.safetensors --out n.safetensors").err
