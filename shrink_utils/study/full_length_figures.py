"""Figures of the sections *At full length*: isotropy against clusters."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from shrink_utils.study.ablation import CELL, arm_points
from shrink_utils.study.figures import legend_beside


def clusters_figure(clouds: pd.DataFrame) -> Figure:
    """Silhouette of the classes against IsoScore, a panel per model and task."""
    cells = list(clouds.groupby(CELL, sort=False))
    fig, axes = plt.subplots(1, len(cells), figsize=(4.2 * len(cells), 3.7), squeeze=False)
    for ax, ((model, task), rows) in zip(axes[0], cells, strict=True):
        arm_points(ax, rows, "isoscore", "silhouette")
        ax.set(title=f"{model} · {task}", xlabel="IsoScore", ylabel="silhouette of the classes")
    legend_beside(fig, axes[0], labelspacing=1.0)
    return fig
