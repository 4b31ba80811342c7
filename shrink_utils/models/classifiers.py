"""Load an encoder with a classification head, for fine-tuning."""

from __future__ import annotations

from pathlib import Path

from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from shrink_utils.models._loading import (
    TINY,
    load_tokenizer,
    pretrained,
    quiet,
    seeded,
    tiny_config,
)
from shrink_utils.models.encoders import load_encoder

__all__ = ["load_classifier", "save_classifier"]


def load_classifier(
    name: str, *, n_labels: int, seed: int, is_regression: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an encoder with a new head that classifies (or scores) texts, for fine-tuning.

    Parameters
    ----------
    name
        As for `load_encoder`; the encoder below the head has the same weights as there.
    n_labels
        Number of classes, at least 2; 1 for a regression.
    seed
        Seeds the head's weights, and nothing else: the global random state is left as it was.
    is_regression
        The head has one output, trained with squared error.

    Returns
    -------
    model, tokenizer
        An ``AutoModelForSequenceClassification`` in evaluation mode, on the CPU, and its tokenizer.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_encoder`; and ``n_labels`` that does not fit ``is_regression``.
    """
    if (n_labels < 2 and not is_regression) or (n_labels != 1 and is_regression):
        expected = "1 for a regression" if is_regression else "at least 2 classes"
        raise ValueError(f"n_labels: {n_labels}, expected {expected}")
    problem = "regression" if is_regression else "single_label_classification"
    head = {"num_labels": n_labels, "problem_type": problem}
    with quiet(), seeded(seed):
        if name == TINY:
            model = AutoModelForSequenceClassification.from_config(tiny_config(**head))
            model.base_model.load_state_dict(load_encoder(TINY).model.state_dict())
        else:
            model = pretrained(AutoModelForSequenceClassification, name, **head)
        tokenizer = load_tokenizer(name)
    if getattr(model.config, "pad_token_id", None) is None:  # GPT-2's head looks for padding
        model.config.pad_token_id = tokenizer.pad_token_id
    return model.eval(), tokenizer


def save_classifier(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write a fine-tuned encoder and its head in Hugging Face's layout.

    ``load_encoder(str(folder))`` reads the encoder back, and transformers all of it.

    Parameters
    ----------
    model, tokenizer
        As `load_classifier` gives them.
    folder
        Made if it is not there.
    """
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
