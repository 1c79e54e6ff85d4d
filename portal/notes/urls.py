"""Addresses of notes and follow-ups."""

from django.urls import path

from portal.notes import views

app_name = "notes"
urlpatterns = [
    path("new/<str:kind>/<str:uuid>/", views.add, name="add"),
    path("<int:note_id>/unpin/", views.unpin, name="unpin"),
    path("follow-ups/new/<str:borrower_uuid>/", views.add_follow_up, name="add_follow_up"),
    path("follow-ups/<int:follow_up_id>/finish/", views.finish, name="finish"),
]
