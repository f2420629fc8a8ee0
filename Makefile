# CI calls `make test`; a laptop can do all that CI does. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export HYPIC_CACHE ?= $(HOME)/.cache/hypic
PYTHON3 ?= python3
PY := .venv/bin/python
# Runs Python inside the engine's environment (torch and SGLang), our plugin and pytest added.
ENGINE_RUN = env -u PYTHONDONTWRITEBYTECODE PYTHONPATH=$(CURDIR)/build/engine-site:$(CURDIR)/build/pytest-site $(shell $(PYTHON3) -m local engine-python)

# What the router is compared with; no part of the product.
PEERS := $(HYPIC_CACHE)/peers

.PHONY: help demo test unit audit ops integration oracle e2e soak gpu bench-operator bench-router bench-policies bench-found bench-stacks bench-ttft lint types format sync lock engine-site clients images generate check-generated clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

demo: ## real Kubernetes, two engines, four documents in several orders, a table
	$(PYTHON3) -m local demo

test: lint types unit ops integration e2e ## every tier but gpu, in order of cost

unit: sync ## pure logic and contracts, in seconds
	$(PY) -m pytest -q -n 2

audit: sync ## a million random operations on index and pools, each one checked
	$(PY) -m tests.audit

ops: engine-site ## the operations, their oracle and the tiny model, in torch on CPU
	$(ENGINE_RUN) -m pytest -q tests/ops

integration: sync engine-site clients ## a real kube-apiserver, and real SGLang on CPU
	$(PY) -m pytest tests/integration --ignore tests/integration/engine
	$(ENGINE_RUN) -m pytest tests/integration/engine

oracle: engine-site ## every model family and mode on real SGLang against the oracle, on CPU
	$(ENGINE_RUN) -m tests.integration.engine.oracle_run

e2e: sync ## a real cluster, built images, installed charts, the real engine on CPU
	$(PY) -m pytest tests/e2e

soak: sync ## a hundred changes in random order while clients read streams
	HYPIC_CHANGES=$${HYPIC_CHANGES:-100} $(PY) -m pytest -q -s tests/e2e/test_no_stream_breaks.py
	@cat build/streams.txt

gpu: ## kernels against references and the plugin in SGLang, on one accelerator
	$(PYTHON3) -m pytest tests/gpu

lint: sync ## style, formatting, import contracts, scripts, charts, generated files
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/lint-imports
	.venv/bin/shellcheck .ci/run
	.venv/bin/hadolint images/*/Dockerfile
	$(PY) charts/generate.py --check
	$(PY) crds/reference.py --check
	$$($(PYTHON3) -m local tool helm) lint --quiet charts/*/

types: sync ## mypy, strict
	.venv/bin/mypy

format: sync ## rewrite to the house style
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

sync: .venv/stamp ## the developers' environment in .venv
.venv/stamp: locks/dev.txt engine/pyproject.toml router/pyproject.toml operator/pyproject.toml | .venv/bin/pip
	$(PY) -m pip install -q --disable-pip-version-check uv==0.13.9
	.venv/bin/uv pip install -q --python $(PY) --require-hashes -r locks/dev.txt
	.venv/bin/uv pip install -q --python $(PY) --no-deps -e engine -e router -e operator
	touch $@

.venv/bin/pip: # Debian splits what makes environments from Python
	$(PYTHON3) -m venv --clear .venv || { \
	  apt-get update -q; apt-get install -y python3-venv; $(PYTHON3) -m venv --clear .venv; }

engine-site: sync build/pytest-site/stamp ## our plugin as a wheel, for the engine's environment
	rm -rf build/engine-site
	.venv/bin/uv pip install -q --python $(PY) --no-deps --target build/engine-site ./engine
# Mooncake, which moves prompts between two engines of a test, is linked against two of Debian's libraries.
build/pytest-site/stamp: locks/dev.txt Makefile
	.venv/bin/uv pip install -q --python $(PY) --target build/pytest-site pytest==9.1.0 pytest-asyncio==1.3.0 hypothesis==6.170.17
	dpkg -s libcurl4 libibverbs1 >/dev/null 2>&1 || { apt-get update -q; apt-get install -y libcurl4 libibverbs1; }
	touch $@

clients: sync ## SDKs, a fuzzer and a browser that tests point at the router, in the cache
	$(PY) -m tests.support.clients

lock: ## resolve again and write locks/
	uv lock -q
	uv export -q --only-group dev --no-emit-workspace --no-header -o locks/dev.txt
	uv export -q --package hypic-router --no-emit-workspace --no-dev --no-header -o locks/router.txt
	uv export -q --package hypic-operator --no-emit-workspace --no-dev --no-header -o locks/operator.txt
	uv pip compile -q --generate-hashes --no-header --python-version 3.11 tests/clients/requirements.in -o tests/clients/requirements.txt
	cd tests/clients && npm install --package-lock-only --ignore-scripts

bench-operator: sync ## what 500 HypicClusters cost the operator
	$(PY) benchmarks/reconcile.py

bench-router: sync $(PEERS)/stamp ## what the router adds to a request, beside sglang-router
	PYTHONPATH=$(PEERS) $(PY) benchmarks/router.py

bench-stacks: sync $(PEERS)/stamp ## HTTP servers and clients on the router's path
	PYTHONPATH=$(PEERS) $(PY) benchmarks/stacks.py

$(PEERS)/stamp: benchmarks/peers.txt | sync
	.venv/bin/uv pip install -q --python $(PY) --target $(PEERS) -r benchmarks/peers.txt
	touch $@

bench-policies: sync ## what each way to choose finds in caches, simulated
	$(PY) benchmarks/policies.py

bench-found: engine-site ## the same with two real engines on CPU
	$(PY) benchmarks/found.py --model $$($(PYTHON3) -m local model) --engine-python $$($(PYTHON3) -m local engine-python) \
	  --engine-path $(CURDIR)/build/engine-site $(FLAGS)

bench-ttft: engine-site ## time to first token on shuffled documents, against stock SGLang
	$(ENGINE_RUN) benchmarks/ttft.py $$($(PYTHON3) -m local model)

images: sync ## build the three images with BuildKit
	$(PY) -m local images

generate: sync ## copies of CRDs, generated schemas and docs
	$(PY) charts/generate.py
	$(PY) crds/reference.py

check-generated: sync ## fail when a generated file differs from its source
	$(PY) charts/generate.py --check
	$(PY) crds/reference.py --check

clean: ## remove what was built in the checkout (not the cache)
	rm -rf .venv build
