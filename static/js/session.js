// The end of a session: a warning before it, and a page that keeps what was typed after it.
//
// Every answer says how long the session still lasts (X-Session-Left). What the page asks for by itself says so
// (X-Background), so that it keeps nobody signed in.
(() => {
  "use strict";

  const dialog = document.getElementById("session");
  const WARN = 120;
  if (!dialog) return;

  const $ = (selector) => dialog.querySelector(selector);
  let ends = Date.now() + Number(dialog.dataset.left) * 1000;
  const left = () => Math.round((ends - Date.now()) / 1000);
  const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.verb === "get" && !detail.triggeringEvent?.isTrusted) detail.headers["X-Background"] = "1";
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const told = detail.xhr.getResponseHeader("X-Session-Left");
    if (told) ends = Date.now() + Number(told) * 1000;
  });

  // Another tab may have signed in again: its token takes the place of the one in this page's forms.
  const renew = (fresh) => {
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": fresh }));
    for (const input of document.querySelectorAll("[name=csrfmiddlewaretoken]")) input.value = fresh;
  };

  const ask = async (method) => {
    const headers = method === "POST" ? { "X-CSRFToken": token() } : { "X-Background": "1" };
    const answer = await fetch(dialog.dataset.url, { method, headers, redirect: "manual" });
    if (!answer.ok) return false;
    const told = await answer.json();
    if (String(told.person) !== dialog.dataset.person) return false;
    ends = Date.now() + told.left * 1000;
    renew(told.token);
    return true;
  };

  const show = (isOver) => {
    const isNews = isOver && (!dialog.open || $("[data-session-after]").hidden);
    $("[data-session-before]").hidden = isOver;
    $("[data-session-after]").hidden = !isOver;
    $("#session-title").textContent = isOver ? "Your session has ended" : "Your session is about to expire";
    if (!dialog.open) dialog.showModal();
    if (isNews) $("#session-title").focus();
  };

  let wasOver = false;
  let isAsking = false;

  // The guard of the forms in portal.js knows; it prevents leaving.
  const wouldLoseTyping = () => !window.dispatchEvent(new Event("beforeunload", { cancelable: true }));

  // Signed out in another tab: a page that holds what was typed stays, unless the desk has kept that (resume).
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const leadsTo = event.detail.xhr.getResponseHeader("HX-Redirect") ?? "";
    if (!leadsTo.startsWith(dialog.dataset.signIn) || leadsTo.includes("resume") || !wouldLoseTyping()) return;
    event.preventDefault();
    wasOver = true;
    show(true);
  });

  // What another tab did counts too, so the desk is asked before anything is said.
  const look = async () => {
    if (isAsking || wasOver || left() > WARN) return;
    isAsking = !dialog.open || left() <= 0;
    if (isAsking) {
      const isThere = await ask("GET").catch(() => left() > 0);
      isAsking = false;
      if (isThere && left() > WARN) return dialog.close();
      wasOver = !isThere || left() <= 0;
      show(wasOver);
    }
    const seconds = Math.max(left(), 0);
    $("[data-session-clock]").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };

  $("[data-session-stay]").addEventListener("click", async () => {
    if (await ask("POST").catch(() => false)) dialog.close();
    else { wasOver = true; show(true); }
  });
  $("[data-session-back]").addEventListener("click", async () => {
    const isBack = await ask("GET").catch(() => false);
    $("[data-session-not-yet]").hidden = isBack;
    if (isBack) { wasOver = false; dialog.close(); }
  });
  // It stays until it was answered.
  dialog.addEventListener("cancel", (event) => event.preventDefault());

  setInterval(look, 1000);
})();
