#!/usr/bin/env bash
# One study on a cluster: eight jobs, each makes every eighth run of what is missing (sbatch docs/slurm.sh).
#SBATCH --job-name=shrink --array=1-8
#SBATCH --gres=gpu:1 --cpus-per-task=8 --mem=32G --time=04:00:00
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"                      # the checkout, on a disk that all nodes see
export SHRINK_PROFILE="${SHRINK_PROFILE:-paper}" # first, on the login node: make .venv/.complete, then ablate --dry-run
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
.venv/bin/python -m shrink_utils ablate --part "${SLURM_ARRAY_TASK_ID}/${SLURM_ARRAY_TASK_COUNT}"
