#!/bin/sh
# Packs letters into an archive, all at once.
set -eu
cd "$1/letters"
tar -cf ../letters.tar -- *.dat
tar -tf ../letters.tar | cksum
