// Passkeys: asks the browser, and posts what it answers. Without this file, and in browsers without passkeys, the forms stay hidden.
//
//   data-passkey="create"    a form that adds one; its options stand in #passkey-options
//   data-passkey="get"       a form that shows one; likewise
//   data-passkey="sign-in"   a form that signs in with one; its options are fetched from its address
//   data-passkey-button, data-passkey-trouble   what starts it, and where trouble is told
(() => {
  "use strict";

  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;

  const options = async (form) => {
    const given = document.getElementById("passkey-options");
    if (form.dataset.passkey !== "sign-in") return JSON.parse(given.textContent);
    const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error("The desk did not answer.");
    return answer.json();
  };

  const create = (asked, alone) => {
    const publicKey = structuredClone(asked.creation_options.publicKey);
    publicKey.authenticatorSelection.residentKey = alone ? "required" : "discouraged";
    publicKey.authenticatorSelection.requireResidentKey = alone;
    if (alone) publicKey.authenticatorSelection.userVerification = "required";
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
  };

  const get = (asked) =>
    navigator.credentials.get({
      publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked.request_options.publicKey),
    });

  // Browsers don't tell a person's choice from a device that has no passkey for this site.
  const REASONS = {
    NotAllowedError: "Canceled, took too long, or this device has no passkey for this site.",
    InvalidStateError: "This device already has a passkey for your account.",
    NotSupportedError: "This device can’t use that kind of passkey.",
    ConstraintError: "This device can’t ask for your fingerprint, face or PIN.",
    SecurityError: "Passkeys don’t work at this address.",
  };

  const ask = async (form) => {
    const trouble = form.querySelector("[data-passkey-trouble]");
    trouble.hidden = true;
    try {
      const asked = await options(form);
      const alone = Boolean(form.elements.passwordless?.checked);
      const credential = await (form.dataset.passkey === "create" ? create(asked, alone) : get(asked));
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.requestSubmit();
    } catch (error) {
      const isNew = form.dataset.passkey === "create";
      const reason = isNew && error.name === "NotAllowedError" ? "Canceled, or it took too long. Try again." : REASONS[error.name];
      trouble.textContent = reason ?? "The passkey couldn’t be used. Try again.";
      trouble.hidden = false;
    }
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.querySelector("[data-passkey-button]").addEventListener("click", () => ask(form));
  }
})();
