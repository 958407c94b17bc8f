#!/bin/sh
# Lists the newest of many letters, of which perl asks for the age before it orders them.
set -eu
cd "$1/letters"
perl -e '
    my @files = sort glob("*.dat");
    my %age = map { $_ => -M $_ } @files;
    my @newest = sort { $age{$a} <=> $age{$b} } @files;
    print "$_\n" for @newest[0 .. 99];' | cksum
