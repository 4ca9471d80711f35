"""``seqray completion``: a script that completes verbs, options and file names in a shell."""

from __future__ import annotations

import argparse
import re
from typing import ClassVar

from seqray.cli.main import VERBS, request_type
from seqray.cli.options import Outcome, Request, option

SHELLS = ("bash", "zsh", "fish")
_FILES = re.compile(r"FILE|TABLE|FASTA|SEQUENCES|SHARD|YAML|JSON|BED|POSITIVES|MODEL")


class CompletionRequest(Request):
    """Options of ``seqray completion``."""

    epilog: ClassVar[str] = (
        'bash: eval "$(seqray completion bash)"; fish: seqray completion fish | source; zsh: write it to '
        "a file _seqray in a folder of your fpath."
    )

    shell: str = option("SHELL", "which shell", choices=SHELLS)


def run(request: CompletionRequest) -> Outcome:
    """Print the script."""
    import shtab

    script = shtab.complete(whole_parser(), shell=request.shell)
    print(script, end="\n" if request.shell == "fish" else "")
    return Outcome(resources=False)


def whole_parser() -> argparse.ArgumentParser:
    """One parser for all verbs, with file names marked as such."""
    import shtab

    parser = argparse.ArgumentParser(prog="seqray", description="Classify biological sequences.")
    parser.add_argument("--version", "-V", action="store_true", help="version")
    actions = parser.add_subparsers(dest="verb")
    for verb, (_, summary) in VERBS.items():
        of_verb = actions.add_parser(verb, help=summary, description=summary, allow_abbrev=False)
        request_type(verb).add_arguments(of_verb)
        for action in of_verb._actions:
            if action.choices is None and isinstance(action.metavar, str):
                if action.metavar == "DIR":
                    action.complete = shtab.DIRECTORY  # pyright: ignore[reportAttributeAccessIssue]
                elif _FILES.search(action.metavar):
                    action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
    return parser
