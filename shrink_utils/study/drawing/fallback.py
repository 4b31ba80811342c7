"""A widget where there is a kernel, a picture where there is none: one display of both."""

from __future__ import annotations

import base64
from typing import Any

from ipywidgets import DOMWidget

__all__ = ["WIDGET_VIEW", "with_fallback"]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def with_fallback(widget: DOMWidget, png: bytes, *, alt: str) -> tuple[dict[str, Any], dict]:
    """What IPython's `display(data, metadata=metadata, raw=True)` takes to show either of them.

    A frontend shows the richest kind that it knows: JupyterLab the widget; GitHub, the book and a
    notebook whose kernel has ended the picture.

    Parameters
    ----------
    widget : DOMWidget
    png : bytes
        What is to be seen where the widget cannot run.
    alt : str
        One sentence for somebody who cannot see the picture.

    Returns
    -------
    data, metadata : dict
        By MIME type.
    """
    data = {
        WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id},
        "image/png": base64.b64encode(png).decode("ascii"),
        "text/plain": alt,
    }
    return data, {"image/png": {"alt": alt}}
