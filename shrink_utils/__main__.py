"""The command line that make calls: ``python -m shrink_utils COMMAND``."""

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
    """Fine-tune every run of the grid that is not there yet."""
    from shrink_utils.study.ablation import run_grid

    print(f"Ablation, profile {profile.name}: {profile.description}", flush=True)
    runs = run_grid(profile)
    print(f"{len(runs)} runs in {profile.folder / 'runs'}")
    return 0


def execute(profile: Profile, options: argparse.Namespace) -> int:
    """Run one notebook headless."""
    from shrink_utils.study.notebooks import execute

    print(f"{options.source.stem} … ", end="", flush=True)
    seconds = execute(options.source, options.target)
    print(f"{seconds:.0f} s")
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shrink_utils", description=__doc__)
    environment = os.environ
    parser.add_argument("--profile", default=environment.get("SHRINK_PROFILE", "quick"))
    parser.add_argument("--seed", type=int, default=int(environment.get("SHRINK_SEED") or 0))
    commands = parser.add_subparsers(required=True)
    for function in (ablate, execute, report, store, reference):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(command=function)
        if function is execute:
            command.add_argument("source", type=Path)
            command.add_argument("target", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
