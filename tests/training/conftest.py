"""Small models, rows and trainers: the stock Trainer, and ours where asked."""

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from shrink_utils.topology import BarcodeRegularizer

# Of rewards that need some, by their names in `PENALTIES`.
OPTIONS = {"ranked": {"keep": "longest"}, "regrouped": {"groups": "shuffled"}}
BERT = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}


def bert(kind=BertForSequenceClassification, **options):
    torch.manual_seed(0)
    model = kind(BertConfig(**BERT, num_attention_heads=2, **options))
    for parameter in model.parameters():  # far from 0, so that settings of the loss can be seen
        if parameter.dim() > 1:
            parameter.data *= 8
    return model


def make_rows(n=20, seed=0, **columns):
    words = torch.randint(5, 60, (n, 6), generator=torch.Generator().manual_seed(seed))
    labels = [-100 if i % 5 == 4 else i % 2 for i in range(n)]  # a fifth is not labelled
    rows = [{"input_ids": w, "labels": y} for w, y in zip(words, labels, strict=True)]
    return [row | {name: make(i) for name, make in columns.items()} for i, row in enumerate(rows)]


@pytest.fixture
def make_trainer(tmp_path):
    """Trainers of one model and one set of rows each: the stock one, and ours where asked."""

    def make(kind=Trainer, *, model=None, rows=None, folder="out", own=None, **options):
        own = dict(own or {})
        if kind is not Trainer:
            own.setdefault("regularizer", BarcodeRegularizer("all", weight=0.0))
        settings = {"max_steps": 3, "per_device_train_batch_size": 8, "save_strategy": "no"}
        settings |= {"logging_steps": 2, "learning_rate": 1e-2, "report_to": "none"} | options
        for name in ("compute_metrics", "compute_loss_func"):
            if name in settings:
                own[name] = settings.pop(name)
        settings |= {"use_cpu": True, "disable_tqdm": True}
        args = TrainingArguments(str(tmp_path / kind.__name__ / folder), **settings)
        model = bert() if model is None and "model_init" not in own else model
        rows = rows or make_rows()
        return kind(model=model, args=args, train_dataset=rows, eval_dataset=rows, **own)

    return make
