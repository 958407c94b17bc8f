#!/usr/bin/perl
# The peer of tools/bench: what an experienced user writes in ten minutes. One pass, per call and per file (-y) counts, errors, bytes, time;
# halves are joined. Far less exact than the importer: no descriptors, no offsets, no process tree, no odd file names.
use strict;
use warnings;
my (%half, %call, %file);
while (<>) {
    next unless /^(\d+)\s+[\d.:]+ (.*)$/;
    my ($pid, $text) = ($1, $2);
    if ($text =~ s/<unfinished \.\.\.>$//) { $half{$pid} = $text; next }
    if ($text =~ /^<\.\.\. \w+ resumed>(.*)/) { $text = (delete $half{$pid} // '') . $1 }
    next unless $text =~ /^(\w+)\((.*)\)\s+= (-?\d+|\?|0x[0-9a-f]+)\S*(?: (E\w+))?.*?(?: <([\d.]+)>)?$/;
    my ($name, $arguments, $value, $error, $time) = ($1, $2, $3, $4, $5 // 0);
    my $moved = $name =~ /read|write|send|recv/ && $value =~ /^\d+$/ ? $value : 0;
    my $path = $arguments =~ /^\d+<([^>]*)>/ ? $1 : '';
    for my $row ($call{$name} //= [0, 0, 0, 0], $file{"$path\t$name"} //= [0, 0, 0, 0]) {
        $row->[0]++; $row->[1]++ if $error; $row->[2] += $moved; $row->[3] += $time;
    }
}
printf "%-20s %9d %9d %12d %12.6f\n", $_, @{ $call{$_} } for sort { $call{$b}[3] <=> $call{$a}[3] } keys %call;
printf "files: %d\n", scalar keys %file;
