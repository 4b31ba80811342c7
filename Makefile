# The study from end to end. `make help` lists the targets; PROFILE= and SEED= choose what is run.
PROFILE ?= quick
SEED    ?= 0
PYTHON  ?= python3

# What is wrong with a setting is said before anything is installed or run.
KNOWN := $(sort $(basename $(notdir $(wildcard shrink_utils/study/profiles/*.toml))))
$(if $(KNOWN),,$(error the study is in another folder: call `make -C` with the folder of $(strip $(MAKEFILE_LIST))))
$(if $(and $(filter 1,$(words $(PROFILE))),$(filter $(KNOWN),$(PROFILE))),,$(error PROFILE=$(PROFILE) is no profile; there are $(KNOWN)))
$(if $(shell printf '%s' '$(SEED)' | grep -xE '0|[1-9][0-9]*'),,$(error SEED=$(SEED) is no whole number such as 0 or 1))
$(if $(shell awk 'BEGIN {print ($(SEED) > 4294966 ? "large" : "")}'),$(error SEED=$(SEED) is above 4294966: a run has 1000 times that seed, and random generators take 32 bits))
$(if $(word 2,$(SHRINK_RESULTS_DIR)),$(error SHRINK_RESULTS_DIR=$(SHRINK_RESULTS_DIR) holds a space, which make cannot follow; take another folder, or a link to it whose path has no space))
$(if $(filter own,$(MAKECMDGOALS)),$(if $(TEXTS),,$(error own: which file? such as make own TEXTS=tickets.csv LABEL=category)))
# An exported seed is easily forgotten, and makes another study than the committed one.
$(if $(filter environment-0-,$(origin SEED)-$(MAKELEVEL)-$(filter 0,$(SEED))),$(info SEED=$(SEED) comes from the environment: `unset SEED` for the committed study))

# Chapters, tests and the set-up run this checkout's code in this environment: what points Python,
# Jupyter or pip elsewhere is not handed on. (`export PIP_USER` undoes `user = true` of a pip.conf.)
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONSAFEPATH PYTHONOPTIMIZE PYTHONPLATLIBDIR PYTHONWARNINGS
unexport JUPYTER_PATH IPYTHONDIR SHRINK_HOME PIP_TARGET PIP_PREFIX PIP_ROOT PIP_DRY_RUN PIP_PYTHON PIP_NO_DEPS
export PYTHONNOUSERSITE := 1
export PIP_USER := 0

export SHRINK_PROFILE := $(PROFILE)
export SHRINK_SEED    := $(SEED)
# So many processes fine-tune, whatever the profile says.
$(if $(WORKERS),$(eval export SHRINK_WORKERS := $(WORKERS)))
# Kernels run in notebooks/: a relative folder has to mean the same there.
absolute = $(if $($(1)),$(eval export $(1) := $(shell realpath -m "$($(1))")))
$(foreach folder,SHRINK_GLUE_DIR SHRINK_DATA_DIR SHRINK_RESULTS_DIR,$(call absolute,$(folder)))
# Processes and threads are as the profile says; nothing asks a hub for what is on disk.
export TOKENIZERS_PARALLELISM := false
export PYTHONHASHSEED := 0
# Threads that wait sleep instead of spinning: as fast on idle cores, half again as fast on busy ones.
export OMP_WAIT_POLICY := passive
# NumPy's products are small here: on busy cores a second thread made the trees of chapter 12 take five times as long.
export OPENBLAS_NUM_THREADS := 1
# Memory that a training step frees is kept for the next one (glibc): a tenth of fine-tuning was page faults.
export MALLOC_MMAP_THRESHOLD_ := 4294967296
export MALLOC_TRIM_THRESHOLD_ := 4294967296

IS_NEW  := import sys; sys.exit(sys.version_info < (3, 11, 5))
TOO_OLD := shrink needs Python 3.11.5 or newer, PYTHON=$(PYTHON) is none: make PYTHON=/path/to/python3.11

BIN  := .venv/bin
PY   := $(BIN)/python
VENV := .venv/.complete
# SEED=0 is the committed study; another seed is another study, kept beside it.
OUT  := $(or $(SHRINK_RESULTS_DIR),results)/$(PROFILE)$(if $(filter-out 0,$(SEED)),-seed$(SEED))

CHAPTERS := $(sort $(basename $(notdir $(wildcard notebooks/[0-9]*.ipynb))))
# The longest first, so that none of them is left to run alone at the end.
LONGEST  := $(foreach n,09 09b 10 12 02 08 08b 03,$(filter $(n)_%,$(CHAPTERS)))
ORDER    := $(LONGEST) $(filter-out $(LONGEST),$(CHAPTERS))
DONE     := $(ORDER:%=$(OUT)/notebooks/%.ipynb)
REPORT   := $(OUT)/report.txt

# The grid comes first, with as many processes as the profile has workers. Then notebooks, one more at
# once where there are several: when one waits for the disk, the others have something to do.
PROFILE_FILE := shrink_utils/study/profiles/$(PROFILE).toml
JOBS         ?= $(or $(shell awk '/^workers *=/{print ($$3 > 1 ? $$3 + 1 : 1)}' $(PROFILE_FILE) 2>/dev/null),1)
# The page that `report` writes is there when a study has come to its end, and only then.
UNFINISHED   := rm -f $(OUT)/provenance.json
AT_ONCE      := $(MAKE) -s --no-print-directory ablation && $(MAKE) -s --no-print-directory -j $(JOBS)

.DELETE_ON_ERROR:
.PHONY: own help reproduce study notebooks ablation test unit course nightly verify compatibility bench lint types lab book browser store reference tables clean $(CHAPTERS)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '  make %-13s %s\n' 01_isotropy 'run one notebook, any of notebooks/, and its runs'
	@printf '\n  PROFILE=%s (now %s)   SEED=0,1,… (now %s)\n' "$$(echo $(KNOWN) | tr ' ' '|')" $(PROFILE) $(SEED)

# Of two at once, the second waits for the first, and then finds nothing to do.
reproduce: $(VENV) ## run the study: outdated notebooks, then the claims
	@mkdir -p $(OUT)
	@flock --nonblock $(OUT) true || echo "Another make is working in $(OUT): waiting until it ends."
	@flock --close $(OUT) $(MAKE) -s --no-print-directory study

study:
	+@if $(MAKE) -q --no-print-directory $(REPORT); then echo "Nothing to run: $(OUT) is up to date."; \
	else $(AT_ONCE) $(REPORT); fi
	@cat $(REPORT)

# The claims, and the comparison with the committed tables; a number out of tolerance is an error.
$(REPORT): $(DONE) $(wildcard data/reference/$(PROFILE)/*.csv)
	@$(PY) -m shrink_utils report > $@.part || { cat $@.part >&2; rm $@.part; exit 1; }
	@mv $@.part $@

notebooks: $(VENV) ## run the notebooks alone
	+@$(AT_ONCE) $(DONE)

$(CHAPTERS): %: $(OUT)/notebooks/%.ipynb

# --- environment -----------------------------------------------------------------------------
# PyPI's torch for Linux brings gigabytes of CUDA. Without an NVIDIA driver torch's own index is asked,
# too: its CPU build of the pinned version is preferred, and where it cannot be reached pip goes on.
CPU_INDEX := $(if $(shell command -v nvidia-smi),,--extra-index-url https://download.pytorch.org/whl/cpu)
TORCH     := $(shell grep '^torch==' requirements.lock)
$(VENV): requirements.lock pyproject.toml
	@$(PYTHON) -I -c '$(IS_NEW)' || { echo "$(TOO_OLD)"; exit 1; }
	@echo "Setting up .venv, once: about 0.7 GB to download, 2.3 GB on disk, 2 to 5 minutes (log: .venv.log)"
	@{ $(PYTHON) -m venv .venv && $(PY) -m pip install --retries 1 $(CPU_INDEX) $(TORCH) \
	    && $(PY) -m pip install -r requirements.lock && $(PY) -m pip install --no-deps --no-build-isolation -e . \
	    && $(PY) -P tests/environment.py; \
	} > .venv.log 2>&1 || { tail -n 20 .venv.log; echo "The set-up failed; all of it is in .venv.log."; exit 1; }
	@touch $@

# --- notebooks -------------------------------------------------------------------------------
# Two files that change only with the code, not with its comments: library.hash, which runs rest on, and
# package.hash. A table in a notebook is kept by its own key: most of a notebook that runs again is loaded.
SOURCES := $(wildcard shrink_utils/*.py shrink_utils/*/*.py shrink_utils/*/*/*.py)
$(OUT)/code.mk: $(SOURCES)
	@mkdir -p $(@D)
	@flock --close $(dir $(OUT)) $(PYTHON) shrink_utils/study/code_version.py $(OUT) && touch $@
ifeq ($(filter help clean lab lint nightly verify compatibility tables own,$(MAKECMDGOALS)),)
ifneq ($(MAKECMDGOALS),)
$(if $(shell $(PYTHON) -I -c '$(IS_NEW)' 2>/dev/null && echo yes),,$(error $(TOO_OLD)))
include $(OUT)/code.mk
endif
endif
$(OUT)/library.hash $(OUT)/package.hash: ;

$(OUT)/notebooks/%.ipynb: notebooks/%.ipynb $(OUT)/package.hash requirements.lock | $(VENV)
	@$(UNFINISHED)
	@$(PY) -m shrink_utils execute $< $@

# Their sections "At full length" show records of finished profiles.
$(foreach n,07_ablation 08_geometry_after_finetuning 11_claims,$(OUT)/notebooks/$(n).ipynb): $(wildcard data/reference/cohort/*.parquet data/reference/glue/*.parquet)
DECISIONS := $(wildcard $(foreach p,cohort strength strength/one_device heldout last base,data/reference/$(p)/decided.csv data/reference/$(p)/hypotheses.csv data/reference/$(p)/beside.csv))
$(foreach n,07_ablation 07b_equal_strength 11_claims,$(OUT)/notebooks/$(n).ipynb): $(DECISIONS)
$(foreach n,07b_equal_strength 11_claims,$(OUT)/notebooks/$(n).ipynb): $(wildcard data/reference/strength/*.parquet)
$(OUT)/notebooks/07b_equal_strength.ipynb: $(wildcard data/reference/heldout/evaluations.parquet data/reference/heldout/rows.parquet data/reference/last/evaluations.parquet)
$(OUT)/notebooks/11_claims.ipynb: $(wildcard data/reference/models/*.parquet data/reference/models/claims.csv)
$(OUT)/notebooks/02_contextuality.ipynb: $(wildcard data/reference/models/layers.csv)
$(OUT)/notebooks/12_topology_on_language.ipynb: $(wildcard data/reference/models/machine_text.csv)
$(OUT)/notebooks/14_your_own_task.ipynb: $(wildcard data/reference/cohort/correct.parquet)
# And these, and the claims, those of models trained from nothing.
$(foreach n,08 08b 09 10 11,$(filter $(OUT)/notebooks/$(n)_%,$(DONE))): $(wildcard $(foreach t,*.parquet *.csv decide.py,data/reference/objectives/$(t)) data/reference/papers/*.csv)
$(OUT)/notebooks/13_what_for.ipynb: $(wildcard data/reference/heldout/uses.parquet data/reference/heldout/hypotheses.csv data/reference/last/uses.parquet data/reference/last/hypotheses.csv)

# The claims are computed from what the other notebooks measure.
$(OUT)/notebooks/11_claims.ipynb: $(filter-out %/11_claims.ipynb,$(DONE))

$(DONE) $(OUT)/ablation.complete: $(wildcard $(PROFILE_FILE) data/sources.toml data/hub.toml)
$(DONE): $(wildcard data/published/*.csv)

# These read the whole grid.
$(foreach n,05 07 08 08b 11 14,$(filter $(OUT)/notebooks/$(n)_%,$(DONE))): $(OUT)/ablation.complete

$(OUT)/ablation.complete: $(OUT)/library.hash requirements.lock | $(VENV)
	@$(UNFINISHED)
	@$(PY) -m shrink_utils ablate
	@mkdir -p $(@D) && touch $@

ablation: $(OUT)/ablation.complete ## fine-tune the missing runs of the grid

# --- your own task ---------------------------------------------------------------------------
# What the command line sets is handed on: `make own TEXTS=tickets.csv LABEL=category SEEDS=8`.
OPTIONS := LABEL TEXT PAIR GROUP VALID KIND LIMIT MODEL ARMS WEIGHTS SEEDS EPOCHS BATCH_SIZE LEARNING_RATE MAX_LENGTH KEEP
LISTS   := ARMS WEIGHTS
quoted   = $(if $(filter $(1),$(LISTS)),$($(1)),'$($(1))')
handed   = $(if $(findstring command,$(origin $(1))),--$(shell echo $(1) | tr A-Z_ a-z-) $(call quoted,$(1)))
own: $(VENV) ## compare regularization terms on your labelled texts: TEXTS=file LABEL=column MODEL=… SEEDS=…
	@$(PY) -m shrink_utils own '$(TEXTS)' $(foreach o,$(OPTIONS),$(call handed,$(o)))

# --- everyday --------------------------------------------------------------------------------
lab: $(VENV) ## open JupyterLab on the notebooks; LAB='--no-browser --port 8899' passes options to it
	$(PY) -m jupyterlab --notebook-dir=. --FileContentsManager.preferred_dir="$$PWD/notebooks" $(LAB)

# Sphinx and Playwright come only when they are asked for; what they bring along is pip's choice.
ON_DEMAND := .venv/.book .venv/.book,browser .venv/.types
$(ON_DEMAND): .venv/.%: pyproject.toml $(VENV)
	@echo "Installing the extra $* into .venv"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation -c requirements.lock -e '.[$*]'
	@touch $@

# Without a finished study, the book shows the outputs that the repository stores.
STUDY := $(wildcard $(OUT)/provenance.json)
SHOWN := $(if $(STUDY),$(DONE),$(CHAPTERS:%=notebooks/%.ipynb))
$(OUT)/book/index.html: $(SHOWN) $(wildcard docs/*.md docs/book/* docs/book/*/* docs/book/*/*/*) .venv/.book
	@$(PY) -m shrink_utils book

book: $(VENV) ## build the web book, of this study or else of what is stored: results/PROFILE/book/index.html
	+@$(if $(STUDY),$(AT_ONCE),$(MAKE) -s --no-print-directory) $(OUT)/book/index.html
	@echo "Open $(OUT)/book/index.html"

browser: .venv/.book,browser ## test the book and JupyterLab in a real Chromium (Debian: apt-get install chromium)
	@$(PY) -m pytest -q -m browser tests/browser

test: $(VENV) ## lint, unit tests, and one smoke study in a clone (13 min with AVX2 alone)
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .
	@SHRINK_PROFILE=smoke $(PY) -m pytest -q -n 2 --dist loadscope --no-loadscope-reorder tests

unit: $(VENV) ## run the unit tests alone (about 3 min)
	@$(PY) -m pytest -q -n 2 --dist loadscope -m 'not (end_to_end or browser or nightly)' tests

course: $(VENV) ## write the exercises as notebooks in notebooks/exercises, for students and teachers
	@$(PY) -m shrink_utils course

nightly: $(VENV) ## run the long tests: twenty kills, 10,000 clouds per function, the wheel, a cluster (an hour)
	@SHRINK_PROFILE=smoke $(PY) -m pytest -q -n 2 --dist loadscope --timeout=0 -m nightly tests
	@HYPOTHESIS_PROFILE=nightly $(PY) -m pytest -q -n 2 --dist worksteal --timeout=0 tests/test_fuzz.py

verify: $(VENV) ## check that preregistered analyses are older than their runs on record
	@$(PY) -m pytest -q -rs -o addopts= tests/test_registration.py

# The oldest packages that pyproject.toml allows, and the newest that the index has.
compatibility: ## test topology and geometry on the oldest and the newest packages (gigabytes)
	@for stack in oldest newest; do \
	    folder=results/compatibility/$$stack; echo "$$stack: installing into $$folder"; \
	    $(PYTHON) -m venv --clear $$folder \
	    && $(PYTHON) tests/compatibility.py $$stack > $$folder/requirements.txt \
	    && $$folder/bin/pip install --quiet --disable-pip-version-check -r $$folder/requirements.txt \
	    && $$folder/bin/python -m pytest -q tests/topology tests/geometry || exit 1; \
	done

bench: $(VENV) ## time the regularizer beside other programs
	@mkdir -p results
	@$(PY) tests/benchmarks/regularizer.py --out results/regularizer.png

types: $(VENV) .venv/.types ## check with mypy that calls of the listed names are typed
	@$(PY) -m mypy --config-file= --follow-imports=silent --ignore-missing-imports tests/typed_calls.py

lint: $(VENV) ## check style and formatting with ruff
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

store: notebooks ## copy the executed notebooks' outputs into notebooks/ (PROFILE=quick)
	@$(PY) -m shrink_utils store

reference: notebooks ## make this machine's results the committed reference of PROFILE
	@$(PY) -m shrink_utils reference

tables: $(VENV) ## write the committed tables that follow from the records, as after a change of the claims
	@$(PY) -m shrink_utils tables
	@$(PY) -m tests.study.claims.golden

clean: ## remove results/ (keeps .venv and the fetched data)
	rm -rf results
