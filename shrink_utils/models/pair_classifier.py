"""A small classifier of sentence pairs with fresh weights, on the trunk of the scratch models."""

from __future__ import annotations

from transformers import BertForSequenceClassification, PreTrainedModel

from shrink_utils.models._loading import quiet, seeded
from shrink_utils.models.scratch import Trunk, scratch_model

__all__ = ["entailment_output", "new_pair_classifier", "with_new_head"]

LABELS = {0: "entailment", 1: "not_entailment"}
# In models converted from BERT's own code, whose outputs have no names.
UNNAMED_MNLI = ("contradiction", "entailment", "neutral")


def new_pair_classifier(
    trunk: Trunk, *, vocab_size: int, max_length: int, pad_id: int = 0, seed: int
) -> PreTrainedModel:
    """A ``BertForSequenceClassification`` that says whether a text entails another.

    Parameters
    ----------
    trunk : Trunk
    vocab_size, max_length, pad_id : int
        As of `scratch_model`.
    seed : int
        Of the weights. The global random state is left as it was.

    Returns
    -------
    PreTrainedModel
        In evaluation mode, on the CPU; output 0 is entailment.

    Notes
    -----
    Weights are drawn with standard deviation 1/√width. BERT's .02 is .55/√width at its width of
    768; a trunk of 64 that begins at .02 has next to no attention pattern to begin with and, in
    some hundred steps, does not learn to find a word of one text in the other.
    """
    scratch = scratch_model(
        trunk, "mlm", vocab_size=vocab_size, max_length=max_length, pad_id=pad_id, seed=seed
    )
    config = scratch.config
    config.initializer_range = trunk.width**-0.5
    config.id2label, config.label2id = LABELS, {name: i for i, name in LABELS.items()}
    with quiet(), seeded(seed):
        return BertForSequenceClassification(config).eval()


def with_new_head(model: PreTrainedModel, *, seed: int) -> PreTrainedModel:
    """A copy of a pair classifier whose pooler and output layer are drawn anew.

    Parameters
    ----------
    model : PreTrainedModel
        Of `new_pair_classifier`; left as it is.
    seed : int
        Of the new weights.
    """
    with quiet(), seeded(seed):
        copy = BertForSequenceClassification(model.config)
    for mine, source in (
        (copy.bert.embeddings, model.bert.embeddings),
        (copy.bert.encoder, model.bert.encoder),
    ):
        mine.load_state_dict(source.state_dict())
    return copy.eval()


def entailment_output(model: PreTrainedModel) -> int:
    """Which output of a classifier of pairs is entailment.

    Parameters
    ----------
    model : PreTrainedModel
        Its configuration names the outputs, or it has three and BERT's own order of MNLI's labels:
        contradiction, entailment, neutral.

    Raises
    ------
    ValueError
        Outputs without a name, and not three of them.

    References
    ----------
    McCoy, Min & Linzen 2020, *BERTs of a feather do not generalize together*, trained with BERT's
    own code; the order of their models is stated by Juneja et al. 2023, *Linear Connectivity
    Reveals Generalization Strategies* (github.com/aNOnWhyMooS/connectivity).
    """
    named = {name.lower(): int(i) for i, name in model.config.id2label.items()}
    if "entailment" in named:
        return named["entailment"]
    if len(named) == len(UNNAMED_MNLI) and all(name.startswith("label_") for name in named):
        return UNNAMED_MNLI.index("entailment")
    raise ValueError(
        f"model: its outputs are {sorted(named)}, expected one named 'entailment', or three "
        "without names"
    )
