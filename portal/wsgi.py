"""The WSGI application. An invalid setting stops the start with a message."""

import os

from django.core.wsgi import get_wsgi_application

from portal.runtime.environment import stop
from portal.runtime.stack import with_large_frame

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = with_large_frame(get_wsgi_application())

from django.db import connection  # noqa: E402  (what follows needs the settings)

from portal.gateway import client  # noqa: E402
from portal.runtime.database import find_setup_problem, mark_in_use  # noqa: E402
from servicing import ConfigurationError  # noqa: E402

try:
    client()
except ConfigurationError as error:
    stop(f"a SERVICING_ setting is invalid. {error.message}")
if problem := find_setup_problem():
    stop(problem, topic="Database")
mark_in_use()
connection.close()
