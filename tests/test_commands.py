"""Every command that README, docs and `make help` name is run by a machine, and here is where."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / ".github/CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
STUDY = "tests/notebooks/test_end_to_end.py"
LINE = "tests/test_command_line.py"
# The file that runs a command, and what stands there when it does. What takes too long for `make
# test` says so: `nightly`, `browser`, or by hand before a release.
RUN_BY = {
    "make 01_isotropy": (STUDY, 'make("00_setup_and_data")'),  # one of the chapters, as it says
    "make 00_setup_and_data": (STUDY, 'make("00_setup_and_data")'),
    "make reproduce": (".ci/run", "make reproduce"),
    "make test": (".ci/run", "make test"),
    "make book": (".ci/run", "make book"),
    "make help": (STUDY, 'make("help")'),
    "make course": (STUDY, 'make("course")'),
    "make verify": ("Makefile", "-m pytest -q -rs -o addopts= tests/test_registration.py"),
    "make notebooks": (STUDY, 'make("-n", "notebooks")'),  # a prerequisite of `reproduce`
    "make ablation": ("Makefile", "-s --no-print-directory ablation"),  # begins `reproduce`
    "make lab": (LINE, '"lab", f"LAB={options}"'),
    "make lint": ("Makefile", "-m ruff check . && $(PY) -m ruff format --check ."),  # in `test`
    "make clean": (LINE, 'run_make("-C", str(folder), "clean")'),
    "make tables": ("tests/study/claims/test_committed.py", '["make", "tables",'),
    "make own": ("tests/study/test_own.py", 'run_make("-n", "own"'),
    "python -m shrink_utils own": ("tests/study/test_own.py", 'main(["own", str(path)'),
    "python -m shrink_utils diagnose": (LINE, 'main(["diagnose", "tiny-random"'),
    "python -m shrink_utils hypotheses": (
        "tests/study/claims/test_committed.py",
        'main(["--profile", name, "hypotheses"])',
    ),
    "python -m shrink_utils claims": (LINE, 'main(["claims"])'),
    "python -m shrink_utils course": ("tests/study/test_course_made.py", 'main(["course"])'),
    "python -m shrink_utils book": (".ci/run", "make book"),
    "python -m shrink_utils record": (LINE, "-m shrink_utils record"),
    "python -m shrink_utils ablate": (LINE, '"shrink_utils", "ablate"'),
}
BY_HAND = {"make unit", "make nightly", "make browser", "make compatibility", "make bench"}
BY_HAND |= {"make types", "make store", "make reference", "make replicate"}  # change the committed
# What a card of the project names, where it works in earnest.
PACKAGES = {
    "torch": "shrink_utils/topology/regularizer.py",
    "transformers": "shrink_utils/study/finetuning.py",
    "datasets": "shrink_utils/text/tasks.py",
    "gudhi": "shrink_utils/topology/barcodes.py",
    "jupyterlab": "Makefile",
    "papermill": "shrink_utils/study/notebooks.py",
    "seaborn": "shrink_utils/study/figures.py",
    "pandas": "shrink_utils/study/tables.py",
    "nbval": "tests/notebooks/conftest.py",
}


def named(text: str) -> set[str]:
    """Commands in code blocks and code spans of a page, without their options."""
    code = re.findall(r"```(?:sh|text)?\n(.*?)```|`([^`\n]+)`", text, flags=re.DOTALL)
    code = "\n".join(part for pair in code for part in pair)
    # Settings may stand before the target, options of the study before the command.
    made = re.findall(r"(?:^|[ $;])make((?: +[A-Z]+=\S+)*) +([a-z0-9_]+)", code, flags=re.MULTILINE)
    called = re.findall(r"-m shrink_utils((?: +--\w+ +\w+)*) +([a-z]+)", code)
    lines = {f"make {target}" for _, target in made}
    return lines | {f"python -m shrink_utils {command}" for _, command in called}


def faults(commands: set[str]) -> list[str]:
    """Those that nothing runs, and entries whose test is gone."""
    lost = [f"{name}: nothing runs it" for name in commands - RUN_BY.keys() - BY_HAND]
    for name in commands & RUN_BY.keys():
        file, line = RUN_BY[name]
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
        if line not in text:
            lost.append(f"{name}: {file} has no {line}")
    return sorted(lost)


def test_every_command_that_a_page_names_is_run():
    helped = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    commands = {f"make {target}" for target in helped}
    for page in PAGES:
        commands |= named(page.read_text(encoding="utf-8"))
    assert len(commands) > 20 and faults(commands) == []


def test_a_command_that_nothing_runs_is_found_wherever_it_stands():
    for page in (
        "`make polish`",
        "```sh\nmake X=1 polish  # shines\n```",
        "```\n$ make polish\n```",
    ):
        assert faults(named(page)) == ["make polish: nothing runs it"]
    (fault,) = faults(named("Call `python -m shrink_utils --profile cohort polish`."))
    assert "shrink_utils polish" in fault


def test_every_package_of_the_card_is_in_use():
    for package, file in PACKAGES.items():
        assert package in (ROOT / file).read_text(encoding="utf-8"), f"{package}: not in {file}"
