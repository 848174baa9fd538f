.DEFAULT_GOAL := help
.PHONY: help demo quick test lint docs format lock wheel messages run bench mutations guards chaos proof queues streams dispenser locks simulation matrix screenshots clean

# What make test passes on, e.g. make test ARGS="--only mariadb -- tests/leases -k renew"
ARGS ?=
# How long make chaos throws things, and on what; e.g. make chaos MINUTES=30 DATABASE=postgresql
MINUTES ?= 1
DATABASE ?= mariadb
# How many tasks make streams and make dispenser have done; e.g. make streams TASKS=2000 DATABASE=postgresql ARGS="--lanes 4"
TASKS ?= 10000
# How long make locks goes on; e.g. make locks SECONDS=300 DATABASE=postgresql
SECONDS ?= 60
# How many schedules make simulation plays; e.g. make simulation SEEDS=1000 ARGS=--prove
SEEDS ?= 100000

help:    ## Show this list
	@sed -n 's/^\([a-z]*\): *## /  make \1\t/p' Makefile | expand -t 18

demo:    ## Lease real proxies to crawlers, kill some, see nothing overlap; then the admin (30 s; no server needed)
	@.ci/bootstrap demo
	@.venv/bin/python -m examples.demo

quick:   ## While you work: ruff, import-linter and the most telling tests on SQLite (less than a minute)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests --only quick

test:    ## Install what is missing, then lint and test: everything on SQLite, what depends on it on MariaDB, MySQL and PostgreSQL
	@.ci/bootstrap test
	@.venv/bin/python -m tests $(ARGS)

lint:    ## Ruff, mypy, import-linter, missing migrations, plain words
	@.ci/bootstrap lint
	@.venv/bin/python -m tests --only lint

docs:    ## Build the documentation site into build/docs; a warning is an error
	@.ci/bootstrap lint
	@.venv/bin/python -m sphinx -q -n -W --keep-going -b html docs build/docs

format:  ## Let ruff repair what it can
	@.ci/bootstrap lint
	@.venv/bin/python -m ruff check --fix --quiet
	@.venv/bin/python -m ruff format

run:     ## Serve the project on http://127.0.0.1:8000/ for development (DATABASE_URL, else SQLite in var/)
	@.ci/bootstrap demo
	@.venv/bin/python manage.py migrate --verbosity 0
	@DEBUG=$${DEBUG:-1} .venv/bin/python manage.py runserver --insecure  # static files also with DEBUG=0

bench:   ## Measure speed beside other ways to do the same, write docs/benchmarks.md (25 min; ARGS=--quick: under a minute)
	@.ci/bootstrap bench
	@.venv/bin/python -m benchmarks --json docs/benchmarks.json --markdown docs/benchmarks.md $(ARGS)

mutations: ## Change the code in one place at a time for MINUTES=30, and count how often a test fails (ARGS=planning: there alone)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.mutations --minutes $(if $(filter command line,$(origin MINUTES)),$(MINUTES),30) $(ARGS)

guards:  ## Take out one guard at a time that no tool can see, and see the tests turn red (8 min)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.guards

chaos:   ## Kill, stop, cut, crash for MINUTES=1 on DATABASE=mariadb; the judge counts what was broken: nothing
	@.ci/bootstrap test
	@.venv/bin/python -m tests.chaos --minutes $(MINUTES) --database $(DATABASE) $(ARGS)

proof:   ## See the judge of chaos object: a server that forgets, one guard after the other taken out (5 min)
	@.ci/bootstrap test
	@.venv/bin/python -m tests.chaos --database $(DATABASE) --prove

queues:  ## Servers share 64 queues for MINUTES=1 while others come, go, die and stand still (ARGS=--prove: the judge objects)
	@.ci/bootstrap test
	@.venv/bin/python -m tests.queues.proof --minutes $(MINUTES) --database $(DATABASE) $(ARGS)

streams: ## TASKS=10000 in order while their consumers are killed, stopped, cut off, and the database crashes (5 min)
	@.ci/bootstrap test
	@.venv/bin/python -m tests.taskqueue.proof --tasks $(TASKS) --database $(DATABASE) $(ARGS)

dispenser: ## 8 workers do TASKS=10000 of a pool rebuilt every second, while all of it is killed (1 min; ARGS=--prove: the judge objects)
	@.ci/bootstrap test
	@.venv/bin/python -m tests.taskqueue.dispenser.proof --tasks $(TASKS) --database $(DATABASE) $(ARGS)

locks:   ## 8 workers use locks of every kind for SECONDS=60 while all of it is killed (ARGS=--prove: the judge objects; 5 min)
	@.ci/bootstrap test
	@.venv/bin/python -m tests.locks.proof --seconds $(SECONDS) --database $(DATABASE) $(ARGS)

simulation: ## Play SEEDS=100000 seeded schedules on a simulated clock, statement by statement (10 min)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

lock:    ## Write requirements.txt anew: versions and hashes (ARGS=--upgrade: the newest that fit)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.lock $(ARGS)

wheel:   ## Build the wheel into dist/, check its files, install it with each extra into an environment of its own (3 min)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.wheel

messages: ## Collect the texts for translation, and compile what is translated (needs Debian's gettext)
	@.ci/bootstrap lint
	@.venv/bin/python -m tests.messages

matrix:  ## The tests on SQLite for every Python and Django that is supported and installed, then on the newest MariaDB and PostgreSQL
	@.ci/bootstrap matrix
	@.venv/bin/python -m nox
	@.venv/bin/python -m tests --only newest-mariadb --only newest-postgresql

screenshots: ## Take the pictures in docs/screenshots anew, with Debian's chromium
	@.ci/bootstrap test
	@.venv/bin/python -m tests.browser.screenshots

clean:   ## Remove what the targets above have made, except var/ with its data
	rm -rf .venv .servers .nox build dist .hypothesis .*_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
