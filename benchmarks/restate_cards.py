"""Write the text, the site and the figures of model cards anew, where they changed after training.

    python benchmarks/accuracy_cards.py antimicrobial-peptide
    python benchmarks/restate_cards.py antimicrobial-peptide human-promoter-300

The text is the section ``card`` of ``configs/<model>.yaml``, the index of the site is ``data.site`` there,
and the figures are those of ``results/<model>.card.json``. Weights, calibration and all else stay as they
are; the checksum of the file and its self-test are made anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from machine import ROOT, script_parser
from seqray.core.run_config import load_run_config
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.header import locate_model


def restate(name: str) -> None:
    """Write the file of a shipped model with its text, site and figures as they are now."""
    path, model = locate_model(name), load_model(name)
    config = load_run_config(ROOT / "configs" / f"{name}.yaml")
    figures = json.loads((ROOT / "benchmarks/results" / f"{name}.card.json").read_text(encoding="utf-8"))
    card = replace(model.card, info=dict(config.card), metrics=figures, site=config.data.site)
    save_model(path, model.networks, card, model.prefilter)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("models", nargs="+")
    for name in parser.parse_args(arguments).models:
        restate(name)
        print(f"wrote the card of {name}")


if __name__ == "__main__":
    main()
