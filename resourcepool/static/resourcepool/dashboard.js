// Asks for the changing part of the dashboard every few seconds, and says so when it is not answered.
"use strict";
(() => {
  const live = document.getElementById("rp-live");
  const state = document.getElementById("rp-state");
  const every = Number(live.dataset.every) * 1000;
  const patience = 10000; // milliseconds until an answer counts as missing
  let timer = null;
  let asking = false;
  let lastAnswer = new Date();

  function say(kind, text) {
    state.className = "rp-state rp-is-" + kind;
    live.classList.toggle("rp-is-old", kind === "lost");
    if (state.textContent !== text) state.textContent = text; // or a screen reader would repeat it
  }

  function show(html) {
    const focused = document.activeElement && live.contains(document.activeElement) && document.activeElement.id;
    live.innerHTML = html;
    const again = focused && document.getElementById(focused);
    if (again) again.focus({ preventScroll: true });
  }

  async function ask() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    const began = performance.now();
    const control = new AbortController();
    const limit = setTimeout(() => control.abort(), patience);
    let pause = every;
    try {
      const answer = await fetch(live.dataset.url, { signal: control.signal, redirect: "error" });
      const text = await answer.text();
      if (answer.status === 403) {
        say("lost", state.dataset.out);
      } else if (!answer.ok) {
        say("lost", `${state.dataset.lost} ${lastAnswer.toLocaleTimeString()}. ${answer.status === 503 ? text : ""}`);
      } else {
        show(text);
        lastAnswer = new Date();
        say("live", state.dataset.live);
        // A database that is busy is asked less often.
        pause = Math.max(every, 10 * (performance.now() - began));
      }
    } catch {
      say("lost", `${state.dataset.lost} ${lastAnswer.toLocaleTimeString()}.`);
    } finally {
      clearTimeout(limit);
      asking = false;
      if (!document.hidden) timer = setTimeout(ask, pause);
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      say("paused", state.dataset.paused);
    } else {
      ask();
    }
  });
  say("live", state.dataset.live);
  timer = setTimeout(ask, every);
})();
