"""Chapters 04 and 05 for a hosted notebook service: one cell installs all that they need.

The chapters are the one source. A cell tagged ``study`` reads runs of the study, which such a
service does not have: in its place stands what it showed when the chapter was stored, and says so.
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from shrink_utils.study.results import written

HOSTED, CHAPTERS = "hosted", ("04_barcodes", "05_regularizer")
STUDY = "study"  # the tag of cells that need the study's runs

ABOUT = """## Install, once

The next cell installs the package `shrink-utils` and what draws its figures. It takes the package
from the repository whose address you write between the quotation marks of `REPOSITORY`: the one in
which you found this notebook. If you leave them empty, it takes a wheel of the package that lies
beside this notebook (`pip wheel --no-deps .` in a copy of the repository makes one).

This notebook needs no run of the study and no encoder. Results that only the study can compute are
stored in it, and the text says so. The mark `# NBVAL_CHECK_OUTPUT` is for the tests: they compare
what the cell prints. `make course` is a command of the repository."""

INSTALL = """from pathlib import Path

REPOSITORY = ""  # such as "https://example.org/somebody/shrink"

wheels = sorted(Path().glob("shrink_utils-*.whl"))
assert REPOSITORY or wheels, "Write an address into REPOSITORY, or put a wheel beside the notebook."
source = f"git+{REPOSITORY}" if REPOSITORY else wheels[-1].resolve().as_uri()
%pip install --quiet "shrink-utils[notebook] @ {source}\""""

STORED = "*Stored by the study (profile `quick`); not run here.*"


def write_hosted(notebooks: Path) -> Path:
    """Write the pair of hosted notebooks into ``hosted`` beside the chapters; returns that folder.

    Parameters
    ----------
    notebooks
        Folder of the chapters, with the outputs that ``make store`` left in them.

    Raises
    ------
    FileNotFoundError
        One of the two chapters is not there.
    """
    for name in CHAPTERS:
        made = hosted_notebook(notebooks / f"{name}.ipynb")
        with written(notebooks / HOSTED / f"{name}.ipynb") as part:
            nbformat.write(made, part)
    return notebooks / HOSTED


def hosted_notebook(chapter: Path) -> NotebookNode:
    """A chapter without outputs, with a cell that installs the package after its opening.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook.
    """
    if not chapter.is_file():
        raise FileNotFoundError(f"chapter: no notebook {chapter}")
    notebook = nbformat.read(chapter, as_version=4)
    opening, *cells = map(_hosted, notebook.cells)
    opening.source = re.sub(r"\*\*Runtime\.\*\*.*\n\n", "", opening.source)  # that of the study
    about = nbformat.v4.new_markdown_cell(ABOUT, id="install-text")
    install = nbformat.v4.new_code_cell(INSTALL, id="install")
    return nbformat.v4.new_notebook(
        cells=[opening, about, install, *cells], metadata=notebook.metadata
    )


def _hosted(cell: NotebookNode) -> NotebookNode:
    if cell.cell_type == "markdown":
        return nbformat.v4.new_markdown_cell(_unlinked(cell.source), id=cell.id)
    tags = cell.metadata.get("tags", [])
    if STUDY in tags:
        return nbformat.v4.new_markdown_cell(_stored(cell, "hide-input" in tags), id=cell.id)
    # Folded in JupyterLab and in Colab, which has a mark of its own.
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    metadata = nbformat.from_dict(folded if "hide-input" in tags else {})
    if "parameters" in tags:  # papermill's mark
        metadata["tags"] = ["parameters"]
    return nbformat.v4.new_code_cell(cell.source, id=cell.id, metadata=metadata)


def _stored(cell: NotebookNode, folded: bool) -> str:
    """Code that cannot run here, unless it is folded in the chapter, and what it showed."""
    code = [] if folded else [f"```python\n{cell.source}\n```"]
    return "\n\n".join([STORED, *code, *map(_shown, cell.outputs)])


def _shown(output: NotebookNode) -> str:
    """A stored output as markdown; a picture inside it, since Colab shows no attachments."""
    data = output.get("data", {})
    if "image/png" in data:
        alt, png = output.metadata["image/png"]["alt"], "".join(data["image/png"].split())
        return f"![{alt}](data:image/png;base64,{png})"
    if "text/html" in data:
        return re.search(r"<table.*</table>", data["text/html"], re.DOTALL)[0]
    if "text/markdown" in data:
        return _unlinked(data["text/markdown"])
    return f"```\n{(output.get('text') or data['text/plain']).rstrip()}\n```"


def _unlinked(text: str) -> str:
    """Only the pair travels: other links into the repository become plain words."""
    beside = "|".join(CHAPTERS)
    return re.sub(rf"\[([^\[\]]*)\]\((?!https?:|(?:{beside})\.ipynb)[^)\s]+\)", r"\1", text)
