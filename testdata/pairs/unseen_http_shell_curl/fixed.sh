#!/bin/sh
# Gets the readings of all stations at the same time.
set -eu
port=$(cat "$1")
for station in north east south west; do
    curl -s "http://127.0.0.1:$port/$station" > "$2/$station.txt" &
done
wait
cat "$2/north.txt" "$2/east.txt" "$2/south.txt" "$2/west.txt"
