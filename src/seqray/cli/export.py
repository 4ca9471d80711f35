"""``seqray export``: a model as a file that other programs run."""

from __future__ import annotations

from typing import Literal

from seqray.cli.inputs import check_files
from seqray.cli.model import MODEL_HELP
from seqray.cli.options import Outcome, Request, option
from seqray.core.errors import InputError
from seqray.core.text import counted


class ExportRequest(Request):
    """Options of ``seqray export``."""

    model: str = option("MODEL", MODEL_HELP)
    format: Literal["onnx"] = option("--format", "format of the file", "onnx")
    out: str = option("--out -o FILE", "ends in .onnx")


def run(request: ExportRequest) -> Outcome:
    """Load, check against torch, write."""
    if request.out == "-":
        what = "a model can't be exported to standard output"
        raise InputError(what, where="--out", remedy="name a file that ends in .onnx")
    from seqray.modelfile.file import load_model
    from seqray.modelfile.header import locate_model, read_card

    path = locate_model(request.model)  # a misspelled name is reported before torch is loaded
    check_files([], [request.out], beside=[str(path)])
    card = read_card(path)
    from seqray.inference.engines import export_onnx, require_graph

    require_graph(card)
    difference = export_onnx(load_model(request.model), request.out)
    members = counted(card.members, "member")
    request.say(f"wrote {request.out}: {members} in one graph, logits within {difference:.1g} of torch's")
    return Outcome()
