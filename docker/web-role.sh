#!/bin/sh
# Makes the role of web and worker, which owns no table and so cannot take the guard of the audit trail away. PostgreSQL's
# image runs this when it makes the database; for one that was there before, run it once in its container. Name and
# password are those of DATABASE_URL; docker/audit-roles.sql says what the role may do.
set -eu
url=$(cat "${DATABASE_URL_FILE:-/run/secrets/database_url}")
credentials=${url#*://}
credentials=${credentials%%@*}
psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=web="${credentials%%:*}" --set=password="${credentials#*:}" <<'SQL'
CREATE ROLE :"web" LOGIN PASSWORD :'password';
SQL
