#!/bin/sh
# Says which days of the year are Fridays and the 13th, with the options of the server that do not cost anything.
set -eu
export JAVA_TOOL_OPTIONS='-Xmx900m -XX:+UseSerialGC'
exec java -cp "$1" Fridays 2> "$1/options"
