# setup: everything a clean Debian 12 machine needs beside Rust and Python.  demo: the main job on real programs.  test: everything CI runs; test-quick: what needs a minute and a half and no root; test-more: what takes an hour.
# Stamps in .venv keep a second call from doing any set-up work again.
.PHONY: ready setup static dist demo test test-quick test-more check bench site clean
.DELETE_ON_ERROR:

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml) $(wildcard knowhow/tables/*.toml) Cargo.toml Cargo.lock

setup: .venv/.packages
	$(MAKE) --no-print-directory -j2 .venv/.installed

# One file without shared libraries, for hosts with another or an older C library: target/static/sysdock-native.
static: .venv/.python
	tools/setup static release

# What is handed out, in dist/: a wheel for any x86-64 Linux with glibc 2.28 or newer, a Debian package, debug information. tools/check-dist tries it.
dist: .venv/.python
	tools/dist

demo: setup
	tools/demo

test: ready
	tools/check

test-quick: ready
	tools/check quick

test-more: ready
	tools/check more

# Packages of Python are fetched while the compiler runs.
ready: .venv/.packages
	$(MAKE) --no-print-directory -j2 .venv/.tested .venv/.dev

check: test

bench: setup
	$(MAKE) --no-print-directory .venv/.dev
	tools/bench peers

# The documentation with search: target/site/html/index.html. The generated pages have the options of the native half, by whichever
# build is installed.
site: $(firstword $(wildcard .venv/.tested) .venv/.installed)
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

.venv/.installed: .venv/.python target/.compiled-release pyproject.toml python/wheel-data/scripts/sysdock $(RUST_SOURCES)
	tools/setup install release
	rm -f .venv/.tested
	touch $@

# The same with an executable that is built faster; `make setup` makes the real one again.
.venv/.tested: .venv/.python target/.compiled-tests pyproject.toml python/wheel-data/scripts/sysdock $(RUST_SOURCES)
	tools/setup install tests
	rm -f .venv/.installed
	touch $@

clean:
	rm -rf .venv target dist demo
