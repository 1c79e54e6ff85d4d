-- What the portal's own role may do on PostgreSQL, so that it cannot take the audit's triggers away.
--
-- Two roles: one owns the tables and runs "manage.py migrate", the other is in the DATABASE_URL of web and worker.
-- Run this as the owner after every migration:
--   psql "$OWNER_DATABASE_URL" -v web=desk_web -f docker/audit-roles.sql
-- "manage.py verify_audit", run as the web role, warns while that role could still take the triggers away.

\set ON_ERROR_STOP on
BEGIN;
GRANT USAGE ON SCHEMA public TO :"web";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :"web";
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO :"web";
REVOKE ALL ON audit_entry FROM :"web", PUBLIC;
GRANT SELECT, INSERT ON audit_entry TO :"web";
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM :"web";
REVOKE CREATE ON SCHEMA public FROM :"web", PUBLIC;
COMMIT;
