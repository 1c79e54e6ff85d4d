"""What notes add to shared pages."""

from portal.core.areas import Area

AREA = Area(
    verbs={
        "notes.add": "added a note to",
        "notes.unpin": "unpinned a note:",
        "notes.add_follow_up": "added a follow-up on",
        "notes.finish": "finished a follow-up:",
    },
)
