"""The command line: python -m shrink_utils COMMAND.

People call own, diagnose, claims, hypotheses and course; make calls the rest.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shrink_utils.sources import data_dir, home

if TYPE_CHECKING:
    from shrink_utils.study.profiles import Profile

EXPECTED = (OSError, ValueError, RuntimeError)
OFFLINE = ("smoke", "quick", "cohort", "models")  # profiles whose inputs PyPI has
WITH_CLAIMS = ("cohort", "glue", "models")  # profiles whose claims follow from their records
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
INTERRUPTED, NO_READER = 130, 141  # what a shell makes of SIGINT and SIGPIPE


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its errors are one line, not a traceback."""
    if hasattr(sys.stdout, "reconfigure"):  # a notebook's has none, and takes everything
        sys.stdout.reconfigure(errors="replace")  # of terminals that are not UTF-8
    offline = True
    try:
        options = _parser().parse_args(arguments)
        from shrink_utils.study.profiles import load_profile  # not there without the study

        profile = load_profile(options.profile, seed=options.seed)
        offline = profile.name in OFFLINE
        status = options.command(profile, options) or 0
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


def _do_diagnose(profile: Profile, options: argparse.Namespace) -> None:
    """Isotropy and contextuality of any encoder on any text, layer by layer, or of two."""
    import matplotlib

    matplotlib.use("agg")  # a file, no window
    import shrink_utils.study.diagnosis as room
    from shrink_utils.text import load_sentences
    from shrink_utils.text.files import read_texts

    room._check_folder(options.out)  # before the work, which may take long
    if options.column and not options.text:
        raise ValueError("--column: it is of the table that --text names")
    if len(options.models) > 2:
        raise ValueError(f"model: {len(options.models)} models, expected one, or two to compare")
    if options.text:
        source = options.text.name
        texts, notes = read_texts(options.text, column=options.column)
        room._check_number(texts, options.text)
    else:
        n, source, notes = profile.diagnostic_sentences, "snippets", []
        texts = list(load_sentences("all", n=n, seed=profile.base_seed)["text"])
    limits = ("max_length", "min_count", "max_texts")
    try:
        measure = room.diagnose if len(options.models) == 1 else room.compare
        table = measure(*options.models, texts, **{name: getattr(options, name) for name in limits})
    except Exception as error:  # a model and texts of any kind, read by several libraries
        told = " ".join(str(error).split()) or type(error).__name__
        for option in limits:
            told = told.replace(option, f"--{option.replace('_', '-')}")
        raise (OSError if isinstance(error, OSError) else ValueError)(told) from error
    read = table.attrs["texts"]
    of = f" of {len(texts):,}" if read < len(texts) else ""
    title = f"{' and '.join(options.models)} on {read}{of} texts ({source})"
    name = "-to-".join(map(room._file_name, options.models))
    written = room._write_diagnosis(table, options.out, name=name, title=title)
    print(f"{title}\n\n{table.to_string(float_format='{:.3f}'.format)}\n")
    notes += [f"A sample of {read} texts was read, the same in each call (--max-texts)."] * bool(of)
    if cut := table.attrs["cut"]:
        limit = table.attrs["max_length"]
        notes.append(f"{cut} of {read} texts were cut at {limit} tokens (--max-length).")
    print("".join(f"{note}\n" for note in notes), end="")
    print(f"Written: {', '.join(map(str, written))}. Notebooks 01 and 02 define the columns.")


