# One target per thing, the same here and in CI.
# Works with GNU make 3.81 (macOS) and in a path with spaces: every path below is relative.

# The exceptions of .sqlfluff, and LT02: the indents of a macro follow its Jinja, not the SQL.
NOT_FOR_MACROS := LT02,RF03,RF04,ST06

.DEFAULT_GOAL := help
.PHONY: help setup java launcher demo demo-kafka demo-orders test test-unit test-all test-part test-connect conformance mutants conditions soak bench bench-full bench-pairs bench-report lint audit format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: java .venv/.installed launcher ## Make .venv with the commands outbox and dbt; check Java (PYTHON=... picks the Python)

.venv/.installed: pyproject.toml constraints.txt scripts/create_venv.sh
	@PYTHON='$(PYTHON)' sh scripts/create_venv.sh

launcher: .venv/.installed
	@sh scripts/install_launcher.sh

java:
	@sh scripts/ensure_java.sh

demo: setup ## Deliver 300,000 real events to files, and prove it (DAYS=30: a tenth of them)
	@.venv/bin/python -m delta_outbox.demo $(if $(DAYS),--days $(DAYS))

demo-kafka: setup ## The same through a real Kafka, started and stopped here
	@.venv/bin/python -m delta_outbox.demo --publisher kafka $(if $(DAYS),--days $(DAYS))

demo-orders: setup ## Run a thousand orders through workflows that call third parties, and audit their ledgers (ORDERS=12, SEED=7, FOLDER=...)
	@.venv/bin/python -m scripts.orders_demo $(if $(ORDERS),--orders '$(ORDERS)') \
		$(if $(SEED),--seed '$(SEED)') $(if $(FOLDER),--folder '$(FOLDER)')

test-unit: .venv/.installed ## Run the tests that need no Java, in seconds
	@OUTBOX_TESTS_EXAMPLES=20 .venv/bin/python scripts/run_tests.py unit

test: setup ## Try every promise once, on real servers, in about a quarter of an hour
	@.venv/bin/python scripts/run_tests.py

test-all: setup ## Run every test, which takes about an hour
	@.venv/bin/python scripts/run_tests.py --all

test-part: setup ## Run a part of what only test-all has (PART=3; if left out, that of .ci/landing)
	@part=$(or $(PART),$$(.venv/bin/python scripts/landing.py part)) \
		&& echo "tests: part $$part of what only make test-all runs; another one: make test-part PART=..." \
		&& .venv/bin/python scripts/run_tests.py --part $$part

test-connect: setup ## Run the integration tests through Spark Connect
	@OUTBOX_TESTS_THROUGH=connect .venv/bin/python scripts/run_tests.py --all integration

conformance: setup ## Put three stores to the rules of the specification; writes docs/conformance*.md
	@.venv/bin/python -m delta_outbox.testing.conformance --docs docs \
		--store delta_outbox.testing.conformance.memory:MemoryStores \
		--store tests.conformance.postgres_store:PostgresStores \
		--store delta_outbox.testing.conformance.delta:DeltaStores

mutants: setup ## Put deliberate faults into the code and see each noticed; writes docs/mutants.md
	@.venv/bin/python scripts/run_mutants.py --docs docs

conditions: .venv/.installed ## Explore the algorithms of the workflows; writes docs/railway/conditions.md and their mutants
	@.venv/bin/python -m scripts.exploration.run --docs docs/railway --mutants tests/mutants

soak: setup ## For hours: 260 kills, a poison event among 100,000, 30,000 steps of the model and 300 on Delta, 3,000 runs of workflows, 1,100 of planners, 1,000 answers around an expiry; writes docs/soak.md
	@OUTBOX_MODEL_STEPS=30000 .venv/bin/python -m pytest tests/unit/testing/test_outbox_model.py
	@OUTBOX_ENGINE_RUNS=3000 .venv/bin/python -m pytest tests/unit/workflow_engine/test_engine_model.py
	@OUTBOX_MODEL_RUNS_ON_DELTA=10 OUTBOX_MODEL_STEPS_ON_DELTA=30 .venv/bin/python -m pytest tests/integration/long
	@OUTBOX_PLANNING_TIMES=15 .venv/bin/python -m pytest tests/integration/relay/test_planning.py
	@.venv/bin/python -m scripts.run_soak --docs docs
	@OUTBOX_CRASH_POINTS=all .venv/bin/python -m pytest tests/faults/crashes
	@OUTBOX_EXACTLY_ONCE_KILLS=60 .venv/bin/python -m pytest tests/faults/exactly_once
	@OUTBOX_RACES=all .venv/bin/python -m pytest tests/integration/store/test_races.py tests/integration/store/test_lanes.py tests/integration/relay/test_arrivals.py tests/integration/projection/test_rebuild.py tests/integration/relay/test_retries.py
	@OUTBOX_EXPIRIES=20 .venv/bin/python -m pytest tests/faults/todo -k expiry
	@OUTBOX_POISON_AMONG=100000 .venv/bin/python -m pytest tests/integration/relay/test_retries.py -k poison

.venv/.bench: .venv/.installed
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
		--use-pep517 --constraint constraints.txt --editable '.[bench]'
	@touch $@

bench: setup .venv/.bench ## Measure a drain against a raw producer and two peers, in minutes
	@.venv/bin/python -m benchmarks.run drain --size 0.05 --rounds 2 --results build/bench

bench-full: setup .venv/.bench ## Measure all cases at full size, for hours; writes docs/performance.md
	@.venv/bin/python -m benchmarks.run
	@.venv/bin/python -m benchmarks.report

bench-pairs: setup .venv/.bench ## Compare a case with the code of another commit, in turns (CASE=drain BEFORE=COMMIT, SIZE=1, ROUNDS=5)
	@.venv/bin/python -m benchmarks.pairs '$(or $(CASE),drain)' --before '$(or $(BEFORE),HEAD)' \
		--size '$(or $(SIZE),1)' --rounds '$(or $(ROUNDS),5)'

bench-report: setup .venv/.bench ## Write docs/performance.md anew from benchmarks/results
	@.venv/bin/python -m benchmarks.report

lint: .venv/.installed ## Check format, style, types, imports, SQL and the tree
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/python -m mypy
	.venv/bin/lint-imports --no-cache
	.venv/bin/sqlfluff lint models $(wildcard tests/dbt)
	.venv/bin/sqlfluff lint macros --exclude-rules $(NOT_FOR_MACROS)
	.venv/bin/python scripts/check_tree.py
	.venv/bin/python scripts/landing.py check

audit: .venv/.installed ## Look the pinned dependencies up in the advisory database (needs the network)
	@.venv/bin/python scripts/audit.py $(AUDIT)

format: .venv/.installed ## Put Python and SQL into shape
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .
	.venv/bin/sqlfluff fix models $(wildcard tests/dbt)

clean: ## Remove the environment, builds and caches (never an outbox)
	rm -rf .venv dist build target logs .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find python scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
