"""The command line: ``python -m shrink_utils COMMAND``.

`diagnose`, `runs` and `claims` are for people, the others are what make calls.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from shrink_utils.paths import home
from shrink_utils.study.profiles import Profile, load_profile


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its errors are one line, not a traceback."""
    options = _parser().parse_args(arguments)
    try:
        profile = load_profile(options.profile, seed=options.seed)
        return options.command(profile, options)
    except (FileNotFoundError, ValueError, ConnectionError, RuntimeError) as error:
        print(f"shrink: {error}", file=sys.stderr)
        return 1


def ablate(profile: Profile, options: argparse.Namespace) -> int:
    """Fine-tune every run of the grid and of the weight sweep that is not there yet."""
    from shrink_utils.study.ablation import run_all

    print(f"Ablation, profile {profile.name}: {profile.description}", flush=True)
    runs = run_all(profile)
    print(f"{len(runs)} runs in {profile.folder / 'runs'}")
    return 0


def execute(profile: Profile, options: argparse.Namespace) -> int:
    """Run one notebook headless."""
    from shrink_utils.study.notebooks import execute

    name = options.source.stem
    print(f"{name} …", flush=True)  # whole lines: another notebook may run beside this one
    print(f"{name}: {execute(options.source, options.target):.0f} s", flush=True)
    return 0


def report(profile: Profile, options: argparse.Namespace) -> int:
    """Print the claims, and compare the tables with the committed reference."""
    from shrink_utils.study.report import print_claims, print_comparison

    print_claims(profile)
    return 0 if print_comparison(profile) else 1


def store(profile: Profile, options: argparse.Namespace) -> int:
    """Put the outputs of the executed notebooks into notebooks/."""
    from shrink_utils.study.notebooks import store

    for executed in sorted((profile.folder / "notebooks").glob("[0-9]*.ipynb")):
        if not executed.name.endswith((".part.ipynb", ".failed.ipynb")):
            store(executed, home() / "notebooks" / executed.name)
            os.utime(executed)  # newer than what it was stored into: make has nothing to do
    return 0


def reference(profile: Profile, options: argparse.Namespace) -> int:
    """Make this machine's tables the committed reference of the profile."""
    from shrink_utils.study.reference import commit_reference

    commit_reference(profile)
    return 0


def diagnose(profile: Profile, options: argparse.Namespace) -> int:
    """Isotropy and contextuality of any encoder on any text, layer by layer."""
    import matplotlib

    matplotlib.use("agg")  # a file, no window
    from matplotlib import pyplot as plt

    from shrink_utils.study.diagnose import diagnose, diagnosis_figure, read_texts
    from shrink_utils.study.figures import use_house_style
    from shrink_utils.text import load_sentences

    if options.text:
        texts, source = read_texts(options.text), options.text.name
    else:
        n = profile.diagnostic_sentences
        texts, source = list(load_sentences("all", n=n, seed=profile.base_seed)["text"]), "snippets"
    table = diagnose(options.model, texts)
    print(f"{options.model} on {len(texts)} texts ({source})\n")
    print(table.to_string(float_format="{:.3f}".format))
    use_house_style()
    figure = diagnosis_figure(table, title=f"{options.model} on {len(texts)} texts ({source})")
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"diagnose-{Path(options.model).name}"
    table.to_csv(f"{stem}.csv", float_format="%.6f")
    figure.savefig(f"{stem}.png")
    plt.close(figure)
    print(f"\nWritten: {stem}.csv, {stem}.png")
    return 0


def runs(profile: Profile, options: argparse.Namespace) -> int:
    """List what has been computed of the profile's grid and sweep, and what is missing."""
    from shrink_utils.study.listing import list_runs

    print(list_runs(profile).to_string(index=False))
    return 0


def claims(profile: Profile, options: argparse.Namespace) -> int:
    """Print the table of claims of a finished study."""
    from shrink_utils.study.report import print_claims

    print_claims(profile)
    return 0


def _parser() -> argparse.ArgumentParser:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m shrink_utils", description=__doc__, formatter_class=kind
    )
    environment = os.environ
    parser.add_argument("--profile", default=environment.get("SHRINK_PROFILE", "quick"))
    parser.add_argument("--seed", type=int, default=int(environment.get("SHRINK_SEED") or 0))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = {}
    for function in (diagnose, runs, claims, ablate, execute, report, store, reference):
        made[function] = commands.add_parser(function.__name__, help=function.__doc__)
        made[function].set_defaults(command=function)
    made[execute].add_argument("source", type=Path)
    made[execute].add_argument("target", type=Path)
    made[diagnose].add_argument("model", help="minilm, a hub id, or a local folder")
    made[diagnose].add_argument("--text", type=Path, help="UTF-8, one sentence a line")
    made[diagnose].add_argument("--out", type=Path, default=Path(), help="folder of CSV and PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
