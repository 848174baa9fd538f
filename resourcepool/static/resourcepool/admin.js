// Counts down what runs out, from what the server said was left when it answered; rests while nobody looks.
"use strict";
(() => {
  const answer = performance.getEntriesByType("navigation")[0];
  const answeredAt = answer ? answer.responseStart : performance.now(); // not the wall clock: it may be set
  let timer = null;

  // As the server spells it: in the largest unit of which there are two at least.
  function spell(seconds, units) {
    const sizes = units.split("|").map((unit) => [parseInt(unit, 10), unit.slice(unit.indexOf(" ") + 1)]);
    const [size, text] = sizes.find(([size]) => seconds >= 2 * size) || sizes[sizes.length - 1];
    return text.replace("%d", () => (size === 1 ? Math.floor(seconds) : Math.round(seconds / size)));
  }

  function show() {
    const passed = (performance.now() - answeredAt) / 1000;
    for (const span of document.querySelectorAll(".resourcepool-left[data-left]")) {
      const left = Number(span.dataset.left) - passed;
      const isOver = left <= 0;
      const spelled = spell(Math.max(0, left), span.dataset.units);
      const text = isOver ? span.dataset.over : span.dataset.text.replace("%s", () => spelled);
      if (span.textContent !== text) span.textContent = text;
      span.classList.toggle("resourcepool-over", isOver);
    }
  }

  function look() {
    clearInterval(timer);
    if (document.hidden) return;
    show();
    timer = setInterval(show, 1000);
  }

  document.addEventListener("visibilitychange", look);
  document.addEventListener("DOMContentLoaded", look);
  if (document.readyState !== "loading") look();
})();
