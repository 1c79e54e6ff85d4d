"""What saved views add to shared pages."""

from portal.core.areas import Area

AREA = Area(
    verbs={
        "saved_views.save": "saved the view",
        "saved_views.delete": "deleted the view",
    },
)
