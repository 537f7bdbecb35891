#!/bin/sh
# Create the role of the service, without the rights of a superuser, and its database. The image of PostgreSQL runs
# this once, in an empty data folder.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres \
  --set=password="$(cat /run/secrets/postgres_password)" <<'SQL'
CREATE ROLE loopwright LOGIN PASSWORD :'password';
CREATE DATABASE loopwright OWNER loopwright ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE loopwright FROM PUBLIC;
SQL
