"""Fixtures for all tests: random models so small that they answer at once."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from commands import Process, Run
from forking import Forks, forks_of
from networks import locator_config, random_network
from seqray.calibration.domain import fit_domain
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.card_parts import LocatorFacts, PrefilterFacts
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import from_mapping
from seqray.genome.genes import TRACKS
from seqray.modelfile.backbones import resolve_backbone
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import NARROW, WIDE, Prefilter, PrefilterSize, prefilter_shapes
from seqray.models.tokenizers import CharacterTokenizer
from tables import fasta, genbank, gff3, letters, tsv

# Folders whose files take long: begun last, one of them would leave the other processors without work.
LONG = ("workflows", "guest", "training", "attack", "explanations", "api", "cli")

# A busy machine must not fail a test; nothing is left on the disk.
settings.register_profile("seqray", deadline=None, database=None, max_examples=60)
settings.load_profile("seqray")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the folders of long files, and deselect tests of a GPU where there is none."""
    items.sort(key=_turn)
    if torch.cuda.is_available():
        return
    unseen = [item for item in items if item.get_closest_marker("gpu")]
    if unseen:
        config.hook.pytest_deselected(items=unseen)
        items[:] = [item for item in items if item not in unseen]


def pytest_collection_finish() -> None:
    """Spare the garbage collector what the libraries hold: it would search it in vain, again and again."""
    gc.collect()
    gc.freeze()


def _turn(item: pytest.Item) -> int:
    return next((i for i, name in enumerate(LONG) if name in item.path.parts), len(LONG))


@pytest.fixture(scope="session")
def seqray_forks() -> Iterator[Forks]:
    """``seqray`` in processes that begin at once."""
    with forks_of("seqray") as forks:
        yield forks


@pytest.fixture(scope="session")
def snakemake_forks() -> Iterator[Forks]:
    """``snakemake`` in processes that begin at once."""
    with forks_of("snakemake") as forks:
        yield forks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run ``seqray`` here, in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield Run(capfd)
    torch.set_num_threads(threads)


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seqray_forks: Forks) -> Process:
    """Run ``seqray`` in a process of its own, in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return Process(seqray_forks.folder)


WINDOW, SITE = 20, 12


def random_codes(count: int, length: int = WINDOW, seed: int = 0) -> np.ndarray:
    """(count, length) codes of unambiguous DNA."""
    return np.random.default_rng(seed).integers(0, 4, (count, length)).astype(np.uint8)


@pytest.fixture(scope="session")
def tiny_model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file: one layer, 8 wide, windows of 20 letters, random weights large enough to disagree."""
    config = ModelConfig(d_model=8, heads=2, layers=1, dropout=0.0, max_length=WINDOW)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        network = build_network(config)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_(0, 0.5)
            # Center it: of random windows one half is called.
            tokens = torch.from_numpy(CharacterTokenizer(DNA).encode_codes(random_codes(500)))
            network.head.linear.bias -= network(tokens).logits.median(dim=0).values
    card = Card(
        name="tiny",
        classes=("promoter", "background"),
        positive="promoter",
        window=WINDOW,
        site=SITE,
        model=config,
        threshold=0.5,
        prevalence=0.2,
        domain=fit_domain(random_codes(500), DNA),
    )
    path = tmp_path_factory.mktemp("models") / "tiny.safetensors"
    save_model(path, [network], card)
    return path


