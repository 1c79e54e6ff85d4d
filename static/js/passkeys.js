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
      trouble.textContent = error.name === "NotAllowedError" ? "It was cancelled, or took too long." : "No passkey was used.";
      trouble.hidden = false;
    }
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.querySelector("[data-passkey-button]").addEventListener("click", () => ask(form));
  }
})();
