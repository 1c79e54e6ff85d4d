"""What search and records on file add to shared pages."""

from portal.core.areas import Area, SearchAction

AREA = Area(
    actions=[
        SearchAction("Add by ID", "plus", "lookup:add", "lookup.add"),
        SearchAction("Import records", "upload", "lookup:import_records", "lookup.import_records"),
    ],
    verbs={
        "lookup.record": "opened the record of",
        "lookup.add": "added",
        "lookup.correct": "corrected the record of",
        "lookup.archive": "archived",
        "lookup.restore": "restored",
        "lookup.upload": "uploaded",
        "lookup.import_records": "imported",
        "lookup.refresh_portfolio": "refreshed all accounts",
        "lookup.export": "exported the rejected lines of",
    },
)
