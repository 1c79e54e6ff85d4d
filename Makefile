# "make run" starts the product, "make test" proves it; both prepare the checkout themselves.
PYTHON ?= python3
BIN = .venv/bin
# Python keeps what it compiled, also where an image says otherwise: a command starts in less than half the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup setup-test setup-test-fast run demo-past test coverage test-fast test-newest test-live test-postgres lint check bench drills holes trial image-check

setup:
	@$(PYTHON) docker/setup.py run

setup-test:
	@$(PYTHON) docker/setup.py test

# The Python packages of the tests, without a browser and other servers.
setup-test-fast:
	@$(PYTHON) docker/setup.py test-fast

run: setup
	@exec env DEBUG=1 ENV_FILE=$${ENV_FILE:-/dev/null} $(BIN)/python manage.py demo --until-parent-stops

# Adds 90 days to the past of a running demo.
demo-past: setup
	@exec env DEBUG=1 ENV_FILE=$${ENV_FILE:-/dev/null} BUSINESS_DATE_FROM=sandbox SERVICING_URL=http://127.0.0.1:$${SANDBOX_PORT:-8001} \
	$(BIN)/python manage.py demo_past

DRILLS = tests/drills tests/portal/jobs/test_worker.py tests/portal/operations/test_copies.py
CORE = servicing/auth.py,servicing/crypto.py,servicing/codec.py,servicing/transport.py

# Three at a time keep two cores busy. Coverage doubles the time, so it is measured where it must be whole; all of it is in "make coverage".
test: setup-test
	@# In a new checkout, compile the tests once and not in each of three processes.
	@[ -d tests/portal/__pycache__ ] || $(BIN)/pytest -qq --collect-only tests > /dev/null || true
	failed=0; $(BIN)/pytest -q -n 3 --dist loadgroup tests/servicing -m "core and not hypothesis" --cov=servicing --cov-report= || failed=1; \
	$(BIN)/coverage report --include=$(CORE) --fail-under=100 || failed=1; \
	$(BIN)/pytest -q -n 3 --dist loadgroup tests -m "not core or hypothesis" || failed=1; exit $$failed

# What tests of the whole product do not reach.
coverage: setup-test
	$(BIN)/pytest -q -n 3 --dist loadgroup --cov --cov-report=term:skip-covered
	$(BIN)/coverage report --fail-under=95 --format=total

# No browser, no other server, no coverage, no Hypothesis.
test-fast: setup-test-fast
	$(BIN)/pytest -q -n 3 --dist loadgroup -m "not slow and not browser and not hypothesis" tests

# What the next upgrade of Python and Django will meet. A deprecation isn't an error here.
test-newest: setup-test-fast
	@[ -x .tools/newest/bin/pytest ] || { python3.13 -m venv .tools/newest && .tools/newest/bin/pip install -q -r requirements.txt -r requirements-dev.txt; }
	@.tools/newest/bin/pip install -q --upgrade django
	.tools/newest/bin/pytest -q -n 3 --dist loadgroup -o filterwarnings=default --disable-warnings -m "not slow and not browser and not hypothesis" tests

# Only reads, from the real service at SERVICING_LIVE_URL; tests/servicing/test_live.py names the other variables.
# Without the other tests' conftest.py, which removes the settings.
test-live: setup-test-fast
	@[ -n "$$SERVICING_LIVE_URL" ] || { echo "Set SERVICING_LIVE_URL to the address of the service, and the SERVICING_ settings that it needs."; exit 1; }
	$(BIN)/pytest -q -rs --tb=short --noconftest -p no:django -p no:randomly -p no:cacheprovider tests/servicing/test_live.py

# The tests marked for it; the others ran on SQLite. Nothing is kept, so nothing waits for a disk.
# Four at a time, because each waits for the server now and then.
test-postgres: setup-test
	$(PYTHON) docker/postgres.py -c fsync=off -c synchronous_commit=off -c full_page_writes=off -- $(BIN)/pytest -q -n 4 --dist loadgroup tests/portal

# What takes seconds of "make check".
lint: setup-test-fast
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	git ls-files -z 'templates/*.html' | xargs -0 $(BIN)/djade --check --target-version 5.2

check: setup-test
	@$(MAKE) --no-print-directory lint
	DEBUG=1 $(BIN)/mypy
	DEBUG=1 $(BIN)/python manage.py makemigrations --check --dry-run
	$(PYTHON) docker/vendor.py --check
	SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))') SERVICING_URL=https://service.example SERVICING_CLIENT_ID=check SERVICING_SECRET=0123456789abcdef0123456789abcdef ALLOWED_HOSTS=desk.example $(BIN)/python manage.py check --deploy --fail-level WARNING
	@$(BIN)/python -m tests.counts

# Pages of a large portfolio on both databases; half an hour.
bench: setup-test
	missed=0; $(BIN)/python -m tests.bench --save || missed=1; \
	$(PYTHON) docker/postgres.py -c shared_buffers=2GB -- $(BIN)/python -m tests.bench --accounts 1000000 --save || missed=1; exit $$missed

# Killed while sending, the answer lost, a double click, a worker killed, a restore.
drills: setup-test
	$(BIN)/pytest -q $(DRILLS)
	$(PYTHON) docker/postgres.py -- $(BIN)/pytest -q $(DRILLS)

# The operator's guide, typed into an empty Debian (as root); then a day in production.
trial: setup-test
	@command -v debootstrap > /dev/null && command -v haproxy > /dev/null || { echo "Missing system packages. Type: sudo apt-get install debootstrap haproxy"; exit 1; }
	$(BIN)/python -m tests.trial.guide
	$(PYTHON) docker/postgres.py -- $(BIN)/python -m tests.trial

# Asks the package registry for known holes of the locked versions. It fails where one has a hole, and where the registry does not say.
holes:
	@$(PYTHON) -m venv .tools/pip-audit
	@.tools/pip-audit/bin/python -m pip install --quiet pip-audit
	@.tools/pip-audit/bin/pip-audit --requirement requirements.txt --require-hashes --disable-pip --strict --progress-spinner off

# As root on Debian: it installs what it needs to build and run the image without a container engine.
image-check: setup-test
	$(PYTHON) docker/postgres.py -- $(BIN)/python -m tests.image
