"""Addresses of all areas; the sign-in pages are allauth's, under our addresses."""

from django.conf import settings
from django.urls import include, path

from portal.accounts.admin import site

urlpatterns = [
    path("", include("portal.home.urls")),
    path("", include("portal.documents.urls")),
    path("borrowers/", include("portal.borrowers.urls")),
    path("", include("portal.applications.urls")),
    path("", include("portal.loans.urls")),
    path("", include("portal.credit_lines.urls")),
    path("repayments/", include("portal.repayments.urls")),
    path("collections/", include("portal.collections.urls")),
    path("portfolio/", include("portal.portfolio.urls")),
    path("messages/", include("portal.messaging.urls")),
    path("", include("portal.lookup.urls")),
    path("notes/", include("portal.notes.urls")),
    path("approvals/", include("portal.approvals.urls")),
    path("views/", include("portal.tables.urls")),
    path("audit/", include("portal.audit.urls")),
    path("", include("portal.operations.urls")),
    path("accounts/", include("portal.accounts.urls")),
    path("", include("portal.accounts.sign_in_urls")),
    path("admin/", site.urls),
]
if settings.DEBUG:
    urlpatterns.append(path("ui/", include("portal.ui.urls")))

handler400 = "portal.gateway.failures.page_400"
handler403 = "portal.gateway.failures.page_403"
handler404 = "portal.gateway.failures.page_404"
handler500 = "portal.gateway.failures.page_500"
