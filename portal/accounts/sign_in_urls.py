"""Addresses of the sign-in pages, most of them allauth's views; other allauth pages don't exist here.

Pages that need a signed-in person require an act like every other view.
"""

from collections.abc import Callable
from typing import Any

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as openid
from django.urls import URLPattern, path

from portal.accounts import single_sign_on, views
from portal.accounts.roles import requires


def own_page(address: str, view: Callable[..., Any], name: str) -> URLPattern:
    return path(f"accounts/{address}", requires("accounts.profile")(view), name=name)


urlpatterns = [
    path("sign-in/", account.login, name="account_login"),
    path("sign-in/second-factor/", views.readable_passkeys(mfa.authenticate), name="mfa_authenticate"),
    path("sign-in/passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("sign-in/password/", views.forgot_password, name="account_forgot_password"),
    path("sign-in/password/<int:pk>/<str:token>/", views.choose_password, name="account_choose_password"),
    path("sign-in/inactive/", account.account_inactive, name="account_inactive"),
    path("sign-in/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sign-in/failed/", social.login_error, name="socialaccount_login_error"),
    path("sign-in/with/<slug:provider_id>/", views.single_sign_on(openid.login), name="openid_connect_login"),
    path(
        "sign-in/with/<slug:provider_id>/back/",
        views.single_sign_on(single_sign_on.callback),
        name="openid_connect_callback",
    ),
    path("sign-out/", account.logout, name="account_logout"),
    own_page("confirm/", account.reauthenticate, "account_reauthenticate"),
    own_page("confirm/code/", mfa.reauthenticate, "mfa_reauthenticate"),
    own_page(
        "confirm/passkey/",
        views.readable_passkeys(passkeys.reauthenticate_webauthn),
        "mfa_reauthenticate_webauthn",
    ),
    own_page("password/", account.password_change, "account_change_password"),
    own_page("password/none/", views.no_password, "account_set_password"),
    own_page("second-factor/", mfa.index, "mfa_index"),
    own_page("second-factor/app/", totp.activate_totp, "mfa_activate_totp"),
    own_page("second-factor/app/remove/", totp.deactivate_totp, "mfa_deactivate_totp"),
    own_page("second-factor/passkeys/", passkeys.list_webauthn, "mfa_list_webauthn"),
    own_page("second-factor/passkeys/add/", passkeys.add_webauthn, "mfa_add_webauthn"),
    own_page("second-factor/passkeys/<int:pk>/", passkeys.edit_webauthn, "mfa_edit_webauthn"),
    own_page("second-factor/passkeys/<int:pk>/remove/", passkeys.remove_webauthn, "mfa_remove_webauthn"),
    own_page("second-factor/codes/", recovery_codes.view_recovery_codes, "mfa_view_recovery_codes"),
    own_page(
        "second-factor/codes/new/", recovery_codes.generate_recovery_codes, "mfa_generate_recovery_codes"
    ),
]
