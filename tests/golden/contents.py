"""Files of the golden outputs as lines, so that what differs can be told, and what may differ is left out."""

import gzip
import hashlib
import json
import re
from fnmatch import fnmatch
from pathlib import Path

# What depends on the clock, the machine's state or the place of the folder: files, pattern, stand-in, reason.
VARIABLE = (
    ("*/stderr", r"\b\d+(\.\d+)? s\b", "T s", "times"),
    ("*/stderr", r"resources: .*", "resources: R", "times and memory"),
    ("*/stderr", r'"time": ?"[^"]+"', '"time": "T"', "the clock in --log-json"),
    ("*.json", r'"seconds": ?\d+(\.\d+)?', '"seconds": T', "the time of a training"),
    ("train-backbone/*", r'"checksum": "\w+"', '"checksum": "C"', "its card holds a path"),
    ("*-backbone/*", r"backbone sha256:\w+", "backbone sha256:C", "the same"),
)
LEFT_OUT = {"*.ckpt": "checkpoints are pickled objects of the source, and hold times"}
# What a change of the source may change on purpose, such as styles of pages; the same.
_RETIRED = r'\n *"?(matrix_rank|row_choice|mixup|rows)"?: ("?diverse"?|8|0(\.0)?|null),?(?=\n)'
_CHECKSUM = r'(?<=[ "]sha256:)[0-9a-f]{64}|((?<="checksum": ")|(?<="model_sha256": ")|(?<="teacher": ")'
_CHECKSUM += r'|(?<="start": ")|(?<=\n  "sha256": ")|(?<=\tok\t))[0-9a-f]{64}'
MEANT: tuple[tuple[str, str, str, str], ...] = (
    ("*", _RETIRED, "", "settings without a use are gone from cards"),
    ("*", _CHECKSUM, "C", "so checksums of trained models differ"),
)  # fmt: skip


def lines_of(path: Path, root: Path) -> list[str]:
    """Lines that stand for the content of a file of the golden outputs in `root`."""
    if any(fnmatch(path.name, names) for names in LEFT_OUT):
        return []
    reader = READERS.get(path.suffix)
    if reader is not None:
        text = reader(path)
    else:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = f"{len(data)} bytes, sha256 {digest(data)}"
    text = text.replace(str(root), "FOLDER")
    for names, pattern, stand_in, _ in VARIABLE + MEANT:
        if fnmatch(path.relative_to(root).as_posix(), names):
            text = re.sub(pattern, stand_in, text)
    return text.splitlines()


def digest(data: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def weights(path: Path) -> str:
    """A model: its tensors, and its card as JSON."""
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        found = [(name, file.get_tensor(name)) for name in sorted(file.keys())]
        facts = {name: _parsed(text) for name, text in (file.metadata() or {}).items()}
    rows = [f"{name} {one.dtype} {one.shape} {digest(one.tobytes())}" for name, one in found]
    return "\n".join([*rows, json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)])


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def parquet(path: Path) -> str:
    """A table: its columns, what is said of it, and its rows."""
    from pyarrow.parquet import read_table

    table = read_table(path)
    facts = [f"{name.decode()}: {text.decode()}" for name, text in (table.schema.metadata or {}).items()]
    return "\n".join([str(table.schema.remove_metadata()), *facts, table.to_pandas().to_csv(index=False)])


def big_wig(path: Path) -> str:
    """A track: its contigs and intervals."""
    import pyBigWig

    with pyBigWig.open(str(path)) as file:
        rows = [str(file.header()), str(file.chroms())]
        for contig in file.chroms():
            rows += [f"{contig} {interval}" for interval in file.intervals(contig) or ()]
    return "\n".join(rows)


READERS = {".safetensors": weights, ".parquet": parquet, ".bw": big_wig}
