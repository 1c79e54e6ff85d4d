#!/bin/sh
# A command of manage.py that makes tables, done as their owner; afterwards the role of web and worker may use them.
set -eu
python manage.py "$@"
exec psql --quiet --no-psqlrc --set=web="${WEB_ROLE:-desk_web}" --file=docker/audit-roles.sql "$(cat "$DATABASE_URL_FILE")"
