from tests.service_fixtures import database as database
from tests.service_fixtures import database_file as database_file
from tests.service_fixtures import empty_database_file as empty_database_file
from tests.service_fixtures import plain_logs as plain_logs
from tests.service_fixtures import postgres as postgres
