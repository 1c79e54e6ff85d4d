"""Which tests are slow, which take longest, and which are the same on each database."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


class Selection:
    """Files, folders, classes, methods and functions by name: ``item in tests``."""

    def __init__(self, *names: str) -> None:
        self.paths = {TESTS / name for name in names if "::" not in name}
        self.parts = {name for name in names if "::" in name}
        missing = [path for path in self.paths if not path.exists()]
        for name in self.parts:
            file, *parts = name.split("::")
            text = (TESTS / file).read_text()
            starts = [rf"^{'    ' * depth}(class|def) {part}\b" for depth, part in enumerate(parts)]
            if not all(re.search(start, text, re.MULTILINE) for start in starts):
                missing.append(TESTS / name)
        assert not missing, f"These are gone: {missing}"

    def __contains__(self, item: pytest.Item) -> bool:
        file, *parts = re.split(r"[\[@]", item.nodeid.removeprefix("tests/"))[0].split("::")
        names = {"::".join([file, *parts[:count]]) for count in (1, 2)}
        return bool(names & self.parts) or not self.paths.isdisjoint((item.path, *item.path.parents))

    def files(self) -> Iterator[Path]:
        """The files that are named as a whole, by themselves or with their folder."""
        for path in self.paths:
            yield from path.rglob("*.py") if path.is_dir() else [path]


# Browsers, other servers, processes of their own, walks through everything: "make test-fast" leaves them out.
SLOW = Selection(
    "browser",
    "drills",
    "image",
    "portal/applications/test_any_shape.py",
    "portal/approvals",
    "portal/audit/test_resolve.py",
    "portal/audit/test_view_log.py",
    "portal/borrowers/test_create.py",
    "portal/borrowers/test_create_once.py",
    "portal/borrowers/test_draft.py",
    "portal/borrowers/test_edit.py",
    "portal/borrowers/test_edit_again.py",
    "portal/borrowers/test_edit_at_once.py",
    "portal/borrowers/test_edit_conflict.py",
    "portal/borrowers/test_edit_input.py",
    "portal/borrowers/test_edit_person.py",
    "portal/documents",
    "portal/jobs/test_worker.py",
    "portal/messaging/test_counts.py",
    "portal/messaging/test_sync.py",
    "portal/operations/test_copies.py",
    "portal/operations/test_demo.py",
    "portal/operations/test_doctor.py",
    "portal/operations/test_init.py",
    "portal/operations/test_install.py",
    "portal/operations/test_logs.py",
    "portal/operations/test_metrics.py",
    "portal/operations/test_serving.py",
    "portal/operations/test_status.py",
    "portal/operations/test_uploads.py",
    "portal/test_any_account.py",
    "portal/test_database_away.py",
    "portal/test_every_form.py",
    "portal/test_figures.py",
    "portal/test_generate.py",
    "portal/test_hostile.py",
    "portal/test_list_orders.py",
    "portal/test_mail.py",
    "portal/test_roles.py",
    "portal/test_search.py",
    "portal/test_secrets.py",
    "portal/test_settings.py",
    "portal/test_sign_in.py",
    "portal/test_strange_answers.py",
    "portal/test_typed_numbers.py",
    "portal/test_without_scripts.py",
    "sandbox/test_checks.py",
    "sandbox/test_command_line.py",
    "sandbox/test_openapi.py",
    "sandbox/test_seed.py",
    "sandbox/test_store.py",
    "servicing/test_connections.py",
    "servicing/test_first_day.py",
    "servicing/test_package.py",
    "servicing/test_wire.py",
    "test_structure.py::TestAccess",
)
# These test what is sent and shown: a form, a page, a PDF, a header, a setting, a network fault, a long walk. That is
# the same on each database, and others run the statements. Not here: stored secrets, locks, constraints, search, and
# what a copy of the database needs.
ONE_DATABASE = Selection(
    "portal/applications/test_any_shape.py",
    "portal/applications/test_detail.py",
    "portal/applications/test_follow.py",
    "portal/applications/test_open.py",
    "portal/applications/test_submit.py",
    "portal/approvals/test_approvals.py::test_a_change_cannot_be_sent_without_approval",
    "portal/approvals/test_approvals.py::test_an_approval_covers_only_the_approved_change",
    "portal/approvals/test_approvals.py::test_other_roles_cannot_approve",
    "portal/approvals/test_approvals.py::test_the_navigation_counts_pending_approvals",
    "portal/approvals/test_approvals.py::test_the_requester_and_supervisors_see_the_request",
    "portal/audit/test_breaker.py",
    "portal/audit/test_resolve.py",
    "portal/audit/test_view_log.py::test_a_panel_requested_alone_is_recorded",
    "portal/audit/test_view_log.py::test_every_page_list_and_file_is_recorded",
    "portal/borrowers/test_checklist.py",
    "portal/borrowers/test_create.py",
    "portal/borrowers/test_detail.py",
    "portal/borrowers/test_draft.py",
    "portal/borrowers/test_edit.py",
    "portal/borrowers/test_edit_again.py",
    "portal/borrowers/test_edit_conflict.py",
    "portal/borrowers/test_edit_input.py",
    "portal/borrowers/test_edit_person.py",
    "portal/collections/test_collections.py::TestContacts",
    "portal/credit_lines/test_detail.py",
    "portal/documents/test_batch.py::test_a_few_borrowers_are_one_pdf",
    "portal/documents/test_batch.py::test_a_zip_has_a_pdf_per_borrower_and_a_list_of_failures",
    "portal/documents/test_borrower.py",
    "portal/documents/test_document.py",
    "portal/documents/test_long.py::test_a_long_schedule_is_created_in_the_background",
    "portal/documents/test_long.py::test_a_long_statement_is_created_in_the_background",
    "portal/documents/test_long.py::test_a_short_document_is_opened_or_downloaded",
    "portal/documents/test_long.py::test_only_the_requester_can_open_a_long_document",
    "portal/documents/test_pdf.py",
    "portal/home/test_help.py",
    "portal/jobs/test_worker.py::test_a_stuck_step_is_interrupted_after_the_grace_period",
    "portal/loans/test_detail.py",
    "portal/loans/test_schedule.py",
    "portal/lookup/test_add.py",
    "portal/lookup/test_archive.py",
    "portal/lookup/test_correct.py",
    "portal/lookup/test_import_records.py::test_an_invalid_id_file_shows_the_reason",
    "portal/lookup/test_import_records.py::test_an_invalid_profile_shows_the_reason",
    "portal/lookup/test_open_as.py",
    "portal/lookup/test_record.py",
    "portal/messaging/test_detail.py",
    "portal/messaging/test_index.py::TestBadInput",
    "portal/messaging/test_index.py::TestLive",
    "portal/messaging/test_index.py::TestLiveExports",
    "portal/messaging/test_index.py::test_paging_the_copy_is_stable_across_an_outage",
    "portal/messaging/test_life.py",
    "portal/messaging/test_of_account.py",
    "portal/messaging/test_sync.py::test_a_run_killed_twenty_times_still_completes",
    "portal/notes",
    "portal/operations/test_compression.py",
    "portal/operations/test_copies.py::test_a_new_backup_survives_a_clock_set_back",
    "portal/operations/test_copies.py::test_a_scheduled_backup_deletes_only_old_backups",
    "portal/operations/test_doctor.py::test_a_missing_worker_and_unsafe_settings_are_reported",
    "portal/operations/test_doctor.py::test_a_wrong_service_url_is_reported",
    "portal/operations/test_doctor.py::test_available_metrics_are_reported",
    "portal/operations/test_doctor.py::test_every_example_setting_is_read",
    "portal/operations/test_doctor.py::test_mistaken_settings_are_reported",
    "portal/operations/test_doctor.py::test_pdfs_that_cannot_be_created_are_reported",
    "portal/operations/test_doctor.py::test_rejected_credentials_are_reported",
    "portal/operations/test_doctor.py::test_settings_that_do_not_match_the_service_are_reported",
    "portal/operations/test_doctor.py::test_the_identity_provider_is_checked",
    "portal/operations/test_doctor.py::test_the_service_is_checked_during_a_pause",
    "portal/operations/test_doctor.py::test_unusable_settings_are_reported",
    "portal/operations/test_headers.py",
    "portal/operations/test_job.py",
    "portal/operations/test_logs.py",
    "portal/operations/test_metrics.py",
    "portal/operations/test_serving.py::test_a_running_request_finishes_before_the_server_stops",
    "portal/operations/test_serving.py::test_an_ssn_in_an_invalid_request_is_not_logged",
    "portal/operations/test_serving.py::test_replacing_a_process_drops_no_request",
    "portal/operations/test_serving.py::test_the_servers_own_log_is_json",
    "portal/operations/test_serving.py::test_threads_share_their_memory",
    "portal/operations/test_status.py::TestBackgroundWork",
    "portal/operations/test_status.py::TestMissing",
    "portal/operations/test_status.py::test_a_call_without_a_usable_answer_is_a_failure",
    "portal/operations/test_uploads.py",
    "portal/repayments/test_detail.py",
    "portal/repayments/test_table.py",
    "portal/test_accounts.py::TestAdmin",
    "portal/test_accounts.py::TestProfile",
    "portal/test_accounts.py::TestSuperuser::test_django_flags_grant_no_admin_access",
    "portal/test_accounts.py::TestSuperuser::test_the_admin_lists_only_accounts_and_the_audit_trail",
    "portal/test_any_account.py",
    "portal/test_audit.py::TestRecordedViews",
    "portal/test_every_form.py",
    "portal/test_figures.py::test_closed_accounts_are_reported_but_not_counted",
    "portal/test_figures.py::test_contradicting_repayments_are_reported_everywhere",
    "portal/test_figures.py::test_one_answer_gives_true_figures_on_forty_days",
    "portal/test_figures.py::test_possible_partial_payments_are_shown_everywhere",
    "portal/test_gateway.py::TestErrorPages",
    "portal/test_gateway.py::TestRead",
    "portal/test_generate.py::test_generated_rows_match_what_the_portal_saves",
    "portal/test_generate.py::test_production_databases_with_records_are_rejected",
    "portal/test_list_cells.py",
    "portal/test_nulls.py",
    "portal/test_panels.py",
    "portal/test_roles.py",
    "portal/test_secrets.py::test_a_real_terminal_shows_no_secrets",
    "portal/test_sign_in.py::TestKeys",
    "portal/test_sign_in.py::TestPasswordGuessing",
    "portal/test_sign_in.py::TestRateLimits",
    "portal/test_typed_amounts.py",
    "portal/test_without_scripts.py",
    "portal/ui",
)
differing = [file for file in ONE_DATABASE.files() if "connection.vendor" in file.read_text()]
assert not differing, f"These have tests that differ by database: {differing}"
# Each has a test of half a minute of work, which would run alone at the end. Tests that mostly wait are not here,
# because several at once would leave the cores idle.
LONGEST = Selection(
    "browser/test_bad_input.py",
    "browser/test_collections.py",
    "browser/test_people.py",
    "portal/documents/test_long.py",
    "portal/operations/test_demo.py",
    "portal/operations/test_init.py",
    "portal/test_figures.py",
    "portal/test_typed_numbers.py",
)
