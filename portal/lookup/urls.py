"""Addresses of search and of maintaining the registry."""

from django.urls import path

from portal.lookup import views

app_name = "lookup"
urlpatterns = [
    path("search/", views.search, name="search"),
    path("search/open/", views.open_as, name="open_as"),
    path("registry/add/", views.add, name="add"),
    path("registry/import/", views.import_records, name="import_records"),
    path("registry/refresh/", views.refresh_portfolio, name="refresh_portfolio"),
    path("registry/import/<int:upload_id>/", views.imported, name="imported"),
    path("registry/import/<int:upload_id>/refused/", views.export_refused, name="export_refused"),
    path("registry/<str:kind>/<str:uuid>/", views.record, name="record"),
    path("registry/<str:kind>/<str:uuid>/correct/", views.correct, name="correct"),
    path("registry/<str:kind>/<str:uuid>/archive/", views.archive, name="archive"),
]
