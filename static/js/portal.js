// Small behaviours on data-* attributes. Every screen works without this file; with it, it is quicker.
//
//   data-copy="text"        a button that copies the text
//   data-dismiss            closes the toast it stands in
//   data-close              closes the dialog it stands in
//   data-clear="id"         empties the region it stands in; the element with the ID gets the focus
//   data-menu-of="id"      a link that opens #row-menu instead, its data-href and data-copy filled with the ID
//   data-row                a row that j, k and o reach; its first link is what opens
//   data-key="e"            a link or button that the key presses; data-go="b" for g, then b
//   data-guard              a form that warns before typing is lost
//   data-autosave="/url/"   a form that posts a draft there after 10 s without typing; the answer replaces #draft-state
//   data-secret             an input whose value no draft ever holds
//   data-phone              an input that shows ten digits as (512) 555-0143
//   data-was="text"         a row whose field held the text; its data-was-words show once it differs, and data-undo puts it back
//   data-day="2026-11-27"   a button that puts the day into the field it stands in
//   data-groups="2-7"       an input that shows its digits in groups, as 12-3456789
//   data-busy="Sending…"    a submit button's words while its form is on the way
//   data-focus              what takes the focus once it is on the page; of a form, its first empty field
//   data-beside="id"        a panel that stands below the row with the element of that ID
//   data-announce="37 rows" said to screen readers when it arrives
//   data-due                a panel whose copy is old: it loads by itself, with "in-view" only once it is in view
//   data-ago                a time whose text is its age
//   data-suggest            the search field with its suggestions
//   data-refresh            a region that asks for itself every minute; data-item="key" are its rows, data-news says how many are new
//   data-theme-switch       a form whose buttons change the theme at once
(() => {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const on = (type, selector, handler) =>
    document.addEventListener(type, (event) => {
      const element = event.target instanceof Element && event.target.closest(selector);
      if (element) handler(element, event);
    });

  // Parts of pages load the same way everywhere; errors become toasts. Pages without htmx have no parts.
  Object.assign(window.htmx?.config ?? {}, {
    includeIndicatorStyles: false, allowEval: false, selfRequestsOnly: true, historyCacheSize: 0,
    historyRestoreAsHxRequest: false, allowNestedOobSwaps: false, defaultSwapStyle: "outerHTML", defaultSettleDelay: 0,
    responseHandling: [
      { code: "204", swap: false }, { code: "[23]..", swap: true }, { code: "409|422", swap: true },
      { code: "[45]..", swap: true, error: true, target: "#toasts", swapOverride: "beforeend" },
    ],
  });

  document.documentElement.dataset.ready = "";
  if (navigator.pdfViewerEnabled === false) document.documentElement.dataset.noViewer = "";
  // Tells the server that parts of a page load by themselves.
  document.cookie = `js=1; path=/; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;

  // --- Saying things ---

  const announce = (text) => {
    const live = $("#live");
    if (!live) return;
    live.textContent = "";
    setTimeout(() => { live.textContent = text; }, 50);
  };

  const TOAST_TIME = 8000;

  const expire = (toast) => {
    if (toast.matches(".sd-toast-bad")) return;
    const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : toast.remove());
    setTimeout(leave, TOAST_TIME);
  };

  const showToast = ({ text, url, link, bad }) => {
    const toast = $(bad ? ".sd-toast-bad" : ".sd-toast", $("#toast-form").content).cloneNode(true);
    $("b", toast).textContent = text;
    if (url) {
      const anchor = document.createElement("a");
      anchor.href = url;
      anchor.textContent = link;
      $("p", toast).append(anchor);
    }
    $("#toasts").append(toast);
    expire(toast);
  };

  // A file that is too large is not even sent, and what was typed beside it stays.
  document.addEventListener("change", (event) => {
    const input = event.target, most = document.body.dataset.uploadLimit;
    const file = input.type === "file" && [...input.files].find((one) => one.size > most * 2 ** 20);
    if (!file) return;
    event.stopImmediatePropagation();
    input.value = "";
    showToast({ text: `${file.name} is too large. Files can be up to ${most} MB.`, bad: true });
  }, true);

  on("click", "[data-dismiss]", (button) => button.closest("#toasts > *")?.remove());

  document.addEventListener("toasts", (event) => event.detail.value.forEach(showToast));
  document.addEventListener("htmx:sendError", () =>
    showToast({ text: "The portal can’t be reached. What you typed is still here; try again.", bad: true }));

  // A list has one menu: the ID of the row that opens it takes the place of the last one.
  on("click", "[data-menu-of]", (link, event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const menu = $("#row-menu"), last = menu.dataset.uuid, uuid = link.dataset.menuOf;
    for (const item of all("[data-href]", menu)) item.href = item.dataset.href = item.dataset.href.replace(last, uuid);
    $("[data-copy]", menu).dataset.copy = menu.dataset.uuid = uuid;
    menu.showPopover({ source: link });
  });
  on("keydown", "[data-menu-of]", (link, event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    link.click();
  });

  on("click", "[data-copy]", async (button) => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      announce("Not copied: the browser does not allow it here");
      return;
    }
    const drawing = $("use", button);
    const href = drawing?.getAttribute("href");
    drawing?.setAttribute("href", href.replace(/#.*/, "#check"));
    if (drawing) setTimeout(() => drawing.setAttribute("href", href), 1500);
    announce("Copied");
  });

  const AGES = [[86400, "day"], [3600, "h"], [60, "min"], [1, "s"]];

  const age = (seconds) => {
    const [size, unit] = AGES.find(([limit]) => Math.abs(seconds) >= limit) ?? AGES.at(-1);
    const count = Math.round(Math.abs(seconds) / size);
    const amount = `${count} ${unit}${unit === "day" && count !== 1 ? "s" : ""}`;
    return seconds < 0 ? `in ${amount}` : `${amount} ago`;
  };

  setInterval(() => {
    for (const time of all("[data-ago]")) time.textContent = age((Date.now() - Date.parse(time.dateTime)) / 1000);
  }, 10000);

  // --- Dialogs: a fragment in #dialog becomes modal; closing gives the focus back, unless something has taken it ---

  let opener = null;

  const openDialog = () => {
    const dialog = $("#dialog > dialog:not([data-shown])");
    if (!dialog) return;
    dialog.dataset.shown = "";
    dialog.addEventListener("close", () => {
      const isTaken = !dialog.contains(document.activeElement) && document.activeElement?.matches("[data-focus]");
      dialog.remove();
      if (!isTaken) (opener?.isConnected ? opener : document.getElementById(opener?.id))?.focus();
    });
    dialog.showModal();
    $(":is(input, textarea)[autofocus]", dialog)?.select();
  };

  const closeDialog = () => $("#dialog > dialog[open]")?.close();

  document.addEventListener("dialog:close", closeDialog);
  on("click", "#dialog [data-close]", (_, event) => { event.preventDefault(); closeDialog(); });
  on("click", "#dialog > dialog", (dialog, event) => { if (event.target === dialog) closeDialog(); });

  // --- Menus: details that close by Escape, by a click elsewhere, and when the focus leaves ---

  const closeMenus = (except) => {
    for (const menu of all("details.sd-menu[open]")) if (!except || !menu.contains(except)) menu.open = false;
  };

  document.addEventListener("click", (event) => closeMenus(event.target));
  document.addEventListener("focusin", (event) => closeMenus(event.target));

  // --- What arrives: focus, announcement, dialog, errors of a request made from a dialog ---

  const dirty = new Set(), announced = new WeakMap();

  // On a narrow screen a row of tabs or pills scrolls; the page itself stays where it is.
  const showTab = (tab) => {
    const row = tab.closest(".sd-tabs, .sd-pills");
    const [inner, outer] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
    row.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  };

  const firstEmpty = (form) =>
    all("input, select, textarea", form).find((field) => !field.value && field.checkVisibility());

  const markRow = () => {
    all(".sd-anchor").forEach((cell) => cell.classList.remove("sd-anchor"));
    document.getElementById($("[data-beside]")?.dataset.beside)?.closest("td, th").classList.add("sd-anchor");
  };

  const settle = (root) => {
    openDialog();
    const target = root.matches("[data-focus]") ? root : $("[data-focus]", root);
    markRow();
    (target?.matches("form") ? firstEmpty(target) : target)?.focus();
    all(":is(.sd-tabs, .sd-pills) [aria-current]", root).forEach(showTab);
    all("form[data-guard=typed], form[data-guard]:has(.sd-errors)", root).forEach((form) => dirty.add(form));
    const said = root.matches("[data-announce]") ? root : $("[data-announce]", root);
    // A part that was only redrawn with the same words is not said again.
    if (said && announced.get(said) !== said.dataset.announce) announce(said.dataset.announce);
    all("[data-announce]", root.parentElement ?? root).forEach((part) => announced.set(part, part.dataset.announce));
    all("#toasts > :not(.sd-toast)").forEach((notice) => {
      if (!$("[data-dismiss]", notice)) notice.append($("#toast-form").content.querySelector("button").cloneNode(true));
    });
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const active = document.activeElement;
    if (event.detail.target?.id === "dialog" && !active.closest("dialog")) opener = active;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const place = event.detail.target?.id === "toasts" && $("#dialog > dialog[open] .sd-dialog-errors");
    if (place) {
      place.replaceChildren();
      event.detail.target = place;
    }
  });

  // htmx gives the focus back by ID. If what had it is gone, what took its place gets it.
  let leftRegion = "";
  document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    leftRegion = target?.contains(document.activeElement) ? target.id : "";
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    settle(event.detail.elt);
    const region = document.activeElement === document.body && document.getElementById(leftRegion);
    if (!region) return;
    if (region.tabIndex < 0) region.tabIndex = -1;
    region.focus({ preventScroll: true });
  });

  // What was found of a field is not put over what is being typed into it, or was typed since it was asked: whoever came
  // back and changed nothing is told on leaving.
  const TYPED = "input:not([type=radio], [type=checkbox]), select, textarea";
  const asked = new WeakMap();
  const held = (field) => JSON.stringify(all("input, select, textarea", field).map((one) => [one.value, one.checked]));

  document.addEventListener("htmx:configRequest", ({ detail: { elt } }) => {
    const field = elt.closest(".sd-field");
    if (!field) return;
    const note = () => asked.set(field, held(field));
    note();
    // And a moment later, once the value is in its usual form, unless a key is faster.
    const timer = setTimeout(note);
    field.addEventListener("input", ({ isTrusted }) => isTrusted && clearTimeout(timer), { once: true });
  });

  // It moves what stands below the field, and a press that goes on meanwhile would lose its button to that: fields are
  // checked, and told of, when the press is over.
  let pressed = null;
  const waiting = [];

  const release = () => {
    pressed = null;
    for (const one of waiting.splice(0)) setTimeout(one);
  };
  const waits = (field, act) => {
    if (!pressed || field.contains(pressed)) return false;
    waiting.push(act);
    return true;
  };

  document.addEventListener("pointerdown", ({ target }) => (pressed = target), true);
  // Menus and lists of the browser's own swallow some of these.
  for (const end of ["pointerup", "pointercancel", "mouseup", "keydown"]) document.addEventListener(end, release, true);

  document.addEventListener("htmx:confirm", (event) => {
    const field = event.detail.elt.closest(".sd-field");
    if (field && waits(field, () => event.detail.issueRequest())) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const field = detail.target;
    if (!detail.shouldSwap || !field?.matches(".sd-field")) return;
    const isNewer = () => asked.has(field) && held(field) !== asked.get(field);
    const isTyping = () => field.contains(document.activeElement) && document.activeElement.matches(TYPED);
    const tell = () => {
      if (isNewer() || !field.isConnected) return;
      if (isTyping()) field.addEventListener("focusout", () => setTimeout(tell), { once: true });
      else if (!waits(field, tell)) window.htmx.swap(field, detail.serverResponse, { swapStyle: "outerHTML" });
    };
    if (!isNewer() && !isTyping() && !waits(field, tell)) return;
    detail.shouldSwap = false;
    if (isTyping()) tell();
  });

  // --- Forms: sent once, guarded, saved as a draft ---

  const IDLE = 10000;
  const timers = new Map();

  const saveDraft = (form) => {
    const values = window.htmx.values(form);
    for (const secret of all("[data-secret]", form)) delete values[secret.name];
    window.htmx
      .ajax("POST", form.dataset.autosave, { target: "#draft-state", swap: "outerHTML", values })
      .then(() => dirty.delete(form));
  };

  on("input", "form[data-guard], form[data-autosave]", (form) => {
    if ("guard" in form.dataset) dirty.add(form);
    if (!form.dataset.autosave) return;
    clearTimeout(timers.get(form));
    timers.set(form, setTimeout(saveDraft, IDLE, form));
  });

  on("submit", "form", (form, event) => {
    if ("sent" in form.dataset) return event.preventDefault();
    clearTimeout(timers.get(form));
    dirty.delete(form);
    const button = event.submitter;
    if (button?.dataset.busy) button.textContent = button.dataset.busy;
    if (form.method === "post" && !form.matches("[hx-post], [data-theme-switch]")) form.dataset.sent = "";
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt.closest?.("form[data-guard]");
    if (form && event.detail.failed) dirty.add(form);
  });

  // An answer may also replace a form beside the link or button that asked for it.
  const mayReplace = (region, elt) =>
    ![...dirty].some((form) => region.contains(form) && !form.contains(elt)) || confirm("Discard what you typed?");

  document.addEventListener("htmx:confirm", (event) => {
    if (!mayReplace(event.detail.target, event.detail.elt)) event.preventDefault();
  });
  on("click", "[data-clear]", (button) => {
    const region = button.closest("section"), place = document.createElement("div");
    if (!mayReplace(region, button)) return;
    place.id = region.id;
    region.replaceWith(place);
    markRow();
    (document.getElementById(button.dataset.clear) ?? $("#main")).focus();
  });

  window.addEventListener("beforeunload", (event) => {
    if ([...dirty].some((form) => form.isConnected)) event.preventDefault();
  });
  // Instead of a statement, its frame may say why there is none: then the pane says so, without Download and Open.
  let refused = "";
  document.addEventListener("load", ({ target }) => {
    if (!target.matches?.("iframe.sd-paper") || !target.contentDocument?.querySelector(".sd-refused")) return;
    const link = $('.sd-papers [aria-current="true"]'), part = "#line-statements";
    // Once, as it may not be known why.
    if (link && refused !== target.src) window.htmx.ajax("GET", link.href, { source: part, target: part });
    refused = target.src;
  }, true);
  window.addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => delete form.dataset.sent));

  on("change", "[data-phone]", (input) => {
    const digits = input.value.replace(/\D/g, "").replace(/^1(?=\d{10}$)/, "");
    if (digits.length === 10) input.value = digits.replace(/(\d{3})(\d{3})(\d{4})/, "($1) $2-$3");
  });

  const showWas = (row) => {
    $("[data-was-words]", row).hidden = $("input, select", row).value === row.dataset.was;
  };
  on("input", "[data-was]", showWas);
  on("change", "[data-was]", showWas);
  on("click", "[data-undo]", (button) => {
    const row = button.closest("[data-was]"), input = $("input, select", row);
    input.value = row.dataset.was;
    input.focus();
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });

  on("click", "[data-day]", (button) => {
    const input = $("input", button.closest(".sd-field"));
    input.value = button.dataset.day;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.focus();
  });

  // Enter is a new line there: with Ctrl it presses what Enter presses in a field.
  on("keydown", "textarea", ({ form }, event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form?.requestSubmit($("button:not([type=button])", form));
  });

  on("change", "[data-groups]", (input) => {
    const digits = input.value.replace(/[\s-]/g, "");
    const groups = input.dataset.groups.split("-").map((size) => `(\\d{${size}})`);
    const found = digits.match(new RegExp(`^${groups.join("")}$`));
    if (found) input.value = found.slice(1).join("-");
  });

  on("click", "[aria-disabled='true']", (_, event) => event.preventDefault());

  on("submit", "[data-theme-switch]", (form, event) => {
    const button = event.submitter;
    event.preventDefault();
    document.documentElement.dataset.theme = button.value;
    for (const each of all("button", form)) each.setAttribute("aria-pressed", String(each === button));
    fetch(form.action, { method: "POST", body: new FormData(form, button), redirect: "manual" });
  });

  // --- Regions that refresh themselves: not while the page is hidden, not under the pointer or the focus ---

  const REFRESH = 60000;
  const isRefresh = (event) => event.detail.requestConfig?.triggeringEvent?.type === "refresh";

  setInterval(() => {
    if (document.hidden) return;
    for (const region of all("[data-refresh]")) window.htmx.trigger(region, "refresh");
  }, REFRESH);

  const tellNews = (region, count) => {
    const news = $("[data-news]", region);
    const text = `${count} new, show`;
    if (!news || news.textContent === text) return;
    news.hidden = false;
    news.textContent = text;
    announce(text);
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isRefresh(event)) return;
    const region = event.detail.elt;
    const known = new Set(all("[data-item]", region).map((row) => row.dataset.item));
    const arrived = new DOMParser().parseFromString(event.detail.serverResponse, "text/html");
    const added = all("[data-item]", arrived).filter((row) => !known.has(row.dataset.item)).length;
    const isFree = !added && !region.matches(":hover, :focus-within");
    event.detail.shouldSwap = event.detail.xhr.status === 200 && isFree;
    if (added) tellNews(region, added);
  });
  document.addEventListener("htmx:sendError", (event) => isRefresh(event) && event.stopPropagation(), true);

  // --- Panels: each loads itself, at most four at a time, those in view first ---

  const MOST_LOADING = 4, TRY_AGAIN = 15000;
  const PANEL = "[data-due], [hx-trigger='every 2s']", PART = `${PANEL}, [hx-trigger^='account']`;
  const inView = new WeakSet(), tried = new WeakSet(), askedAt = new WeakMap();

  const loadPanels = () => {
    const due = all("[data-due]"), free = MOST_LOADING - due.filter((panel) => panel.matches(".htmx-request")).length;
    const next = due.filter((panel) => !tried.has(panel) && (inView.has(panel) || panel.dataset.due !== "in-view"));
    next.sort((one, other) => inView.has(other) - inView.has(one));
    for (const panel of next.slice(0, Math.max(free, 0))) {
      tried.add(panel);
      window.htmx.trigger(panel, "due");
    }
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) inView[isIntersecting ? "add" : "delete"](target);
    loadPanels();
  });
  const watchPanels = () => all("[data-due]").forEach((panel) => watcher.observe(panel));

  // Before other handlers: where the portal is away, one notice is enough for all panels, and each tries again.
  const isToldAlready = (elt) => elt.matches?.(PART) && $("#toasts > :is(.sd-toast-bad, :not(.sd-toast))");
  for (const type of ["htmx:sendError", "htmx:responseError"]) document.addEventListener(type, (event) => {
    const panel = event.detail.elt;
    if (isToldAlready(panel)) event.stopImmediatePropagation();
    if (panel.matches?.("[data-due]")) setTimeout(() => { tried.delete(panel); loadPanels(); }, TRY_AGAIN);
  }, true);
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.isError && isToldAlready(detail.elt)) detail.shouldSwap = false;
  });

  // First once htmx listens to them, and again for what arrives.
  for (const type of ["htmx:load", "htmx:afterRequest"]) document.addEventListener(type, watchPanels);
  document.addEventListener("htmx:afterRequest", loadPanels);
  // A panel that was asked for before the address changed, as by the next page of its table, is asked for again.
  document.addEventListener("htmx:beforeRequest", ({ detail }) => askedAt.set(detail.elt, location.href));
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.isError || !detail.elt.matches(`:is(${PANEL})[hx-get='']`)) return;
    if (askedAt.get(detail.elt) === location.href) return;
    detail.shouldSwap = false;
    tried.delete(detail.elt);
  });
  // What is open, ticked or typed stays so when a panel is redrawn.
  if (window.Idiomorph) Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, field) =>
    name !== "open" && !(name === "checked" && field.checked !== field.defaultChecked) &&
    !(name === "selected" && field.selected !== field.defaultSelected) &&
    !(name === "value" && field.value !== (field.defaultValue ?? field.value));

  // --- Search suggestions ---

  const search = $("[data-suggest]");
  const options = () => all("#suggestions [role='option']");

  const choose = (option) => {
    for (const each of options()) each.setAttribute("aria-selected", String(each === option));
    option?.scrollIntoView({ block: "nearest" });
    if (option) search.setAttribute("aria-activedescendant", option.id);
    else search.removeAttribute("aria-activedescendant");
  };

  const closeSuggestions = () => {
    $("#suggestions").replaceChildren();
    $("#suggestions").className = "";
    search.setAttribute("aria-expanded", "false");
    choose(null);
  };

  // Enter must not open the best hit of what was typed a moment ago.
  const answersWhatIsTyped = () => $("#suggestions").dataset.query === search.value.trim().replace(/\s+/g, " ");

  const suggestionKeys = (event) => {
    const list = options();
    const current = list.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.length) {
      event.preventDefault();
      choose(list.at((current + step + list.length + (current < 0 && step < 0 ? 1 : 0)) % list.length));
    } else if (event.key === "Enter" && current >= 0 && answersWhatIsTyped()) {
      event.preventDefault();
      list[current].click();
    } else if (event.key === "Escape" && list.length) {
      event.preventDefault();
      closeSuggestions();
    }
  };

  // The box would cut a long mail off, and what is looked for with it: it takes what can be found by instead.
  const FINDABLE = [
    /\b[\da-f]{8}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{12}\b/i,
    /[^\s@<>"(),;:]+@[^\s@<>"(),;:]+\.[a-z\d-]+/i,
    /\(?\b[2-9]\d{2}\)?[\s./-]*\d{3}[\s.-]*\d{4}\b/,
  ];

  const pasteWhatCounts = (event) => {
    const text = event.clipboardData.getData("text/plain");
    if (text.length + search.value.length <= search.maxLength) return;
    const [found] = FINDABLE.map((kind) => text.match(kind)?.[0]).filter(Boolean);
    if (!found) return;
    event.preventDefault();
    search.setRangeText(found, 0, search.value.length, "end");
    search.dispatchEvent(new Event("input", { bubbles: true }));
  };

  if (search) {
    search.addEventListener("keydown", suggestionKeys);
    search.addEventListener("paste", pasteWhatCounts);
    search.addEventListener("htmx:beforeRequest", (event) => {
      if (search.value.trim().length >= 2) return;
      event.preventDefault();
      closeSuggestions();
    });
    search.form.addEventListener("focusout", (event) => {
      if (!search.form.contains(event.relatedTarget)) closeSuggestions();
    });
    document.addEventListener("htmx:afterSettle", (event) => {
      if (event.detail.elt.id !== "suggestions") return;
      options().forEach((option, index) => { option.id = `suggestion-${index}`; });
      search.setAttribute("aria-expanded", String(options().length > 0));
      choose(options().find((option) => option.getAttribute("aria-selected") === "true"));
    });
  }

  // --- Keyboard shortcuts ---

  let awaited = 0;

  const isTyping = (element) => element.matches(`${TYPED}, [contenteditable]`);

  const moveRow = (step) => {
    const links = all("[data-row]").map((row) => $("a, button, summary", row)).filter((link) => link?.checkVisibility());
    const current = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    (current < 0 ? links[0] : links[current + step])?.focus();
  };

  const openSearch = () => {
    if (!search) return;
    search.form.dataset.open = "";
    search.focus();
    search.select();
  };

  $("[data-open-search]")?.addEventListener("click", (event) => {
    event.preventDefault();
    openSearch();
  });

  const KEYS = {
    "/": () => openSearch(),
    "?": () => $("#shortcuts")?.togglePopover(),
    g: () => { awaited = Date.now(); },
    j: () => moveRow(1),
    k: () => moveRow(-1),
    o: () => $("a, summary", document.activeElement.closest("[data-row]") ?? document.createElement("i"))?.click(),
  };

  const press = (element) => {
    element?.click();
    if (element?.matches("summary")) (firstEmpty(element.parentElement) ?? element).focus();
    return Boolean(element);
  };

  const shortcut = (key) => {
    const named = CSS.escape(key);
    if (Date.now() - awaited < 1500 && press($(`[data-go="${named}"]`))) {
      awaited = 0;
      return true;
    }
    if (press($(`[data-key="${named}"]`))) return true;
    KEYS[key]?.();
    return key in KEYS;
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = $("details.sd-menu[open]");
      closeMenus();
      if (menu) $("summary", menu).focus();
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && search && !$("dialog:modal")) {
      event.preventDefault();
      openSearch();
      return;
    }
    const isOff = document.body.dataset.shortcuts !== "on" || $("dialog:modal");
    if (isOff || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if ((event.key !== "Escape" && isTyping(event.target)) || !shortcut(event.key)) return;
    event.preventDefault();
  });

  // --- The page as it came ---

  all("#toasts > .sd-toast").forEach(expire);
  settle(document.body);
})();
