"""What accounts add to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry, SearchAction

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Administration",
            icon="users",
            url_name="admin:index",
            act="audit.index",
            key="d",
            group="Records",
            order=120,
        )
    ],
    help=[
        HelpPage(
            address="admin",
            title="Administration",
            picture="Administration: page views with who viewed what and when",
            order=140,
        ),
    ],
    actions=[
        SearchAction("Your settings", "settings", "accounts:profile", "accounts.profile"),
    ],
    verbs={
        "accounts.sign_in": "signed in",
        "accounts.sign_in_failed": "failed to sign in as",
        "accounts.sign_out": "signed out",
        "accounts.refused": "was not allowed to",
        "accounts.keep_number": "confirmed that nine digits aren’t an SSN or EIN",
        "accounts.profile": "changed their preferences",
        "accounts.staff_created": "created the account",
        "accounts.staff_deleted": "deleted the account",
        "accounts.staff_changed": "changed the account",
        "accounts.session_ended": "ended sessions of",
        "accounts.password_changed": "changed the password of",
        "accounts.password_link_requested": "asked for a password link for",
        "accounts.password_link_sent": "sent a password link to",
        "accounts.single_sign_on_connected": "connected single sign-on to",
        "accounts.single_sign_on_changed": "changed the single sign-on of",
        "accounts.single_sign_on_removed": "disconnected single sign-on from",
        "accounts.second_factor_added": "added a second factor to",
        "accounts.second_factor_changed": "changed a second factor of",
        "accounts.second_factor_removed": "removed a second factor of",
    },
)
