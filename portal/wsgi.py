"""The WSGI application. An invalid setting stops the start with a message."""

import os

from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application

from portal.core.environment import stop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()
# CPython 3.11 is slow at a call that crosses the end of a chunk of frames (gh-142183): one large frame avoids the ends.
WSGIHandler.__call__.__code__ = WSGIHandler.__call__.__code__.replace(co_stacksize=40_000)

from django.db import connection  # noqa: E402  (what follows needs the settings)

from portal.core.database import find_setup_problem, mark_in_use  # noqa: E402
from portal.gateway.client import client  # noqa: E402
from servicing import ConfigurationError  # noqa: E402

try:
    client()
except ConfigurationError as error:
    stop(f"a SERVICING_ setting is invalid. {error.message}")
if problem := find_setup_problem():
    stop(problem, topic="Database")
mark_in_use()
connection.close()
