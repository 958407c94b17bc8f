#!/bin/sh
# Makes the report of the night. It is waited for; the archive is filled with what it leaves of the CPUs.
set -eu
nice xz -9e -c "$1" > /dev/null &
first=$!
nice xz -9e -c "$1" > /dev/null &
second=$!
perl -e 'my $sum = 0; $sum = ($sum * 31 + $_) % 1000003 for 1 .. 1500000; print "report $sum\n"'
kill $first $second
