#!/bin/sh
# Makes one checksum of all files of a folder on a server.
set -eu
cat "$1"/*.dat | cksum
