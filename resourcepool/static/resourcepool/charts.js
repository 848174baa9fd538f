// Draws the charts of the dashboard with uPlot: values at a moment by pointer or arrow keys, and as a table.
"use strict";
(() => {
  const live = document.getElementById("rp-live");
  const refreshEvery = 60000; // milliseconds: there is a sample a minute
  const height = 96;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--rp-" + name).trim();
  }

  function element(name, attributes, text) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function format(value) {
    return value === null || value === undefined ? "-" : value.toLocaleString(undefined, { maximumFractionDigits: 1 });
  }

  function clock(seconds, zone) {
    return uPlot.tzDate(new Date(seconds * 1000), zone).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  }

  function options(chart, zone, width) {
    const grey = getComputedStyle(live).color;
    const axis = { stroke: grey, grid: { stroke: "#8884", width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const bars = uPlot.paths.bars({ size: [0.9] });
    const steps = uPlot.paths.stepped({ align: 1 });
    return {
      width,
      height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { y: { range: (u, low, high) => [0, Math.max(1, high)] } },
      axes: [
        { ...axis, size: 24, values: (u, ticks) => ticks.map((tick) => clock(tick, zone)) },
        { ...axis, size: 52, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6], values: (u, ticks) => ticks.map((tick) => tick.toLocaleString(undefined, { notation: "compact" })) },
      ],
      series: [
        { label: live.dataset.time, value: (u, at) => (at === null ? "-" : clock(at, zone)) },
        ...chart.series.map((one) => ({
          label: one.name,
          stroke: colour(one.colour),
          fill: one.style === "line" ? undefined : colour(one.colour) + "99",
          paths: one.style === "bars" ? bars : steps,
          points: { show: false },
          value: (u, value) => format(value),
        })),
      ],
    };
  }

  // Arrow keys, Home and End move the moment whose values the legend shows.
  function byKeyboard(plot, figure, times) {
    let at = times.length - 1;
    figure.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: times.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      at = Math.max(0, Math.min(times.length - 1, moves[event.key]));
      plot.setCursor({ left: plot.valToPos(times[at], "x"), top: 0 });
    });
  }

  function table(chart, times, zone) {
    const details = element("details", {});
    details.append(element("summary", {}, live.dataset.table));
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const rows = element("table", { class: "rp-values" });
      const head = rows.createTHead().insertRow();
      for (const name of [live.dataset.time, ...chart.series.map((one) => one.name)]) head.append(element("th", { scope: "col" }, name));
      const body = rows.createTBody();
      for (let index = times.length - 1; index >= 0; index--) {
        const row = body.insertRow();
        row.append(element("th", { scope: "row" }, uPlot.tzDate(new Date(times[index] * 1000), zone).toLocaleString()));
        for (const one of chart.series) row.insertCell().textContent = format(one.values[index]);
      }
      details.append(rows);
    });
    return details;
  }

  function draw(place, data) {
    place.replaceChildren();
    for (const chart of data.charts) {
      const figure = element("figure", { class: "rp-chart", tabindex: "0", role: "group", "aria-label": `${chart.title}. ${chart.text}` });
      figure.append(element("figcaption", {}, chart.title));
      place.append(figure);
      const box = element("div", {});
      figure.append(box, table(chart, data.times, data.zone));
      const values = [data.times, ...chart.series.map((one) => one.values)];
      const plot = new uPlot(options(chart, data.zone, Math.max(200, figure.clientWidth)), values, box);
      byKeyboard(plot, figure, data.times);
      new ResizeObserver(() => figure.clientWidth && plot.setSize({ width: figure.clientWidth, height })).observe(figure);
    }
    if (!data.charts.length) place.append(element("p", { class: "rp-quiet" }, live.dataset.nothing));
  }

  async function load(place) {
    place.drawnAt = performance.now();
    try {
      const answer = await fetch(place.dataset.charts, { redirect: "error" });
      if (answer.ok) draw(place, await answer.json());
    } catch {
      // The page says that it gets no answer.
    }
  }

  // Charts that nobody sees are not fetched; one that somebody reads is not redrawn.
  function update() {
    for (const place of live.querySelectorAll("[data-charts]")) {
      const isOld = place.drawnAt === undefined || performance.now() - place.drawnAt > refreshEvery;
      const isRead = place.contains(document.activeElement) || place.matches(":hover") || place.querySelector("details[open]");
      if (isOld && place.offsetParent !== null && !(isRead && place.drawnAt !== undefined)) load(place);
    }
  }

  document.addEventListener("rp-shown", update);
  live.addEventListener("toggle", update, true);
  update();
})();
