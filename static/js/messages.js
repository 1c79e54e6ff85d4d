// The explorer of messages: what is quicker with a script. Every part of it works without this file.
//
//   data-tail-switch        a box that looks for new messages every few seconds while the page is visible
//   data-message="uuid"     a row; that of the message beside the list is marked
//   .sd-json data-path      lines that fold, and whose path and value can be copied
//   data-json-find          an input that marks the lines which hold what is typed
(() => {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const TAIL = 4500; // What arrives is told within 5 s, the answer included.

  // --- Live tail: it only tells how many are new; the list stays as it is until somebody asks ---

  const isLive = () => sessionStorage.getItem("tail") === "on";
  const showLive = () => {
    for (const tail of all("[data-tail-switch]")) tail.checked = isLive();
  };
  const look = () => {
    const news = $("#message-news");
    if (news && isLive() && !document.hidden) window.htmx.trigger(news, "tail");
  };

  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-tail-switch]")) return;
    sessionStorage.setItem("tail", target.checked ? "on" : "off");
    look();
  });
  document.addEventListener("htmx:oobAfterSwap", showLive);
  showLive();
  setInterval(look, TAIL);

  // --- The row of the message beside the list ---

  const mark = () => {
    const shown = $("#message")?.dataset.shown;
    for (const row of all("[data-message]")) {
      const is = row.dataset.message === shown;
      row.classList.toggle("sd-selected", is);
      const link = $("th a", row);
      if (is) {
        link.setAttribute("aria-current", "true");
        $("details", row.closest(".sd-burst") ?? row)?.setAttribute("open", "");
      } else link.removeAttribute("aria-current");
    }
  };

  // --- JSON: fold, find, copy a path or a value ---

  const lines = (json) => all("[data-path]", json);
  const level = (line) => Number(line.dataset.level);

  const behind = (line) => {
    const held = [];
    for (let next = line.nextElementSibling; next && level(next) > level(line); next = next.nextElementSibling) held.push(next);
    return held;
  };

  const fold = (line) => {
    const folded = !("folded" in line.dataset);
    if (folded) line.dataset.folded = "";
    else delete line.dataset.folded;
    line.setAttribute("aria-expanded", String(!folded));
    for (const held of behind(line)) {
      held.hidden = folded;
      delete held.dataset.folded;
    }
  };

  const valueOf = (line) => {
    if (!("folds" in line.dataset)) return line.textContent.replace(/^\s*("(\\.|[^"\\])*": )?/, "").replace(/,$/, "");
    const closing = behind(line).at(-1)?.nextElementSibling;
    return [line, ...behind(line), closing].map((one) => one?.textContent ?? "").join("\n").replace(/,$/, "");
  };

  const choose = (line) => {
    const json = line.parentElement;
    for (const other of all(".sd-current", json)) other.classList.remove("sd-current");
    line.classList.add("sd-current");
    const told = $("[data-json-line]");
    if (!told) return;
    told.hidden = false;
    $("span", told).textContent = `Line ${lines(json).indexOf(line) + 1}: ${line.dataset.path || "the whole"}`;
    $("[data-json-path]", told).dataset.copy = line.dataset.path;
    $("[data-json-value]", told).dataset.copy = valueOf(line);
  };

  const find = (input) => {
    const wanted = input.value.trim().toLowerCase();
    const json = $(".sd-json", input.closest(".sd-message-body"));
    const found = lines(json).filter((line) => {
      const is = wanted !== "" && line.textContent.toLowerCase().includes(wanted);
      line.classList.toggle("sd-found", is);
      return is;
    });
    $("[data-json-count]").textContent = wanted ? `${found.length} line${found.length === 1 ? "" : "s"}` : "";
    found[0]?.scrollIntoView({ block: "nearest" });
  };

  const prepare = () => {
    mark();
    const tools = $("[data-json-tools]");
    if (tools) tools.hidden = false;
    for (const line of all(".sd-json > [data-path]")) {
      if (line.nextElementSibling && level(line.nextElementSibling) > level(line)) line.dataset.folds = "";
    }
  };

  document.addEventListener("click", (event) => {
    const line = event.target.closest?.(".sd-json > [data-path]");
    if (!line || !getSelection().isCollapsed) return;
    if ("folds" in line.dataset) fold(line);
    choose(line);
  });
  document.addEventListener("keydown", (event) => {
    const json = event.target.closest?.(".sd-json");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!json || !(step || event.key === "Enter")) return;
    const seen = lines(json).filter((line) => !line.hidden);
    const current = seen.indexOf($(".sd-current", json));
    event.preventDefault();
    if (step) choose(seen.at(Math.min(Math.max(current + step, 0), seen.length - 1)));
    else if (current >= 0 && "folds" in seen[current].dataset) fold(seen[current]);
    $(".sd-current", json)?.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("input", (event) => event.target.matches?.("[data-json-find]") && find(event.target));
  document.addEventListener("htmx:afterSettle", prepare);
  prepare();
})();