def _do_own(profile: Profile, options: argparse.Namespace) -> None:
    """Compare regularization terms with plain fine-tuning on your own labelled texts."""
    import matplotlib

    matplotlib.use("agg")
    import shrink_utils.study.own as room
    from shrink_utils.study.notebooks import _run_notebook

    given = {name: value for name, value in vars(options).items() if name in OWN_OPTIONS}
    if given.get("valid"):
        given["valid"] = given["valid"].absolute()
    study = room.plan_own(options.texts.absolute(), profile=profile, **given)
    width = max(map(len, study.facts))
    print("\n".join(f"{name:{width}}  {fact}" for name, fact in study.facts.items()))
    print("".join(f"{note}\n" for note in study.notes), end="", flush=True)
    if missing := len(study.missing):
        minutes = f"about {study.minutes():.0f} min, by {room.TRIED} steps that were timed"
        print(f"{missing} of {len(study.configs)} runs are to be made: {minutes}", flush=True)
    runs = room.run_own(study)
    answer = room.answer_own(study, runs)
    print(f"\n{answer.head} {' '.join(answer.sentences)}\n")
    room._write_own(study, answer, runs)
    chapter = home() / "notebooks" / "14_your_own_task.ipynb"
    if not (study.folder / chapter.name).is_file():
        values = {"texts": options.texts.absolute(), **given}
        values = {k: str(v) if isinstance(v, Path) else v for k, v in values.items()}
        _run_notebook(chapter, study.folder / chapter.name, parameters=values)
    print(f"Written: {study.folder}")


def _do_claims(profile: Profile, options: argparse.Namespace) -> None:
    """Print the table of claims of a finished study."""
    from shrink_utils.study.claims.report import _print_claims
    from shrink_utils.study.tables import read_table

    _print_claims(read_table("claims", profile=profile), profile)


def _do_course(profile: Profile, options: argparse.Namespace) -> None:
    """Write the exercises of the chapters as notebooks for students and for instructors."""
    from shrink_utils.study.course import _write_course

    folder, kept = _write_course(home() / "notebooks")
    print(f"For students: {folder}\nWith solutions, for teachers: {folder / 'instructor'}")
    if kept:
        print(f"The earlier folder is kept, with any answers in it: {kept}")


def _do_book(profile: Profile, options: argparse.Namespace) -> None:
    """Build the web book of the executed notebooks, or, without a finished study, of the stored."""
    import pandas as pd

    from shrink_utils.study.book import _build_book
    from shrink_utils.study.tables import read_table

    target = profile.folder / "book"
    if (profile.folder / "provenance.json").is_file():  # what a study writes last
        of, title = profile.folder / "notebooks", f"profile {profile.name}"
        claims = read_table("claims", profile=profile)
    else:
        of, title = home() / "notebooks", "as stored in the repository"
        claims = pd.read_csv(data_dir() / "reference" / "quick" / "claims.csv")
    _build_book(of, claims, target, title=title)
    print(f"{target / 'index.html'}")


def _do_ablate(profile: Profile, options: argparse.Namespace) -> None:
    """Fine-tune the missing runs of the grid and of the weight sweep, or a part of them."""
    from shrink_utils.study.runs import _check_inputs, _planned_runs, run_configs, run_id

    print(f"Ablation, profile {profile.name}: {profile.description}", flush=True)
    configs = profile.all_runs()[options.part]
    if options.dry_run:
        planned = _planned_runs(configs, profile)
        print(f"{planned.to_string(index=False, float_format='{:.1f}'.format)}\n")
        hours = (planned.missing * planned.seconds).sum() / 3600
        unknown = planned.missing[planned.seconds.isna()].sum()
        print(f"{hours:.1f} hours, one run after the other; {unknown} runs unlike any known one.")
        _check_inputs(configs)
        print("All encoders and tasks are there.")
        return
    if not all((profile.folder / "runs" / run_id(config)).exists() for config in configs):
        _check_inputs(configs)
    runs = run_configs(configs, profile)
    print(f"{len(runs)} runs in {profile.folder / 'runs'}")


