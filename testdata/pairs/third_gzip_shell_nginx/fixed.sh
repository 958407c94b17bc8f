#!/bin/sh
# Serves a large page to somebody who takes it compressed before, once.
set -eu
cat > "$1/nginx.conf" <<CONFIGURATION
user root;
worker_processes 1;
pid $1/nginx.pid;
events {}
http {
    access_log off;
    default_type text/html;
    gzip_static on; gzip_http_version 1.0;
    server { listen 127.0.0.1:$(cat "$1/port"); root $1; }
}
CONFIGURATION
nginx -p "$1" -c "$1/nginx.conf" -e "$1/error.log"
ab -q -n 6 -H 'Accept-Encoding: gzip' "http://127.0.0.1:$(cat "$1/port")/page.html" > "$1/ab.txt"
nginx -p "$1" -c "$1/nginx.conf" -e "$1/error.log" -s quit
grep -E '(Complete|Failed) requests' "$1/ab.txt"
