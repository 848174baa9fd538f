// Counts down the remaining seconds that the page contained; pauses while the tab is hidden.
"use strict";
(() => {
  const answer = performance.getEntriesByType("navigation")[0];
  const answeredAt = answer ? answer.responseStart : performance.now(); // monotonic, unlike the wall clock
  let timer = null;

  // Formats as the server does: in the largest unit with a value of at least 2.
  function formatDuration(seconds, units) {
    const sizes = units.split("|").map((unit) => [parseInt(unit, 10), unit.slice(unit.indexOf(" ") + 1)]);
    const [size, text] = sizes.find(([size]) => seconds >= 2 * size) || sizes[sizes.length - 1];
    return text.replace("%d", () => (size === 1 ? Math.floor(seconds) : Math.round(seconds / size)));
  }

  function show() {
    const passed = (performance.now() - answeredAt) / 1000;
    for (const span of document.querySelectorAll(".resourcepool-left[data-left]")) {
      const left = Number(span.dataset.left) - passed;
      const isOver = left <= 0;
      const duration = formatDuration(Math.max(0, left), span.dataset.units);
      const text = isOver ? span.dataset.over : span.dataset.text.replace("%s", () => duration);
      if (span.textContent !== text) span.textContent = text;
      span.classList.toggle("resourcepool-over", isOver);
    }
  }

  function restart() {
    clearInterval(timer);
    if (document.hidden) return;
    show();
    timer = setInterval(show, 1000);
  }

  document.addEventListener("visibilitychange", restart);
  document.addEventListener("DOMContentLoaded", restart);
  if (document.readyState !== "loading") restart();
})();

// On a narrow screen filters are folded, and each cell of a list has its heading.
(() => {
  document.addEventListener("DOMContentLoaded", () => {
    const headings = [...document.querySelectorAll("#result_list thead th")].map((th) => th.textContent.trim());
    for (const row of document.querySelectorAll("#result_list tbody tr")) {
      [...row.children].forEach((cell, at) => {
        if (headings[at] && cell.tagName === "TD") cell.dataset.label = headings[at];
      });
    }
    if (!window.matchMedia("(max-width: 767px)").matches) return;
    for (const details of document.querySelectorAll("details[data-fold]")) details.open = false;
  });
})();
