"""What operations add to shared pages."""

from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry
from portal.operations.attention import stopped_worker

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Integration status",
            icon="activity",
            url_name="operations:status",
            act="operations.status",
            key="s",
            group="Records",
            order=110,
        )
    ],
    attention=[
        ItemKind(name="system", title="System", order=10, sources=[stopped_worker]),
    ],
    help=[
        HelpPage(
            address="operations",
            title="Integration status",
            picture="Integration status: each group of calls with its response times",
            order=130,
        ),
    ],
    verbs={
        "operations.forget_old": "deleted expired records",
        "operations.backup": "backed up the database to",
        "operations.restore": "restored the database from",
        "operations.cancel": "canceled the job:",
        "operations.support_bundle": "downloaded",
        "operations.first_day": "ran",
        "operations.borrower_data": "gave out the data of",
    },
)
