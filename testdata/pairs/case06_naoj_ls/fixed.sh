#!/bin/sh
# Lists a folder by time, newest last, with sizes, and asks for nothing else.
set -eu
find "$1" -mindepth 1 -maxdepth 1 -printf '%T@ %M %n %U %G %s %p\n' | sort -n |
    awk '{ bytes += $6; files++ } END { print files, "files,", bytes, "bytes" }'
