"""What is run, run-or-load, verdicts, and what people look at: the list of `__init__.py`."""

from . import figures as figures
from .claims.report import claims_in_brief as claims_in_brief
from .finetuning import finetune as finetune, make_regularizer as make_regularizer
from .own import answer_own as answer_own, plan_own as plan_own, run_own as run_own
from .pretraining import ScratchConfig as ScratchConfig, pretrain as pretrain
from .profiles import (
    ARMS as ARMS,
    Profile as Profile,
    RunConfig as RunConfig,
    load_profile as load_profile,
    profile_names as profile_names,
    setup_notebook as setup_notebook,
)
from .results import provenance as provenance
from .runs import (
    Run as Run,
    load_run as load_run,
    run_encoder as run_encoder,
    default_run as default_run,
    run_grid as run_grid,
    run_id as run_id,
    run_or_load as run_or_load,
    study_tables as study_tables,
)
from .tables import (
    read_table as read_table,
    score_table as score_table,
    task_table as task_table,
    write_table as write_table,
)
