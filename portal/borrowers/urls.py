"""Addresses of borrowers. ``draft`` also takes the ID of a draft that isn't saved yet."""

from django.urls import path

from portal.borrowers import account_panels, onboarding, page, profile
from portal.borrowers.list_page import BORROWERS
from portal.tables.addresses import list_addresses

app_name = "borrowers"
urlpatterns = [
    *list_addresses(BORROWERS, "", file="export/"),
    path("new/", onboarding.create, name="create"),
    path("new/<uuid:draft_id>/discard/", onboarding.discard_draft, name="discard_draft"),
    path("new/<uuid:draft_id>/<str:step>/", onboarding.draft, name="draft"),
    path("<str:borrower_uuid>/edit/", profile.edit, name="edit"),
    path("<str:borrower_uuid>/people/<str:person_uuid>/edit/", profile.edit, name="edit_person"),
    path("<str:borrower_uuid>/refresh/", account_panels.refresh, name="refresh"),
    path(
        "<str:borrower_uuid>/accounts/<str:kind>/<str:account_uuid>/", account_panels.account, name="account"
    ),
    path("<str:borrower_uuid>/", page.detail, name="detail"),
]
