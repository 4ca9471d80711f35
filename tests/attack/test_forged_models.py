"""Model files that were damaged or forged: refused with exit status 2, or the predictions of the original."""

import json
import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attack.damage import damages, leaves
from seqray.cli.main import main
from seqray.core.errors import ModelFileError
from seqray.inference.sequences import predict_records
from seqray.io.sequences import read_sequences
from seqray.modelfile.file import load_model
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


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "records.fa"
    path.write_text("".join(f">{i}\n{''.join(random.Random(i).choices('ACGT', k=20))}\n" for i in range(5)))
    return path


def predicted(model: Path, records: Path) -> list[Any]:
    loaded = load_model(model)
    return list(predict_records(loaded, read_sequences(records, loaded.alphabet)))


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.long)])
def test_a_damaged_model_is_refused_or_means_the_same(tiny_model_file, records, tmp_path, count, tally):
    content, expected = tiny_model_file.read_bytes(), predicted(tiny_model_file, records)
    rng, refused, path = random.Random(1), 0, tmp_path / "damaged.safetensors"
    for kind, damaged in damages(content, rng, count):
        path.write_bytes(damaged)
        try:
            assert predicted(path, records) == expected
            used = True
        except ModelFileError:
            refused, used = refused + 1, False
        tally(f"damaged models: {kind}", used)
    assert refused > 0.9 * count


def rearranged(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Files with a checksum that holds, of which tensors lie elsewhere, overlap, or are called otherwise."""
    header, card, data = parts(content)
    names = [name for name in header if name != "__metadata__"]
    for one, other in pairwise(names):
        swapped = header | {one: header[other], other: header[one]}
        yield f"{one} and {other} swapped", sign(swapped, card, data)
        begin, end = header[one]["data_offsets"]
        offsets: list[Any] = [
            [begin + 4, end + 4],
            [begin, end - 4],
            [end, begin],
            [-4, end],
            [begin, 1 << 62],
        ]
        offsets += [[0, end], [begin], [begin, end, end], ["0", end], [float(begin), end], None, begin]
        for odd in offsets:
            if odd != [begin, end]:
                yield f"{one} at {odd}", sign(header | {one: header[one] | {"data_offsets": odd}}, card, data)
        without = {name: entry for name, entry in header.items() if name != one}
        yield f"without {one}", sign(without, card, data)
        yield f"{one} twice", sign(header | {f"{one}.2": header[one]}, card, data)
        yield f"{one} as {one}.x", sign(without | {f"{one}.x": header[one]}, card, data)
        for kind in ("F16", "I32", "F64", "F8_E4M3", "X", None, 4):
            yield f"{one} of {kind}", sign(header | {one: header[one] | {"dtype": kind}}, card, data)
        now = header[one]["shape"]
        for shape in ([], [-1], [1 << 40, 1 << 40], [now], "8", None, [*now, 1]):
            yield f"{one} of shape {shape}", sign(header | {one: header[one] | {"shape": shape}}, card, data)
    yield "more bytes", sign(header, card, data + bytes(4))
    yield "other numbers", sign(header, card, bytes(reversed(data)))
    yield "no finite numbers", sign(header, card, b"\xff" * len(data))


@pytest.mark.parametrize("file", ["tiny_model_file", "prefiltered_file"])
def test_a_model_of_other_tensors_is_refused(file, request, tmp_path, tally):
    original = request.getfixturevalue(file)
    path, content = tmp_path / "forged.safetensors", original.read_bytes()
    path.write_bytes(sign(*parts(content)))
    # It is the change that is refused.
    assert load_model(path).card == load_model(original).card
    for change, forged in rearranged(content):
        path.write_bytes(forged)
        with pytest.raises(ModelFileError):
            pytest.fail(f"{change}: {load_model(path)}")
        tally("forged models: tensors", False)


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


@pytest.mark.filterwarnings("error::RuntimeWarning")  # which numpy prints
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["sequence", "locator", "prefilter", "sequence without torch"])
def test_a_forged_model_is_used_or_refused_in_one_line(
    tiny_model_file, locator_file, prefiltered_file, records, tmp_path, capfd, kind, count, tally
):
    models = {"locator": locator_file, "prefilter": prefiltered_file}
    verb, model = ("scan", models[kind]) if kind in models else ("predict", tiny_model_file)
    more = ["--engine", "onnx"] if kind == "sequence without torch" else []
    more += ["--null-mb", "0"] if verb == "scan" else []
    forged, refused = tmp_path / "forged.safetensors", 0
    for change, content in forgeries(model.read_bytes(), count):
        forged.write_bytes(content)
        for words in (
            [verb, records, "-q", "-o", tmp_path / "out.tsv", *more, "--model"],
            ["models", "show"],
        ):
            status = main([str(word) for word in [*words, forged]])
            said = capfd.readouterr().err
            assert status in (0, 2), (change, said)
            assert status == 0 or said.count("\n") == 1, (change, said)
            assert said.replace("\n", "").isprintable(), (change, said)
            refused += status == 2
            tally(f"forged cards: {words[0]}", status == 0)
    assert refused > count
