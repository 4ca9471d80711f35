# Every target first makes what it needs: an environment in .venv, from Python 3.11 to 3.13 and pip alone.
# A second call finds it there; a change of pyproject.toml, constraints.txt or TORCH brings it up to date.

PYTHON ?= python3
VENV ?= .venv
# What pip is given for PyTorch. On Linux the plain name may bring CUDA libraries of several GB along; add
# the options that select a CPU or another GPU build, e.g. TORCH="torch==2.13.0 --index-url ...".
TORCH ?= torch==2.13.0

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
# Bytecode is written even where the environment forbids it, as images for containers do: without it, each
# process compiles torch and Lightning anew, which doubles the time of its start.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
SEQRAY := $(BIN)/seqray
STARTED := $(shell date +%s)

.PHONY: help demo test attack fuzz test-slurm lint types docs rerun package workflows bench models accuracy clean FORCE

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- environment -------------------------------------------------------------------------------------

# The file changes only where TORCH does.
$(VENV)/torch.spec: FORCE
	@mkdir -p $(VENV)
	@printf '%s\n' '$(TORCH)' | cmp -s - $@ || printf '%s\n' '$(TORCH)' > $@

$(VENV)/torch.done: $(VENV)/torch.spec
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "seqray needs Python 3.11 to 3.13; name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version) and $(TORCH)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) $(TORCH)
	@touch $@

$(VENV)/demo.done: $(VENV)/torch.done pyproject.toml constraints.txt
	@echo "installing seqray"
	@$(PIP) -c constraints.txt -e '.[genes]'
	@touch $@

$(VENV)/test.done: $(VENV)/demo.done
	@echo "installing what the tests need"
	@$(PIP) -c constraints.txt -e '.[test]'
	@touch $@

$(VENV)/fuzz.done: $(VENV)/test.done
	@echo "installing what fuzzing needs"
	@$(PIP) -c constraints.txt -e '.[fuzz]' || { \
		echo "make fuzz: atheris can't be installed here. It has wheels for Linux on x86-64; elsewhere it has to be" \
			"built with clang and libFuzzer. No other target needs it, and make test reads all cases again." >&2; exit 1; }
	@touch $@

$(VENV)/dev.done: $(VENV)/test.done
	@echo "installing what development needs"
	@$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/docs.done: $(VENV)/demo.done
	@echo "installing what the site needs"
	@$(PIP) -c constraints.txt -e '.[docs]'
	@touch $@

# --- use ---------------------------------------------------------------------------------------------

EXAMPLE := data/example
MODEL := ecoli-promoter
LOCATOR := bacteria-genome
# The first rows without the header's lines; the whole file is read: a reader that leaves early breaks the pipe.
TABLE = awk '!/^\#/ && n++ < $(2)' $(1)
# For each known promoter the best call on its strand within 25 letters of its start; calls.tsv, then truth.bed,
# whose features are starts, or windows of 81 letters with the start at index 60.
FOUND = 'NR == FNR { if (!/^\#/ && $$1 != "id") { n++; where[n] = $$2 $$5; site[n] = $$6; score[n] = $$7 } next } \
	{ at = $$3 - $$2 == 1 ? $$2 : $$6 == "+" ? $$2 + 60 : $$3 - 61; best = "-"; \
	  for (i = 1; i <= n; i++) { d = site[i] - at; \
	    if (where[i] == $$1 $$6 && d * d <= 625 && (best == "-" || score[i] > best)) best = score[i] } \
	  print $$4, $$1, at, $$6, best; hits += best != "-" } \
	END { print hits + 0 " of " FNR " known promoters have a call within 25 letters" }'

demo: $(VENV)/demo.done  ## predict, scan and explain the example sequences with a shipped model, offline
	@mkdir -p demo
	@echo; echo '$$ seqray models'
	@$(SEQRAY) models
	@echo; echo '$$ seqray predict $(EXAMPLE)/promoters.fa --model $(MODEL) --out demo/promoters.tsv'
	@$(SEQRAY) predict $(EXAMPLE)/promoters.fa --model $(MODEL) --out demo/promoters.tsv
	@$(call TABLE,demo/promoters.tsv,8)
	@echo; echo '$$ seqray predict $(EXAMPLE)/controls.fa --model $(MODEL) --out demo/controls.tsv'
	@$(SEQRAY) predict $(EXAMPLE)/controls.fa --model $(MODEL) --out demo/controls.tsv
	@$(call TABLE,demo/controls.tsv,8)
	@echo; echo '$$ seqray scan $(EXAMPLE)/stretch.gb --model $(LOCATOR) --out demo/calls.gff3 --out demo/calls.tsv --html demo/scan.html'
	@$(SEQRAY) scan $(EXAMPLE)/stretch.gb --model $(LOCATOR) --out demo/calls.gff3 --out demo/calls.tsv --html demo/scan.html
	@grep -E '^\# (threshold|calls|genes known|expected precision):' demo/calls.tsv
	@$(call TABLE,demo/calls.tsv,12) | cut -f 1,3-7,9,11,13
	@echo; echo 'well-known promoters there: name, sequence, start, strand, score of the call'
	@awk -F '\t' -v OFS='\t' $(FOUND) demo/calls.tsv $(EXAMPLE)/stretch.truth.bed
	@echo; echo '$$ seqray scan $(EXAMPLE)/regions.fa --model $(LOCATOR) --out demo/regions.tsv'
	@$(SEQRAY) scan $(EXAMPLE)/regions.fa --model $(LOCATOR) --out demo/regions.tsv
	@awk -F '\t' -v OFS='\t' $(FOUND) demo/regions.tsv $(EXAMPLE)/regions.truth.bed
	@echo
	@echo '$$ seqray explain $(EXAMPLE)/promoters.fa --model $(MODEL) --top 6 --out demo/positions.tsv --html demo/report.html'
	@$(SEQRAY) explain $(EXAMPLE)/promoters.fa --model $(MODEL) --top 6 --out demo/positions.tsv --html demo/report.html
	@$(call TABLE,demo/positions.tsv,7)
	@echo
	@echo 'In demo/: scan.html, a page of the scan to open in a browser; the calls as a table and as GFF3, which a'
	@echo 'genome browser shows beside $(EXAMPLE)/stretch.gb; the predictions; report.html, which shows the letters'
	@echo 'that drive the predictions.'
	@echo 'Next: "$(SEQRAY) models show $(MODEL)" prints what the model was trained on, how well it did and its'
	@echo 'limits; "$(SEQRAY) scan YOUR.fa --model $(LOCATOR) --out calls.gff3 --html scan.html" scans a genome.'
	@echo "demo: $$(($$(date +%s) - $(STARTED))) s, the environment included"

