"""Recognize a file's format by its content, so that an error can name the format of a wrong file."""

from __future__ import annotations

import re

FASTA, GENBANK, GFF = "FASTA", "GenBank", "GFF"
HTML = "HTML or XML (a failed download?)"
PIR = "PIR/NBRF"  # the line below each header is a title, which would be read as letters

_BEGINNINGS = (
    (re.compile(rb"# STOCKHOLM"), "a Stockholm alignment"),
    (re.compile(rb"##gff-version"), GFF),
    (re.compile(rb"##fileformat=VCF"), "VCF"),
    (re.compile(rb"CLUSTAL"), "a Clustal alignment"),
    (re.compile(rb"ID   \S+; "), "EMBL"),
    (re.compile(rb"<"), HTML),
    (re.compile(rb"@[^\n]*\n[^\n]*\n\+"), "FASTQ"),
    (re.compile(rb"LOCUS +\S"), GENBANK),
    (re.compile(rb">(?:P1|F1|DL|DC|RL|RC|N1|N3|XX);"), PIR),
    (re.compile(rb">"), FASTA),
)
PREAMBLE = re.compile(rb"(?:[ \t\r]*(?:[;#][^\n]*)?\n)*")
BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def detect_format(head: bytes) -> str:
    """Name the format of a file from its first block; an empty text if it is unknown.

    Comment lines (``;`` or ``#``) and blank lines at the beginning are ignored, unless they name the
    format themselves.
    """
    text = head.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for start in (0, _length(BLANK_LINES, text), _length(PREAMBLE, text)):
        for beginning, name in _BEGINNINGS:
            if beginning.match(text, start):
                return name
    return ""


def _length(pattern: re.Pattern[bytes], text: bytes) -> int:
    match = pattern.match(text)
    return match.end() if match else 0
