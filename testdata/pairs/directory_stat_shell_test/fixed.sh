#!/bin/bash
# Counts data files; a pattern that matches nothing gives nothing.
set -eu
shopt -s nullglob
files=("$1"/*.dat)
echo "${#files[@]} files"