# Folder of the public data, see data/README.md: SEQRAY_DATA=... make models
ZOO = PATH="$$PWD/$(BIN):$$PATH" $(BIN)/snakemake --snakefile workflows/zoo/workflow/Snakefile \
	--directory workflows/zoo --cores $(shell nproc 2>/dev/null || echo 1) --rerun-triggers mtime

models: $(VENV)/test.done  ## train the shipped models anew from the public data in SEQRAY_DATA
	$(ZOO) models
	$(SEQRAY) models verify

accuracy: $(VENV)/test.done  ## models, cross-validations and docs/accuracy.md, from SEQRAY_DATA
	$(ZOO)

bench: $(VENV)/test.done  ## measure speed; with SEQRAY_DATA set, also the scan of the E. coli genome
	$(BIN)/python benchmarks/throughput.py
	@if [ -n "$${SEQRAY_DATA:-}" ]; then set -x; $(BIN)/python benchmarks/scan_ecoli.py; \
	else echo "benchmarks/scan_ecoli.py needs SEQRAY_DATA, the folder that data/README.md describes"; fi

# --- development -------------------------------------------------------------------------------------

# A process for each core; the tests of a file stay together, for they share what they have trained. Files begin
# in the order of tests/conftest.py.
test: $(VENV)/test.done  ## run all tests
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Tests marked `long` run only here; the table counts what was tried.
attack: $(VENV)/test.done  ## attack every verb: bad input, kills, forged files, limits; takes about an hour
	@SEQRAY_ATTACKS=benchmarks/results/attacks.tsv OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} \
		$(BIN)/python -m pytest tests/attack -m 'long or not long'

# For Linux on x86-64. Findings lie in .fuzz/findings; a second call goes on with the corpus in .fuzz/corpus.
MINUTES ?= 10
JOBS ?= 1

fuzz: $(VENV)/fuzz.done  ## fuzz all readers for MINUTES with atheris, JOBS of them at once
	@OMP_NUM_THREADS=1 PYTHONPATH=tests:benchmarks $(BIN)/python -m fuzz.campaign --minutes $(MINUTES) --jobs $(JOBS) --folder .fuzz

# Needs root and, on Debian, installs Slurm; it runs for some minutes.
test-slurm: $(VENV)/test.done  ## run the scan workflow through a one-node Slurm, with a job killed in mid-run
	@command -v slurmctld > /dev/null || { apt-get update && \
		apt-get install -y --no-install-recommends slurm-wlm slurm-wlm-basic-plugins munge; }
	@$(PIP) -c constraints.txt snakemake-executor-plugin-slurm
	timeout 3600 $(BIN)/python tests/slurm/run.py --folder "$$(mktemp -d)/slurm"

lint: $(VENV)/dev.done  ## style: ruff and snakefmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check workflows

types: $(VENV)/dev.done  ## static types: pyright
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/docs.done  ## build the site from docs/, the package and the model cards, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'docs: python3 -m http.server -d site, then open http://localhost:8000 (as files the pages have no search)'

rerun: $(VENV)/test.done  ## run the commands that the pages show, and write what they print below them
	$(BIN)/python docs/rerun.py

package: $(VENV)/dev.done  ## build sdist and wheel into dist/, and try the wheel in an environment of its own
	packaging/try_wheel.sh $(BIN)/python '$(TORCH)'

workflows: $(VENV)/test.done  ## lint and dry-run the Snakemake workflows
	@for workflow in $(dir $(wildcard workflows/*/workflow/)); do \
		workflow="$${workflow%workflow/}"; \
		set -x; \
		PATH="$$PWD/$(BIN):$$PATH" $(BIN)/snakemake --snakefile "$${workflow}workflow/Snakefile" \
			--directory "$${workflow}.test" --lint; \
		PATH="$$PWD/$(BIN):$$PATH" $(BIN)/snakemake --snakefile "$${workflow}workflow/Snakefile" \
			--directory "$${workflow}.test" --dry-run --quiet --cores 1; \
		{ set +x; } 2>/dev/null; \
	done

clean:  ## remove the environment and everything that targets made
	rm -rf $(VENV) demo dist build site .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks data workflows -name __pycache__ -prune -exec rm -rf {} +
