// Fetches the live part of the dashboard every few seconds, and shows when it gets no answer.
"use strict";
(() => {
  const live = document.getElementById("rp-live");
  const state = document.getElementById("rp-state");
  const every = Number(live.dataset.every) * 1000;
  const timeout = 10000; // milliseconds
  let timer = null;
  let isFetching = false;
  let lastAnswer = new Date();

  function setState(kind, text) {
    state.className = "rp-state rp-is-" + kind;
    live.classList.toggle("rp-is-old", kind === "lost");
    if (state.textContent !== text) state.textContent = text; // avoids repeated announcements by screen readers
  }

  function show(html) {
    const focused = document.activeElement && live.contains(document.activeElement) && document.activeElement.id;
    live.innerHTML = html;
    const element = focused && document.getElementById(focused);
    if (element) element.focus({ preventScroll: true });
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
  setState("live", state.dataset.live);
  timer = setTimeout(refresh, every);
})();
