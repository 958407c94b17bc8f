#!/bin/sh
# Preprocesses a file that includes 300 headers, from the folder that is named first.
set -eu
cd "$1"
seq 0 299 | awk '{ printf "#include <f%05d.dat>\n", $1 }' > all.c
cc -E -P -Iapi -Ia -Ib -Ic -Id -Ie -If -Ig -Ih -Ii -Ij -Ik -Il -Im -In -o all.i all.c
echo "$(grep -c include all.c) headers"
