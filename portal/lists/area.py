"""What saved views add to shared pages."""

from portal.runtime.areas import Area

AREA = Area(
    verbs={
        "saved_views.save": "saved the view",
        "saved_views.delete": "deleted the view",
    },
)
