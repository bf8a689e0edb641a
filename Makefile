# Everything a developer does. `make run` and `make test` need Python 3.11 or newer and make, nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
# The first interpreter that is new enough and really starts; PYTHON=... overrides the search.
PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
LOCAL := $(PY) -m helpdesk.local
# The suite's own servers, thrown away and made again by `make reset`; durability is not what it tests.
SERVERS := $(LOCAL) with-servers --data .local/test --fast --
SOURCES := helpdesk tickets reminders notifications tests manage.py

$(PY):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed (on Debian: apt install python3 python3-venv), or say where: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# A stamp beside the packages: a changed lock installs again, an unchanged one costs nothing. The lock is
# complete, so nothing is resolved again (--no-deps): the pip of Python 3.11 would take a later release than the
# locked one for a requirement with an extra (coverage[toml]), and then refuse it.
$(VENV)/run.stamp: requirements/run.txt | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@ $(VENV)/run.stamp

.PHONY: help run test bench-audit soak-audit fuzz-api openapi check lint format types contracts migrations deploy-check messages lock reset manage clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

run: $(VENV)/run.stamp ## web, worker and beat with private PostgreSQL and Valkey, until Ctrl-C
	@exec $(LOCAL) run

# Temporary folders beside the data: pytest closes its common folder in /tmp to other accounts at each start,
# and as root that cuts off the PostgreSQL of a suite that is already running.
test: $(VENV)/dev.stamp ## the whole suite, on real servers; args="-k reminder" to choose
	$(SERVERS) $(PY) -m pytest --numprocesses 2 --basetemp .local/test/tmp $(args)

check: lint types contracts migrations deploy-check messages ## all checks that are not tests

lint: $(VENV)/dev.stamp ## style of code and templates
	$(VENV)/bin/ruff check $(SOURCES)
	$(VENV)/bin/ruff format --check $(SOURCES)
	find templates -name '*.html' -exec $(VENV)/bin/djade --check --target-version 5.2 {} +
	$(VENV)/bin/djlint --lint --quiet templates

format: $(VENV)/dev.stamp ## put code and templates in shape
	$(VENV)/bin/ruff check --fix $(SOURCES)
	$(VENV)/bin/ruff format $(SOURCES)
	find templates -name '*.html' -exec $(VENV)/bin/djade --target-version 5.2 {} +

types: $(VENV)/dev.stamp ## mypy, strict
	DATABASE_URL=postgres://localhost/x REDIS_URL=redis://localhost SECRET_KEY=x $(VENV)/bin/mypy

contracts: $(VENV)/dev.stamp ## who may import whom
	$(VENV)/bin/lint-imports

migrations: $(VENV)/dev.stamp ## models and migrations agree
	$(SERVERS) $(PY) manage.py makemigrations --check --dry-run

deploy-check: $(VENV)/dev.stamp ## Django's and our own checks with production settings
	DEBUG=false ALLOWED_HOSTS=helpdesk.example SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))') \
	$(SERVERS) $(PY) -W error manage.py check --deploy --fail-level WARNING --database default

messages: $(VENV)/dev.stamp ## translations are complete
	DATABASE_URL=postgres://localhost/x REDIS_URL=redis://localhost SECRET_KEY=x $(PY) manage.py messages --check

openapi: $(VENV)/dev.stamp ## write docs/openapi.json anew
	DATABASE_URL=postgres://localhost/x REDIS_URL=redis://localhost SECRET_KEY=x $(PY) manage.py spectacular --format openapi-json --fail-on-warn --validate --file docs/openapi.json

lock: | $(PY) ## resolve the dependencies anew, with hashes and no index address
	$(PY) -m pip install --quiet --disable-pip-version-check 'uv>=0.13'
	for set in "base" "run --group local" "dev --group dev"; do \
		$(VENV)/bin/uv pip compile pyproject.toml $${set#$${set%% *}} --upgrade --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet \
		--output-file requirements/$${set%% *}.txt; done

bench-audit: $(VENV)/dev.stamp ## what the audit costs, for 50 rows and for a million stored; BENCH_TASKS=... for less
	DJANGO_SETTINGS_MODULE=helpdesk.settings $(LOCAL) with-servers --data .local/bench -- $(PY) -m tests.bench.audit

soak-audit: $(VENV)/dev.stamp ## 20,000 random operations with workers running: the audit must find nothing
	SOAK_OPERATIONS=20000 $(SERVERS) $(PY) -m pytest --timeout 3600 --basetemp .local/test/tmp tests/stack/test_healthy.py

fuzz-api: $(VENV)/dev.stamp ## requests made of chance to the API, as each role, for a long time; FUZZ_SEED=... for others
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-60} $(SERVERS) $(PY) -m pytest --numprocesses 2 --timeout 3600 --basetemp .local/test/tmp tests/stack/test_fuzz.py

reset: $(VENV)/run.stamp ## forget all data of `make run` and `make test`
	@$(LOCAL) reset

manage: $(VENV)/run.stamp ## a Django command on the data of `make run`: make manage cmd="createsuperuser"
	@$(LOCAL) with-servers -- $(PY) manage.py $(cmd)

clean: ## remove the environment and caches; the data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis staticfiles