def _slice_of_part(text: str) -> slice:
    """Of ``"3/8"``: the third of eight parts, which have every eighth run."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r}, expected such as 3/8, the third of eight")
    return slice(int(number) - 1, None, int(parts))


def _do_record(profile: Profile, options: argparse.Namespace) -> None:
    """Keep the tables of finished runs, without their models, in data/reference."""
    from shrink_utils.study.claims.reference import _record_all, _record_finished
    from shrink_utils.study.tables import _missing_runs

    added = (_record_all if options.run else _record_finished)(profile)
    wanted, missing = len(profile.all_runs()), len(_missing_runs(profile))
    print(f"{added} runs recorded: {wanted - missing} of {wanted} of profile {profile.name}")


def _do_hypotheses(profile: Profile, options: argparse.Namespace) -> None:
    """Print what was decided of the hypotheses fixed in docs/preregistration*.md."""
    from shrink_utils.study.claims.report import _print_hypotheses, _read_hypotheses
    from shrink_utils.study.profiles import profile_names

    folders = (data_dir() / "reference").glob("*/hypotheses.csv")
    decided = sorted({path.parent.name for path in folders} & {*profile_names()})
    if profile.name not in decided:
        raise ValueError(
            f"--profile: {', '.join(decided)} have hypotheses, found {profile.name}; "
            "`python -m shrink_utils --profile cohort hypotheses` shows them"
        )
    _print_hypotheses(_read_hypotheses(profile.name))


def _do_tables(profile: Profile, options: argparse.Namespace) -> None:
    """Write the claims that follow from runs on record, and every number of the pages."""
    from shrink_utils.study.claims.verdicts import _recorded_claims
    from shrink_utils.study.pages import _write_pages
    from shrink_utils.study.profiles import load_profile
    from shrink_utils.study.results import atomic_write

    for name in WITH_CLAIMS:
        with atomic_write(data_dir() / "reference" / name / "claims.csv") as part:
            _recorded_claims(load_profile(name)).to_csv(part, index=False, float_format="%.6f")
    _write_pages()


def _do_execute(profile: Profile, options: argparse.Namespace) -> None:
    """Run one notebook headless."""
    # nbformat reads jsonschema, which compiles a grammar of addresses for two seconds if it finds
    # one; no notebook needs it.
    sys.modules.setdefault("rfc3987_syntax", None)
    from shrink_utils.study.notebooks import _executed_notebooks, _run_notebook

    # The kernel reads its profile and seed from here.
    os.environ |= {"SHRINK_PROFILE": options.profile, "SHRINK_SEED": str(options.seed)}
    name, seconds = options.source.stem, _run_notebook(options.source, options.target)
    done = len(_executed_notebooks(options.target.parent))
    chapters = len(_executed_notebooks(options.source.parent))
    print(f"{name}: {seconds:.0f} s, {done} of {chapters} chapters", flush=True)


def _do_report(profile: Profile, options: argparse.Namespace) -> int:
    """Print the end of a study: what was computed, the verdicts, and the committed tables."""
    from shrink_utils.study.claims.reference import _print_comparison
    from shrink_utils.study.claims.report import _print_brief
    from shrink_utils.study.results import _write_json, atomic_write, provenance
    from shrink_utils.study.runs import _drop_models, _tables_of, run_configs
    from shrink_utils.study.tables import _first_steps, read_table, write_table

    runs = run_configs(profile.all_runs(), profile)
    for name, table in (left := _tables_of(runs)).items():
        with atomic_write(profile.folder / "tables" / f"{name}.parquet") as part:
            table.to_parquet(part, index=False)
    write_table(_first_steps(left), "first_steps", profile=profile)
    _print_brief(read_table("claims", profile=profile), profile, runs=len(runs))
    _drop_models(profile)
    about = {"profile": profile.name, "seed": profile.base_seed, "hash": profile.hash}
    with atomic_write(profile.folder / "provenance.json") as part:  # ends a study
        _write_json(part, about | {"precision": profile.used_precision} | provenance())
    return int(not _print_comparison(profile))


def _do_store(profile: Profile, options: argparse.Namespace) -> None:
    """Put the outputs of the executed notebooks into notebooks/."""
    from shrink_utils.study.notebooks import _executed_notebooks, _store_outputs

    for executed in _executed_notebooks(profile.folder / "notebooks"):
        _store_outputs(executed, home() / "notebooks" / executed.name)
        os.utime(executed)  # newer than what it was stored into: make has nothing to do


def _do_reference(profile: Profile, options: argparse.Namespace) -> None:
    """Make this machine's tables the committed reference of the profile."""
    from shrink_utils.study.claims.reference import _commit_reference

    _commit_reference(profile)


