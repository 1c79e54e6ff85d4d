"""What the answers of each operation of the lending service hold: the operation decides it, never the ids of a call."""

from portal.registry.models import Kind

KIND_OF_ANSWER: dict[str, Kind | None] = {
    "borrowers.create_commercial": Kind.BORROWER,
    "borrowers.update": Kind.BORROWER,
    "borrowers.update_key_person": Kind.KEY_PERSON,
    "applications.submit": Kind.APPLICATION,
    "applications.get_for_line": Kind.APPLICATION,
    "loans.get": Kind.LOAN,
    "credit_lines.statement": Kind.LINE,
    "repayments.of_loan": Kind.LOAN_REPAYMENTS,
    "repayments.of_line": Kind.LINE_REPAYMENTS,
    "messages.list": None,  # Messages have tables of their own.
}
