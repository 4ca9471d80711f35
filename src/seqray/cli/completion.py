"""``seqray completion``: a script that completes verbs, options and file names in a shell."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping

SHELLS = ("bash", "zsh", "fish")
_FILES = re.compile(r"FILE|TABLE|FASTA|SEQUENCES|SHARD|YAML|JSON|BED|POSITIVES|MODEL")

TELLS_RESOURCES = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.epilog = (
        'bash: eval "$(seqray completion bash)"; fish: seqray completion fish | source; zsh: write it to '
        "a file _seqray in a folder of your fpath."
    )


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    parser = whole_parser(args.verbs)
    print(shtab.complete(parser, shell=args.shell), end="\n" if args.shell == "fish" else "")
    return 0


def whole_parser(
    verbs: Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]],
) -> argparse.ArgumentParser:
    """One parser for all verbs, with file names marked as such."""
    import shtab

    parser = argparse.ArgumentParser(prog="seqray", description="Classify biological sequences.")
    parser.add_argument("--version", "-V", action="store_true", help="version")
    actions = parser.add_subparsers(dest="verb")
    for verb, (summary, add_arguments) in verbs.items():
        of_verb = actions.add_parser(verb, help=summary, description=summary, allow_abbrev=False)
        add_arguments(of_verb)
        for action in of_verb._actions:
            if action.choices is None and isinstance(action.metavar, str):
                if action.metavar == "DIR":
                    action.complete = shtab.DIRECTORY  # pyright: ignore[reportAttributeAccessIssue]
                elif _FILES.search(action.metavar):
                    action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
    return parser
