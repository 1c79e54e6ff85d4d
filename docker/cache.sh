#!/bin/sh
# Starts Valkey with the password in CACHE_URL, or with "ping" asks it whether it answers. The password goes into a file
# in memory: every process of the machine can read a command line.
set -eu
url=$(cat "${CACHE_URL_FILE:-/run/secrets/cache_url}")
case $url in
  *://*:?*@*) ;;
  *) echo "cache_url has no password: redis://:PASSWORD@cache:6379/0" >&2; exit 1 ;;
esac
credentials=${url#*://}
credentials=${credentials%%@*}
password=${credentials#*:}
if [ "${1:-}" = ping ]; then
  shift
  export VALKEYCLI_AUTH="$password" REDISCLI_AUTH="$password"
  test "$(valkey-cli "$@" ping)" = PONG
else
  umask 077
  printf 'requirepass "%s"\n' "$password" > "${TMPDIR:-/tmp}/valkey.conf"
  exec valkey-server "${TMPDIR:-/tmp}/valkey.conf" "$@"
fi
