"""The command line: python -m shrink_utils COMMAND.

People call own, diagnose, claims, hypotheses and course; make calls the rest.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

EXPECTED = (OSError, ValueError, RuntimeError)
OFFLINE = ("smoke", "quick", "cohort", "models")  # profiles whose inputs PyPI has
# For people, then for make: the module of the room `study` whose `_<name>_command` is called with
# the profile and the options, and what it does. A module is loaded when its command is called.
COMMANDS = {
    "own": ("own", "Compare regularization terms with plain fine-tuning on your labelled texts."),
    "diagnose": ("diagnosis", "Isotropy and contextuality by layer of any encoder, or of two."),
    "claims": ("claims.report", "Print the table of claims of a finished study."),
    "hypotheses": ("claims.report", "Print what was decided of the preregistered hypotheses."),
    "course": ("course", "Write the exercises as notebooks for students and for instructors."),
    "book": ("book", "Build the web book of the executed notebooks, or else of the stored."),
    "ablate": ("runs", "Fine-tune the missing runs of grid and weight sweep, or a part of them."),
    "record": ("claims.reference", "Keep the tables of finished runs in data/reference."),
    "tables": (
        "pages",
        "Write the claims that follow from runs on record, and the pages' numbers.",
    ),
    "execute": ("notebooks", "Run one notebook headless."),
    "report": ("claims.reference", "Print what was computed, the verdicts, and the comparison."),
    "store": ("notebooks", "Put the outputs of the executed notebooks into notebooks/."),
    "reference": ("claims.reference", "Make this machine's tables the profile's committed ones."),
}
INTERRUPTED, NO_READER = 130, 141  # what a shell makes of SIGINT and SIGPIPE


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its errors are one line, not a traceback."""
    if hasattr(sys.stdout, "reconfigure"):  # a notebook's has none, and takes everything
        sys.stdout.reconfigure(errors="replace")  # of terminals that are not UTF-8
    offline = True
    try:
        options = vars(_parser().parse_args(arguments))
        from shrink_utils.study.profiles import load_profile  # not there without the study

        name, seed = options.pop("profile"), options.pop("seed")
        profile = load_profile(name, seed=seed)
        offline = profile.name in OFFLINE
        command = options.pop("command")
        if command == "execute":  # the kernel reads its profile and seed from here
            os.environ |= {"SHRINK_PROFILE": name, "SHRINK_SEED": str(seed)}
            # nbformat reads jsonschema, which compiles a grammar of addresses for two seconds if
            # it finds one; no notebook needs it.
            sys.modules.setdefault("rfc3987_syntax", None)
        module = import_module(f"shrink_utils.study.{COMMANDS[command][0]}")
        status = getattr(module, f"_{command}_command")(profile, **options) or 0
        sys.stdout.flush()  # here, where an error is known for what it is
        return status
    except KeyboardInterrupt:
        print("\nshrink: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `| head` has read enough; Python would complain again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except ModuleNotFoundError as error:  # rooms load what they need when they need it
        missing = (error.name or str(error)).split(".")[0]
        told = f"shrink: {missing} is not installed for this Python: call .venv/bin/python, or"
        print(f"{told} install the study: pip install '.[study]'", file=sys.stderr)
        return 1
    except Exception as error:
        # A full disk is an OSError here, and an error of their own in safetensors and tokenizers.
        if not isinstance(error, EXPECTED) and "No space left on device" not in str(error):
            raise
        print("\n".join([f"shrink: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
        if "hub" in str(error) and not offline:
            names = " and ".join(", ".join(OFFLINE).rsplit(", ", 1))
            print(f"Profiles {names} need no model hub.", file=sys.stderr)
        return 1


def _slice_of_part(text: str) -> slice:
    """Of ``"3/8"``: the third of eight parts, which have every eighth run."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r}, expected such as 3/8, the third of eight")
    return slice(int(number) - 1, None, int(parts))


# Of `study.own.plan_own`, with what they are.
OWN_OPTIONS = {
    "label": "column of the labels; default: label",
    "text": "column of the texts; default: text, or the only other column",
    "pair": "column of second texts, for a task of pairs",
    "group": "column of what hangs together, such as a customer: it stays on one side",
    "valid": "a second file to validate on; default: a fifth of the rows",
    "kind": "classes or regression, where labels could be either",
    "limit": "of more rows a sample of so many",
    "model": "minilm, mpnet, a hub id, or a local folder; default: minilm",
    "arms": "regularization terms; default: prominent all isoscore",
    "weights": "other weights, such as all=2,4 or 0.5,1; of several, one is chosen",
    "seeds": "trainings of each condition; default: 5",
    "epochs": "default: 3",
    "batch_size": "rows per step, of which every class has a barcode; default: 64",
    "learning_rate": "default: 8e-5",
    "max_length": "tokens read of a text; default: as 95 %% of the texts need, 128 at most",
    "keep": "a condition whose first model is kept, such as prominent or none",
}
DIAGNOSE_OPTIONS = {
    "text": "a UTF-8 file or /dev/stdin, one sentence per line, at least 30; or CSV, TSV, JSON "
    "lines, Parquet, the folder of a data set; default: sentences of the study",
    "column": "where the texts stand, if --text is a table",
    "max_length": "tokens read of a text; default: 128, or fewer",
    "min_count": "texts in which a word has to stand to have a self-similarity; default: 5",
    "max_texts": "of more texts a sample is read; default: 5000",
    "out": "folder of the CSV and the PNG; default: this one",
}
# Of options that are no text.
PATHS = ("valid", "out")
NUMBERS = "limit seeds epochs batch_size max_length min_count max_texts".split()
LISTS = ("arms", "weights")


def _parser() -> argparse.ArgumentParser:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m shrink_utils", description=__doc__, formatter_class=kind
    )
    profile, seed = os.environ.get("SHRINK_PROFILE", "quick"), os.environ.get("SHRINK_SEED")
    _add_study(parser, profile=profile, seed=seed or "0")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    made = {}
    for name, (_, text) in COMMANDS.items():
        made[name] = commands.add_parser(name, help=text, description=text)
        # A default here would undo what stands before the command.
        _add_study(made[name], profile=argparse.SUPPRESS, seed=argparse.SUPPRESS)
    made["execute"].add_argument("source", type=Path)
    made["execute"].add_argument("target", type=Path)
    part = "such as 3/8: the third of eight parts, one per machine or job; default: all"
    made["ablate"].add_argument("--part", type=_slice_of_part, default="1/1", help=part)
    dry = "look for encoders and tasks, print what would be run and what like runs took, and end"
    made["ablate"].add_argument("--dry-run", action="store_true", help=dry)
    made["record"].add_argument("--run", action="store_true", help="first compute what is missing")
    files = "CSV, TSV, JSON lines, Parquet, a data set"
    made["own"].add_argument("texts", type=Path, help=files)
    _add_options(made["own"], OWN_OPTIONS)
    model = "minilm, mpnet, gemma, tiny-random, a hub id, or a local folder; two are compared"
    made["diagnose"].add_argument("models", nargs="+", metavar="model", help=model)
    _add_options(made["diagnose"], DIAGNOSE_OPTIONS)
    return parser


def _add_options(parser: argparse.ArgumentParser, options: dict[str, str]) -> None:
    """Options with what they are; those that are not given are not there."""
    kinds = dict.fromkeys(NUMBERS, int) | dict.fromkeys(PATHS, Path) | {"learning_rate": float}
    for name, text in options.items():
        given = {"type": kinds.get(name, str), "default": argparse.SUPPRESS, "help": text}
        given |= {"nargs": "+"} if name in LISTS else {}
        parser.add_argument(f"--{name.replace('_', '-')}", **given)


def _add_study(parser: argparse.ArgumentParser, *, profile: str, seed: str) -> None:
    """Options that choose the study, before the command or after it."""
    parser.add_argument("--profile", default=profile, help="default: SHRINK_PROFILE, or quick")
    parser.add_argument("--seed", type=int, default=seed, help="default: SHRINK_SEED, or 0")


if __name__ == "__main__":
    sys.exit(main())
