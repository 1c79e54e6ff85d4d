"""What the audit trail adds to shared pages."""

from portal.audit.attention import trail_problem, unknown_writes
from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Audit",
            icon="shield-check",
            url_name="audit:index",
            act="audit.index",
            key="t",
            group="Records",
            order=100,
        )
    ],
    attention=[
        ItemKind(name="system", title="System", order=10, sources=[trail_problem, unknown_writes]),
    ],
    help=[
        HelpPage(
            address="audit",
            title="Audit",
            picture="Audit trail: who did what and when, with references",
            order=120,
        ),
    ],
    verbs={
        "audit.resolve": "resolved the unknown outcome of",
        "audit.correct": "corrected the resolved outcome of",
        "audit.save_answer": "saved the answer of",
        "audit.discard_answer": "discarded the saved response to a request that isn’t in the database:",
        "audit.export": "exported the audit trail as",
        "audit.verify": "verified the whole audit trail",
        "audit.checkpoint": "signed the audit trail",
        "audit.accept": "accepted an audit trail that differs from its checkpoints",
        "audit.guard": "restored the database protection of the audit trail",
    },
)
