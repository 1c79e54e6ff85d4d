"""Addresses of the audit trail and of single writes."""

from django.urls import path

from portal.audit import views

app_name = "audit"
urlpatterns = [
    path("", views.index, name="index"),
    path("export/", views.index),
    path("<int:entry_id>/", views.detail, name="detail"),
    path("history/<str:kind>/<str:uuid>/", views.record_history, name="history"),
    path("writes/<uuid:intent_id>/", views.write, name="write"),
    path("writes/<uuid:intent_id>/resolve/", views.resolve, name="resolve"),
    path("writes/<uuid:intent_id>/save-answer/", views.save_answer, name="save_answer"),
]