@pytest.fixture(scope="session")
def prefiltered_file(tiny_model_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of `tiny_model_file` with a prefilter of random weights: half of all windows pass it."""
    model = load_model(tiny_model_file)
    facts = PrefilterFacts(levels=np.array([[0.5, -0.5, 0.05]]), second=np.array([-0.5]), lost=0.001)
    path = tmp_path_factory.mktemp("prefiltered") / "tiny.safetensors"
    prefilter = replace(_random_prefilter(NARROW, 3), second=_random_prefilter(WIDE, 4))
    save_model(path, model.networks, replace(model.card, format=4, prefilter=facts), prefilter)
    return path


def _random_prefilter(size: PrefilterSize, seed: int) -> Prefilter:
    rng, shapes = np.random.default_rng(seed), prefilter_shapes(WINDOW, len(DNA.letters), 0, size)
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    answers = Prefilter(weights, WINDOW).window_log_odds(random_codes(500))
    weights["out_bias"] -= 0.5 + np.quantile(answers, 0.3)  # .7 pass each network
    return Prefilter(weights, WINDOW)


ALIGNED_COLUMNS, ALIGNED_ROWS = 24, 5


@pytest.fixture(scope="session")
def alignment_model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two members that read 5 rows and 24 columns of RNA at most; random weights large enough to disagree."""
    config = ModelConfig(
        kind="alignment",
        alphabet="rna",
        d_model=12,
        heads=3,
        layers=2,
        classes=3,
        dropout=0.0,
        max_rows=ALIGNED_ROWS,
        max_length=ALIGNED_COLUMNS,
        ends=2,
        words=3,
        helices=True,
    )
    networks = [random_network(config, seed, noise=0.4) for seed in (11, 12)]
    card = Card(
        name="tiny-alignments",
        classes=("tRNA", "miRNA", "riboswitch"),
        positive="miRNA",
        window=ALIGNED_COLUMNS,
        model=config,
        members=2,
        temperature=1.5,
    )
    path = tmp_path_factory.mktemp("alignment-models") / "tiny.safetensors"
    save_model(path, networks, card)
    return path


@pytest.fixture(scope="session")
def locator_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two members that score positions from letters and gene tracks, with random weights that disagree."""
    config = locator_config(TRACKS)
    networks = [random_network(config, seed, noise=0.3) for seed in (5, 6)]
    card = Card(
        name="tiny-locator",
        classes=("promoter",),
        positive="promoter",
        window=101,
        site=50,
        model=config,
        members=2,
        temperature=1.5,
        threshold=0.6,
        locator=LocatorFacts(extent=(3, 1), threshold_without_genes=0.55),
    )
    path = tmp_path_factory.mktemp("locators") / "tiny.safetensors"
    save_model(path, networks, card)
    return path


@pytest.fixture(scope="session")
def genome_settings() -> str:
    """Settings with which a locator of genomes trains in seconds: a file of YAML."""
    return f"""
name: toy
model:
  {{kind: locator, classes: 1, d_model: 16, heads: 2, layers: 1, d_ff: 32, positions: rotary,
   locator: {{window: 4, stem: 8, tracks: [{", ".join(TRACKS)}]}}}}
data: {{window: 1}}
genomes: {{chunk: 256, steps_per_epoch: 3, validation_chunks: 8}}
optimizer: {{batch_size: 4}}
stopping: {{monitor: auprc}}
trainer: {{max_epochs: 1, accelerator: cpu, precision: 32-true}}
"""


@pytest.fixture(scope="session")
def locator(locator_file: Path) -> TrainedModel:
    """The model of `locator_file`."""
    return load_model(locator_file)


@pytest.fixture(scope="session")
def alignment_model(alignment_model_file: Path) -> TrainedModel:
    """The model of `alignment_model_file`."""
    return load_model(alignment_model_file)


@pytest.fixture(scope="session")
def tiny_model(tiny_model_file: Path) -> TrainedModel:
    """The model of `tiny_model_file`."""
    return load_model(tiny_model_file)


@pytest.fixture(scope="session")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories of encoders with random weights: ``esm`` as ESM-2, ``kmer`` as the Nucleotide Transformer,
    ``bpe`` as a BERT on DNA with a learned vocabulary."""
    folder = tmp_path_factory.mktemp("backbones")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        special = ["<cls>", "<pad>", "<eos>", "<unk>"]
        _esm(folder / "esm", [*special, *"LAGVSERTIDPKQNFYMHWCXBUZO", "<mask>"], "rotary", end="<eos>")
        words = ["".join(word) for word in product("ACGT", repeat=6)]
        _esm(folder / "kmer", ["<unk>", "<pad>", "<mask>", "<cls>", *words, *"ACGTN"], "absolute", end=None)
        _bert(folder / "bpe")
    return {path.name: path for path in folder.iterdir()}


SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,  # large enough that letters matter
}


def _esm(path: Path, vocabulary: list[str], positions: str, end: str | None) -> None:
    from transformers import EsmConfig, EsmForMaskedLM, EsmTokenizer

    path.mkdir()
    (path / "vocab.txt").write_text("\n".join(vocabulary))
    EsmTokenizer(str(path / "vocab.txt"), eos_token=end).save_pretrained(path)
    config = EsmConfig(
        vocab_size=len(vocabulary),
        pad_token_id=vocabulary.index("<pad>"),
        mask_token_id=vocabulary.index("<mask>"),
        position_embedding_type=positions,
        token_dropout=True,
        emb_layer_norm_before=False,
        **SHAPE,
    )
    EsmForMaskedLM(config).save_pretrained(path)


def _bert(path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    words = Tokenizer(models.BPE(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    texts = ["".join("ACGT"[c] for c in row) for row in random_codes(50, 200, seed=5)]
    words.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=60, special_tokens=list(names.values()), show_progress=False)
    )
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=words, **{f"{k}_token": v for k, v in names.items()})
    fast.save_pretrained(path)
    BertModel(BertConfig(vocab_size=60, pad_token_id=3, **SHAPE)).save_pretrained(path)


