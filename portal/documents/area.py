"""What documents add to shared pages."""

from portal.core.areas import Area, SearchAction

AREA = Area(
    actions=[
        SearchAction(
            "Print summary", "printer", "documents:borrower", "summaries.borrower", "borrowers:detail"
        ),
        SearchAction(
            "Print schedule", "printer", "documents:loan_schedule", "summaries.document", "loans:detail"
        ),
        SearchAction(
            "Print summary", "printer", "documents:line", "summaries.document", "credit_lines:detail"
        ),
    ],
    verbs={
        "summaries.borrower": "opened the summary of",
        "summaries.print": "printed",
        "summaries.verify": "compared a file with document",
        "summaries.batch": "started printing",
        "summaries.download": "fetched",
    },
)
