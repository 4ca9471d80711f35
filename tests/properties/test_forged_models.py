"""Model files that were damaged or forged: refused with exit status 2, or the predictions of the original."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqray.cli import main
from seqray.core import ModelFileError
from seqray.inference import predict_records
from seqray.io.sequences import read_sequences
from seqray.modelfile import load_model_file
from seqray.modelfile.header import checksum

ODD: tuple[Any, ...] = (None, True, -1, 0, 7, 1_000_000, 10**9, 1 << 62, 10**400, 0.5, 1e308, "x", "")
ODD += ([], [[]], ["x"], {}, {"x": 1}, "ACGT" * 250_000, [0] * 1000)


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The header, the card in it, and the numbers."""
    [length] = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["seqray_card"]), content[8 + length :]


def sign(header: dict[str, Any], card: dict[str, Any], data: bytes) -> bytes:
    """A model file with a checksum that holds."""
    card = {key: value for key, value in card.items() if key != "checksum"}
    card["checksum"] = checksum(json.dumps(card, sort_keys=True, separators=(",", ":")), data)
    text = json.dumps(header | {"__metadata__": {"seqray_card": json.dumps(card)}}).encode()
    return struct.pack("<Q", len(text)) + text + data


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places within nested lists and mappings: what holds them, and the key; of a long list the first."""
    pairs = enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in list(value.items() if isinstance(value, dict) else pairs):
        yield value, key
        yield from leaves(inner)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "records.fa"
    path.write_text("".join(f">{i}\n{''.join(random.Random(i).choices('ACGT', k=20))}\n" for i in range(5)))
    return path


def predicted(model: Path, records: Path) -> list[Any]:
    loaded = load_model_file(model)
    return list(predict_records(loaded, read_sequences(records, loaded.alphabet)))


def test_a_changed_byte_is_refused_or_changes_nothing(tiny_model_file, records, tmp_path):
    content, expected, rng = (
        tiny_model_file.read_bytes(),
        predicted(tiny_model_file, records),
        random.Random(1),
    )
    refused, path = 0, tmp_path / "damaged.safetensors"
    for _ in range(100):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert predicted(path, records) == expected
        except ModelFileError:
            refused += 1
    assert refused > 90


def forgeries(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """Files of which one value of the card, or one about a tensor, is another; each is signed anew."""
    rng = random.Random(2)
    header, card, data = parts(content)
    for _ in range(count):
        for forged in (json.loads(json.dumps(part)) for part in (card, header)):
            places = list(leaves(forged))
            holder, key = rng.choice([place for place in places if "__metadata__" not in place[0]])
            holder[key] = rng.choice(ODD)
            change = f"{key}: {holder[key]!r:.40}"
            yield change, sign(forged, card, data) if "__metadata__" in forged else sign(header, forged, data)


@pytest.mark.parametrize("kind", ["sequence", "locator", "sequence without torch"])
def test_a_forged_model_is_used_or_refused_in_one_line(
    tiny_model_file, locator_file, records, tmp_path, capfd, kind
):
    verb, model = ("scan", locator_file) if kind == "locator" else ("predict", tiny_model_file)
    engine = ["--engine", "onnx"] if kind == "sequence without torch" else []
    forged, refused = tmp_path / "forged.safetensors", 0
    for change, content in forgeries(model.read_bytes(), 50):
        forged.write_bytes(content)
        for words in (
            [verb, records, "-q", "-o", tmp_path / "out.tsv", *engine, "--model"],
            ["models", "show"],
        ):
            status = main([str(word) for word in [*words, forged]])
            said = capfd.readouterr().err
            assert status in (0, 2), (change, said)
            assert status == 0 or said.count("\n") == 1, (change, said)
            refused += status == 2
    assert refused > 50
