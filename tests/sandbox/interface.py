"""The fields of the interface's objects (tables 2.1 to 2.10), to compare with the sandbox's answers."""


def _fields(names: str) -> set[str]:
    return set(names.split())


ADDRESS = _fields("line_1 line_2 line_3 zip city state country")
PERSON = _fields(
    "uuid first_name middle_name last_name citizenship provider_customer_url user_type email phone address"
)
BUSINESS = _fields("""
    uuid first_name middle_name last_name provider_customer_url user_type start_date website entity industry email phone
    address key_people
""")
KEY_PERSON = _fields("uuid first_name middle_name last_name title citizenship email phone address")
APPLICATION = _fields("""
    uuid product amount term purpose details credit_score_consent created_at credit_report_id offers status
""")
OFFER = _fields("""
    uuid product apr amount term term_frequency interest_rate origination_fee interest_only_period
    interest_only_installment interest_amount installment start_date explanation maturity_date
""")
LOAN = _fields("""
    user_uuid uuid product origin_loan_uuid external_id state amount interest_rate apr term term_frequency
    interest_only_period opening_date repayments_start_date repayments_end_date maturity_date autopay_enabled
    origination_fee finance_charge total_repayment_amount interest_amount risk_grade servicing_committed_at status
    delinquent installments
""")
STATEMENT = _fields("""
    next_billing_date principal_balance interest_balance payoff_balance days_past_due past_due_balance
    payment_amount_due payment_due_date suspense_balance statements credit_limit available_credit current_credit
""")
REPAYMENT = _fields("""
    uuid product payment_type effective_date amount principal interest fees suspense ending_balance
    should_commit_to_servicing borrower_bank_account_uuid ach_batch_id ach_id completion_date error_description
    initiation_date status
""")
MESSAGE = _fields("uuid event payload status created_at")
SNAKE_INSTALLMENT = _fields("number due_date principal interest fees total balance status paid_on")
PASCAL_INSTALLMENT = _fields("""
    PaymentNumber PaymentDate PrincipalAmount InterestAmount OtherAmount PaymentAmount BalanceAmount LoanAmount
    IsHistory
""")
