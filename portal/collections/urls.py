"""Addresses of collections: the worklist, contacts and promises, owners, returned payments."""

from django.urls import path

from portal.collections import views
from portal.collections.list_page import WORKLIST
from portal.tables.addresses import list_addresses

app_name = "collections"
urlpatterns = [
    *list_addresses(WORKLIST, "", index=views.index),
    path("print/", views.print_list, name="print_list"),
    path("next/", views.next_in_list, name="next"),
    path("update-due-since/", views.update_due_since, name="update_due_since"),
    path("take/", views.take, name="take"),
    path("assign/", views.assign, name="assign"),
    path("contacts/<str:kind>/<str:uuid>/", views.contacts, name="contacts"),
    path("contacts/<str:kind>/<str:uuid>/log/", views.log, name="log"),
    path("contact/<int:contact_id>/undo/", views.undo, name="undo"),
    path("promises/<int:promise_id>/withdraw/", views.withdraw, name="withdraw"),
    path("returns/", views.returns, name="returns"),
    path("returns/export.csv", views.export_returns, name="export_returns"),
]
