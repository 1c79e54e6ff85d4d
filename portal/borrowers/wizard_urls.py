"""Addresses of onboarding. ``draft`` takes the id of a draft that need not be kept yet."""

from django.urls import path

from portal.borrowers import wizard_views

urlpatterns = [
    path("new/", wizard_views.create, name="create"),
    path("new/<uuid:draft_id>/discard/", wizard_views.discard_draft, name="discard_draft"),
    path("new/<uuid:draft_id>/<str:step>/", wizard_views.draft, name="draft"),
]
