"""Where Euler's rule fails: momentum SGD at a learning rate that overshoots."""

from __future__ import annotations

import pandas as pd
import torch
from torch.utils.data import DataLoader

from shrink_utils.study.dynamics.followed import dynamics_config, record_table
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.training import examples, held_out_batches, new_model, scratch_tokenizer
from shrink_utils.training.dynamics import Allocator, FixedSetLoss
from shrink_utils.training.scratch_data import collator
from shrink_utils.training.threads import torch_threads

__all__ = ["measure_sgd"]

RULES = ("euler", "trapezoid", "simpson", "adaptive")
MOMENTUM = 0.9
TOLERANCE = 2e-4  # of a step, so that the errors of all of them stay small beside ΔL


@measured("dynamics_sgd")
def measure_sgd(profile: Profile) -> pd.DataFrame:
    """Allocate a causal language model's loss along momentum SGD, in a plain loop.

    Parameters
    ----------
    profile : Profile
        Its first seed of the pretraining, and the steps and learning rate of ``dynamics``.

    Returns
    -------
    DataFrame
        Of `followed.record_table`, with every rule, and with the quantity "pieces": into how many
        pieces the adaptive rule split each step.
    """
    seed, sizes = profile.pretraining.seeds[0], profile.dynamics
    config = dynamics_config(profile, "clm", seed=seed)
    tokenizer = scratch_tokenizer(config)
    loss = FixedSetLoss(held_out_batches(config, tokenizer, n=max(1, sizes.sentences // 2)))
    batches = DataLoader(
        examples(config, tokenizer)[0],
        batch_size=config.batch_size,
        shuffle=True,
        collate_fn=collator(config, tokenizer),
        generator=torch.Generator().manual_seed(config.data_seed),
    )
    with torch_threads(config.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)  # dropout
        model = new_model(config, tokenizer).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=sizes.sgd_rate, momentum=MOMENTUM)
        allocator = Allocator(model, loss, rules=RULES, tolerance=TOLERANCE)
        with progress_bar(total=sizes.sgd_steps, unit="step", description="momentum SGD") as bar:
            for batch, _ in zip(batches, range(sizes.sgd_steps), strict=False):
                optimizer.zero_grad()
                model(**batch).loss.backward()
                allocator.start()
                optimizer.step()
                allocator.finish()
                bar.update()
    record = record_table(allocator.changes())
    losses = record[(record.quantity == "loss") & (record.step > 0)]
    pieces = losses.assign(quantity="pieces", value=allocator.changes().pieces.astype(float))
    return pd.concat([record, pieces], ignore_index=True)
