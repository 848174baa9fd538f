// Fetches the live part of the dashboard every few seconds, and shows when it gets no answer.
// Only the parts that changed are replaced, and none in which somebody selects text or types.
"use strict";
(() => {
  const live = document.getElementById("rp-live");
  const state = document.getElementById("rp-state");
  const every = Number(live.dataset.every) * 1000;
  const timeout = 10000; // milliseconds
  const shown = new Map(); // the text of each part, as the server sent it
  let timer = null;
  let isFetching = false;
  let lastAnswer = new Date();

  function setState(kind, text) {
    state.className = "rp-state rp-is-" + kind;
    live.classList.toggle("rp-is-old", kind === "lost");
    if (state.textContent !== text) state.textContent = text; // avoids repeated announcements by screen readers
  }

  // What a user has folded or unfolded stays so, also on the next visit of this tab.
  function restoreFolds(part) {
    for (const details of part.querySelectorAll("details[id]")) {
      const kept = sessionStorage.getItem("rp-fold-" + details.id);
      if (kept !== null) details.open = kept === "open";
    }
  }

  function isInUse(part) {
    const selection = getSelection();
    const selects = !selection.isCollapsed && part.contains(selection.anchorNode);
    return selects || (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea"));
  }

  function replace(old, part) {
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    const charts = [...old.querySelectorAll("[data-charts]")];
    old.replaceWith(part);
    restoreFolds(part);
    for (const chart of charts) {
      const place = document.getElementById(chart.id);
      if (place && place.dataset.charts === chart.dataset.charts) place.replaceWith(chart); // it refreshes itself
    }
    const element = focused && document.getElementById(focused);
    if (element) element.focus({ preventScroll: true });
  }

  function show(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const parts = [...template.content.querySelectorAll("[data-part]")];
    const ids = new Set(parts.map((part) => part.id));
    for (const old of live.querySelectorAll("[data-part]")) if (!ids.has(old.id)) old.remove();
    let previous = null;
    for (const part of parts) {
      const text = part.outerHTML;
      const old = document.getElementById(part.id);
      if (!old) {
        if (previous) previous.after(part);
        else live.prepend(part);
        restoreFolds(part);
      } else if (shown.get(part.id) !== text && !isInUse(old)) replace(old, part);
      else if (shown.get(part.id) !== text) shown.delete(part.id); // it is replaced later
      if (document.getElementById(part.id) === part) shown.set(part.id, text);
      previous = document.getElementById(part.id);
    }
    document.dispatchEvent(new Event("rp-shown"));
  }

  async function refresh() {
    clearTimeout(timer);
    if (isFetching || document.hidden) return;
    isFetching = true;
    const startedAt = performance.now();
    const control = new AbortController();
    const limit = setTimeout(() => control.abort(), timeout);
    let pause = every;
    try {
      const answer = await fetch(live.dataset.url, { signal: control.signal, redirect: "error" });
      const text = await answer.text();
      if (answer.status === 403) {
        setState("lost", state.dataset.out);
      } else if (!answer.ok) {
        setState("lost", `${state.dataset.lost} ${lastAnswer.toLocaleTimeString()}. ${answer.status === 503 ? text : ""}`);
      } else {
        show(text);
        lastAnswer = new Date();
        setState("live", state.dataset.live);
        // Slow answers make the page refresh less often.
        pause = Math.max(every, 10 * (performance.now() - startedAt));
      }
    } catch {
      setState("lost", `${state.dataset.lost} ${lastAnswer.toLocaleTimeString()}.`);
    } finally {
      clearTimeout(limit);
      isFetching = false;
      if (!document.hidden) timer = setTimeout(refresh, pause);
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      setState("paused", state.dataset.paused);
    } else {
      refresh();
    }
  });
  // A click, not "toggle", which restoreFolds causes, too.
  live.addEventListener("click", (event) => {
    const summary = event.target.closest("summary");
    const details = summary && summary.parentElement;
    if (details && details.id) sessionStorage.setItem("rp-fold-" + details.id, details.open ? "folded" : "open");
  });
  for (const part of live.querySelectorAll("[data-part]")) shown.set(part.id, part.outerHTML);
  restoreFolds(live);
  setState("live", state.dataset.live);
  timer = setTimeout(refresh, every);
})();
