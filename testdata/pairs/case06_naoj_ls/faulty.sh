#!/bin/sh
# Lists a folder by time, newest last, with sizes.
set -eu
ls -ltr "$1" | awk '$5 { bytes += $5; files++ } END { print files, "files,", bytes, "bytes" }'
