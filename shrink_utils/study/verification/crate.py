"""A finished folder of results as an RO-Crate 1.1: what other programs read of its provenance.

References
----------
https://www.researchobject.org/ro-crate/specification/1.1/
"""

from __future__ import annotations

from pathlib import Path

import shrink_utils
from shrink_utils.study.publishing.notebooks import executed_notebooks
from shrink_utils.study.verification.folder import PAGE, table_files

CRATE = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
FORMATS = {
    ".csv": "text/csv",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".md": "text/markdown",
}


def crate(folder: Path, page: dict) -> dict:
    """JSON-LD of a folder of results: its tables, executed notebooks and pages of provenance.

    Runs and measured tables are listed in ``provenance.json`` alone, which holds `page`.
    """
    paths = [*table_files(folder), *executed_notebooks(folder / "notebooks")]
    names = [path.relative_to(folder).as_posix() for path in paths] + [PAGE, "provenance.md"]
    return {
        "@context": f"{SPECIFICATION}/context",
        "@graph": [
            {
                "@id": CRATE,
                "@type": "CreativeWork",
                "conformsTo": {"@id": SPECIFICATION},
                "about": {"@id": "./"},
            },
            _results(names, page),
            *map(_file, names),
            _study(page),
            {
                "@id": "#shrink",
                "@type": "SoftwareApplication",
                "name": "shrink",
                "version": f"{shrink_utils.__version__}, commit {page['commit']}",
            },
        ],
    }


def _results(names: list[str], page: dict) -> dict:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": "shrink, profile {name}, seed {seed}".format(**page["profile"]),
        "description": page["description"],
        "datePublished": page["time"],
        "license": {"@id": "https://spdx.org/licenses/MIT"},
        "hasPart": [{"@id": name} for name in names],
        "mentions": {"@id": "#study"},
    }


def _file(name: str) -> dict:
    path = Path(name)
    return {"@id": name, "@type": "File", "name": path.stem, "encodingFormat": FORMATS[path.suffix]}


def _study(page: dict) -> dict:
    packages = ", ".join(f"{name} {number}" for name, number in page["packages"].items())
    return {
        "@id": "#study",
        "@type": "CreateAction",
        "name": "the study's run",
        "description": f"Python {page['python']}, {packages}; {page['platform']}, {page['device']}",
        "instrument": {"@id": "#shrink"},
        "result": {"@id": "./"},
        "endTime": page["time"],
    }
