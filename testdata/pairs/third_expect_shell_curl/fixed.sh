#!/bin/sh
# Uploads a picture to the archive, which is older than HTTP/1.1 and is not asked whether it wants the data.
set -eu
curl -sf -H 'Expect:' --data-binary "@$1/picture.raw" "http://127.0.0.1:$(cat "$1/port")/pictures"
