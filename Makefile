# setup: everything a clean Debian 12 machine needs beside Rust and Python.  demo: the main job on real programs.  test: everything CI runs; test-quick: what needs a minute and a half and no root; test-more: what takes an hour.
# Stamps in .venv keep a second call from doing any set-up work again.
.PHONY: ready setup static dist demo test test-quick test-more check bench site clean
.DELETE_ON_ERROR:

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml) $(wildcard knowhow/tables/*.toml) Cargo.toml Cargo.lock

setup: .venv/.packages
	$(MAKE) --no-print-directory -j2 .venv/.by-release

# One file without shared libraries, for hosts with another or an older C library: target/static/sysdock-native.
static: .venv/.python
	tools/setup static release

# What is handed out, in dist/: a wheel for any x86-64 Linux with glibc 2.28 or newer, a Debian package, debug information. tools/check-dist tries it.
dist: .venv/.python
	tools/dist

# From nothing, by the profile that is compiled in the shortest time.
demo: .venv/.packages
	$(MAKE) --no-print-directory -j2 $(firstword $(wildcard .venv/.by-release) .venv/.by-quick)
	tools/demo

test: ready
	tools/check

test-quick: ready
	tools/check quick

test-more: ready
	tools/check more

# Packages of Python are fetched while the compiler runs.
ready: .venv/.packages
	$(MAKE) --no-print-directory -j2 .venv/.by-tests .venv/.dev

check: test

bench: setup
	$(MAKE) --no-print-directory .venv/.dev
	tools/bench peers

# The documentation with search: target/site/html/index.html. The generated pages have the options of the native half, by whichever
# build is installed.
site: $(firstword $(wildcard .venv/.by-tests) .venv/.by-release)
	tools/setup site
	.venv/bin/python tools/gen
	tools/site

.venv/.packages: tools/setup
	tools/setup packages
	mkdir -p .venv
	touch $@

.venv/.python: tools/setup requirements.lock | .venv/.packages
	tools/setup runtime
	touch $@

.venv/.dev: tools/setup requirements-dev.lock | .venv/.python
	tools/setup dev
	touch $@

target/.compiled-%: $(RUST_SOURCES) | .venv/.packages
	tools/setup compile $*
	touch $@

# One build is installed at a time: by `release`, by `tests`, or by `quick`.
.venv/.by-%: target/.compiled-% .venv/.python pyproject.toml python/wheel-data/scripts/sysdock $(RUST_SOURCES)
	tools/setup install $*
	rm -f .venv/.by-*
	touch $@

# Without this, make would remove the stamp as an intermediate file.
.PRECIOUS: target/.compiled-%

clean:
	rm -rf .venv target dist demo
