#!/bin/sh
# Makes the report of the night. It is the larger job, so it is nice to the others, which fill the archive as long as it takes.
set -eu
xz -9e -c "$1" > /dev/null &
first=$!
xz -9e -c "$1" > /dev/null &
second=$!
# shellcheck disable=SC2016  # Perl's variables, not the shell's.
nice perl -e 'my $sum = 0; $sum = ($sum * 31 + $_) % 1000003 for 1 .. 1500000; print "report $sum\n"'
kill $first $second
