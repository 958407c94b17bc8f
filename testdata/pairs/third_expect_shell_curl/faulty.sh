#!/bin/sh
# Uploads a picture to the archive, which is older than HTTP/1.1.
set -eu
curl -sf --data-binary "@$1/picture.raw" "http://127.0.0.1:$(cat "$1/port")/pictures"