@pytest.fixture(scope="session")
def on_backbone(backbones: dict[str, Path]) -> Callable[..., TrainedModel]:
    """Make a model of windows of 40 letters on one of the `backbones`, its head and adapters at random."""

    def make(kind: str, tuning: str = "frozen", **settings: object) -> TrainedModel:
        alphabet = "protein" if kind == "esm" else "dna"
        backbone = {"path": str(backbones[kind]), "tuning": tuning, **settings}
        mapping = {"kind": "backbone", "alphabet": alphabet, "max_length": 40, "backbone": backbone}
        config = resolve_backbone(from_mapping(ModelConfig, mapping))
        with torch.random.fork_rng():
            torch.manual_seed(11)
            network = build_network(config)
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.normal_(0, 0.5)
        card = Card(name=kind, classes=("no", "yes"), positive="yes", window=40, model=config)
        return TrainedModel(card, (network,))

    return make


YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 20}
data: {window: 20}
trainer: {max_epochs: 1, accelerator: cpu}
"""


@pytest.fixture(scope="session")
def input_files(
    tiny_model_file: Path, locator_file: Path, alignment_model_file: Path, genome_settings: str
) -> dict[str, bytes]:
    """Files of every kind of input, by name."""
    examples = [(f"x{i}", letters(20, i), ("promoter", "background")[i % 2], f"g{i % 5}") for i in range(40)]
    table = tsv("id sequence label gene", examples)
    probabilities = [(name, f"{n / 40:.3f}", f"{1 - n / 40:.3f}") for n, (name, *_) in enumerate(examples)]
    genome, starts = letters(2000, 99), range(100, 1500, 100)
    sites = [("c", at, "+-"[at % 2], "promoter") for at in range(101, 20_000, 333)]
    call = "##gff-version 3\nc\tseqray\tpromoter\t"
    texts = {
        "table.tsv": table,
        "data.tsv": table,
        "promoter.fa": fasta({name: s for name, s, label, _ in examples if label == "promoter"}),
        "background.fa": fasta({name: s for name, s, label, _ in examples if label == "background"}),
        "predictions.tsv": tsv("id p_promoter p_background", probabilities),
        "other.tsv": tsv("id p_promoter", [(name, 0.5) for name, *_ in examples]),
        "labels.tsv": tsv("id label", [(name, label) for name, _, label, _ in examples]),
        "genome.fa": fasta({"c": genome}),
        "genome.gb": genbank("c", genome, ["201..800", "complement(1001..1500)"], topology="linear"),
        "genes.gff3": gff3([("c", 201, 800, "+"), ("c", 1001, 1500, "-")]),
        "starts.tsv": tsv("contig site strand", [("c", at, "+") for at in starts]),
        "starts.bed": tsv("", [("c", at, at + 1) for at in starts]),
        "calls.tsv": tsv(
            "id contig strand site score trust gene distance", [("x_1", "c", "+", 9, 0.5, "high", "abc", 20)]
        ),
        "calls.gff3": f"{call}549\t553\t0.5\t+\t.\tID=promoter_1;tss=551;score=0.5\n",
        "windows.gff3": f"{call}501\t520\t0.5\t+\t.\tID=promoter_1;tss=513;probability=0.5\n",
        "alignments.sto": "".join(f"# STOCKHOLM 1.0\n#=GF AC s{i}\na ACGU\nb AC-U\n//\n" for i in range(4)),
        "alignments.tsv": tsv("id label", [(f"s{i}", ("tRNA", "miRNA")[i % 2]) for i in range(4)]),
        "evaluation.tsv": "# model: m\nsplit\tsubset\tsource\tmetric\tvalue\tn\tpositives\n"
        "test\tall\tmodel\tmcc\t0.5\t40\t20\n",
        "config.yaml": YAML,
        "alignments.yaml": YAML.replace(
            "model: {", "model: {kind: alignment, alphabet: rna, max_rows: 4, "
        ).replace("window: 20", "window: 20, positive: tRNA"),
        "locator.yaml": YAML.replace("model: {", "model: {kind: locator, classes: 1, "),
        "metrics.json": '{"figure": 1}',
        "genomes.yaml": genome_settings,
        "contig.fa": fasta({"c": letters(20_000, 1)}),
        "contig.tsv": tsv("contig position strand site", sites),
        "sheet.tsv": tsv("genome genes sites species weight", [("contig.fa", "none", "contig.tsv", "x", 1)]),
    }
    models = {"tiny": tiny_model_file, "locator": locator_file, "aligned": alignment_model_file}
    data = {name: text.encode() for name, text in texts.items()}
    return data | {f"{name}.safetensors": path.read_bytes() for name, path in models.items()}