# For people, then for make.
COMMANDS = (
    *(_do_own, _do_diagnose, _do_claims, _do_hypotheses, _do_course, _do_book),
    *(_do_ablate, _do_record, _do_tables, _do_execute, _do_report, _do_store, _do_reference),
)


def _parser() -> argparse.ArgumentParser:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m shrink_utils", description=__doc__, formatter_class=kind
    )
    profile, seed = os.environ.get("SHRINK_PROFILE", "quick"), os.environ.get("SHRINK_SEED")
    _add_study(parser, profile=profile, seed=seed or "0")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = {}
    for function in COMMANDS:
        name, text = function.__name__.removeprefix("_do_"), function.__doc__
        made[name] = commands.add_parser(name, help=text, description=text)
        made[name].set_defaults(command=function)
        # A default here would undo what stands before the command.
        _add_study(made[name], profile=argparse.SUPPRESS, seed=argparse.SUPPRESS)
    made["execute"].add_argument("source", type=Path)
    made["execute"].add_argument("target", type=Path)
    part = "such as 3/8: the third of eight parts, one per machine or job; default: all"
    made["ablate"].add_argument("--part", type=_slice_of_part, default="1/1", help=part)
    dry = "look for encoders and tasks, print what would be run and what like runs took, and end"
    made["ablate"].add_argument("--dry-run", action="store_true", help=dry)
    made["record"].add_argument("--run", action="store_true", help="first compute what is missing")
    _add_own(made["own"])
    add = made["diagnose"].add_argument
    model = "minilm, mpnet, gemma, tiny-random, a hub id, or a local folder; two are compared"
    add("models", nargs="+", metavar="model", help=model)
    text = "a UTF-8 file or /dev/stdin, one sentence per line, at least 30; or CSV, TSV, JSON "
    text += "lines, Parquet, the folder of a data set; default: sentences of the study"
    add("--text", type=Path, help=text)
    add("--column", help="where the texts stand, if --text is a table")
    add("--max-length", type=int, help="tokens read of a text; default: 128, or fewer")
    texts = "texts in which a word has to stand to have a self-similarity; default: 5"
    add("--min-count", type=int, default=5, help=texts)
    sample = "of more texts a sample is read; default: 5000"
    add("--max-texts", type=int, default=5000, help=sample)
    folder = "folder of the CSV and the PNG; default: this one"
    add("--out", type=Path, default=Path(), help=folder)
    return parser


def _add_own(parser: argparse.ArgumentParser) -> None:
    """The file of a task, and options; those that are not given are not there."""
    parser.add_argument("texts", type=Path, help="CSV, TSV, JSON lines, Parquet, a data set")
    kinds = dict.fromkeys(("limit", "seeds", "epochs", "batch_size", "max_length"), int)
    kinds |= {"learning_rate": float, "valid": Path}
    for name, text in OWN_OPTIONS.items():
        given = {"type": kinds.get(name, str), "default": argparse.SUPPRESS, "help": text}
        given |= {"nargs": "+"} if name in ("arms", "weights") else {}
        parser.add_argument(f"--{name.replace('_', '-')}", **given)


def _add_study(parser: argparse.ArgumentParser, *, profile: str, seed: str) -> None:
    """Options that choose the study, before the command or after it."""
    parser.add_argument("--profile", default=profile, help="default: SHRINK_PROFILE, or quick")
    parser.add_argument("--seed", type=int, default=seed, help="default: SHRINK_SEED, or 0")


if __name__ == "__main__":
    sys.exit(main())
