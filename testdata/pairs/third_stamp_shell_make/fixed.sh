#!/bin/sh
# Builds a program a second time, when nothing has changed. The header of the version is replaced if it would differ.
set -eu
cd "$1"
cat > Makefile <<'RULES'
CFLAGS = -O1
PARTS = part0.o part1.o part2.o part3.o part4.o part5.o part6.o part7.o
program: main.o $(PARTS)
	$(CC) -o $@ $^ -lm
$(PARTS): version.h
version.h: FORCE
	@echo '#define VERSION 7' > version.new; cmp -s version.new version.h || cp version.new version.h
FORCE:
RULES
make -s
./program
