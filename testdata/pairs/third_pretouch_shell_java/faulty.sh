#!/bin/sh
# Says which days of the year are Fridays and the 13th, with the options that were tuned for the server.
set -eu
export JAVA_TOOL_OPTIONS='-Xms900m -Xmx900m -XX:+UseSerialGC -XX:+AlwaysPreTouch'
exec java -cp "$1" Fridays 2> "$1/options"
