"""Write the text, the site and the figures of model cards anew, where they changed after training.

    python benchmarks/accuracy_cards.py antimicrobial-peptide
    python benchmarks/restate_cards.py antimicrobial-peptide human-promoter-300
    SEQRAY_DATA=... python benchmarks/restate_cards.py --sketches bacteria-genome
    python benchmarks/restate_cards.py --network 2 --sheet runs/data/genomes/train.tsv bacteria-genome

The text is the section ``card`` of ``configs/<model>.yaml``, the index of the site is ``data.site`` there,
and the figures are those of ``results/<model>.card.json``. With ``--sketches`` only the sketches of the
genomes of a locator are made, from ``data/genomes.tsv``, as `seqray train` makes them. With ``--network`` one
network of a locator stays, and is measured in the development regions of the sheet that it was trained on, as
`seqray train` does; the figures of species left out stay those of its folds. Weights, calibration and all
else stay as they are; the checksum of the file and its self-test are made anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from genome_sources import read_list
from machine import ROOT, add_data, script_parser
from seqray.calibration.signature import sketch_genome
from seqray.core.alphabet import DNA
from seqray.core.run_config import load_run_config
from seqray.io.sequences import read_sequences
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.header import locate_model
from seqray.training.genomes.chunks import SHORT_CONTIG_DIVISOR, divide_genomes
from seqray.training.genomes.fit import check_config, locator_card
from seqray.training.genomes.sheet import read_genomes, read_sheet


def restate(name: str) -> None:
    """Write the file of a shipped model with its text, site and figures as they are now."""
    path, model = locate_model(name), load_model(name)
    config = load_run_config(ROOT / "configs" / f"{name}.yaml")
    figures = json.loads((ROOT / "benchmarks/results" / f"{name}.card.json").read_text(encoding="utf-8"))
    card = replace(model.card, info=dict(config.card), metrics=figures, site=config.data.site)
    save_model(path, model.networks, card, model.prefilter)


def sketch(name: str, data: Path) -> None:
    """Write the file of a shipped locator with sketches of the genomes that it was measured in."""
    path, model = locate_model(name), load_model(name)
    domain = model.card.domain
    assert domain is not None
    sources = {row["species"]: data / row["genome"] for row in read_list()}
    species = sorted({table.species for table in model.card.locator.expected})
    genomes = {one: sketch_genome(r.sequence for r in read_sequences(sources[one], DNA)) for one in species}
    save_model(path, model.networks, replace(model.card, domain=replace(domain, genomes=genomes)))


def keep_network(name: str, number: int, sheet: Path) -> None:
    """Write the file of a shipped locator with one of its networks, counted from 1."""
    path, model = locate_model(name), load_model(name)
    card, network = model.card, model.networks[number - 1]
    config = load_run_config(ROOT / "configs" / f"{name}.yaml")
    classes, learned = check_config(config), set(card.training["species"])
    rows = [row for row in read_sheet(sheet) if row.species in learned]
    whole = -(-config.genomes.chunk // SHORT_CONTIG_DIVISOR)
    genomes = read_genomes(rows, classes, rename=config.genomes.rename, whole=whole)
    parts = divide_genomes(genomes, classes, (), config)
    new, figures = locator_card(config, classes, [network], parts, [card], {})
    own = {key: [card.training[key][number - 1]] for key in ("best_epochs", "seeds")}
    settings = card.training["config"] | {"members": 1, "seed": own["seeds"][0]}
    training = card.training | own | {"validation": figures, "config": settings}
    changed = {name: getattr(new.locator, name) for name in ("threshold_without_genes", "expected")}
    locator = replace(card.locator, **changed)
    save_model(path, [network], replace(new, training=training, domain=card.domain, locator=locator))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sketches", action="store_true", help="make the sketches of genomes of locators")
    parser.add_argument("--network", type=int, metavar="N", help="keep this network of locators alone")
    parser.add_argument("--sheet", type=Path, help="genomes that the locator was trained on, for --network")
    add_data(parser, required=False)
    args = parser.parse_args(arguments)
    for name in args.models:
        if args.sketches:
            sketch(name, args.data)
        elif args.network:
            keep_network(name, args.network, args.sheet)
        else:
            restate(name)
        print(f"wrote the card of {name}")


if __name__ == "__main__":
    main()
