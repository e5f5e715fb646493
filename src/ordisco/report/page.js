"use strict";
// Values under the pointer, a line told apart by its name, sliders, the filter of a list, and a served page that asks for itself again.
function charts(root) {
  for (const chart of root.querySelectorAll(".chart")) {
    const data = JSON.parse(chart.dataset.values), svg = chart.querySelector("svg");
    const tip = chart.querySelector(".tip"), guide = chart.querySelector(".guide");
    const hide = () => { tip.hidden = true; guide.setAttribute("hidden", ""); };
    const show = (event) => {
      const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) * data.width / box.width;
      let near = 0;
      data.x.forEach((x, place) => { if (Math.abs(x - at) < Math.abs(data.x[near] - at)) near = place; });
      const table = document.createElement("table");
      const head = table.insertRow().insertCell();
      head.colSpan = 3; head.textContent = data.label + " " + (near + 1); head.className = "words";
      const rows = data.series.filter((one) => near < one.values.length);
      rows.sort((a, b) => parseFloat(b.values[near]) - parseFloat(a.values[near]));
      for (const one of rows) {
        const row = table.insertRow(), name = row.insertCell(), dot = document.createElement("i");
        dot.className = "series"; dot.style.setProperty("--c", one.colour); name.className = "words"; name.append(dot, one.name);
        row.insertCell().textContent = one.values[near] + " " + data.unit;
        const printed = one.points[near + 1];
        row.insertCell().textContent = printed === undefined ? "" : "paper " + printed;
      }
      tip.replaceChildren(table); tip.hidden = false;
      guide.removeAttribute("hidden"); guide.setAttribute("x1", data.x[near]); guide.setAttribute("x2", data.x[near]);
      const left = data.x[near] * box.width / data.width + 14;
      tip.style.left = Math.max(0, left + tip.offsetWidth > box.width ? left - tip.offsetWidth - 28 : left) + "px";
    };
    svg.addEventListener("pointermove", show); svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
    const lines = svg.querySelectorAll("g[data-line]");
    for (const item of chart.querySelectorAll(".legend li[data-line]")) {
      const light = (on) => {
        chart.classList.toggle("focus", on);
        for (const line of lines) {
          const mine = line.dataset.line === item.dataset.line;
          line.classList.toggle("dim", on && !mine); line.classList.toggle("lit", on && mine);
        }
      };
      item.addEventListener("pointerenter", () => light(true)); item.addEventListener("pointerleave", () => light(false));
    }
  }
}
function sliders(root) {
  for (const figure of root.querySelectorAll(".frames")) {
    const frames = figure.querySelectorAll(".frame"), input = figure.querySelector("input");
    input.addEventListener("input", () => frames.forEach((frame, place) => { frame.hidden = place + 1 !== Number(input.value); }));
  }
}
function filters(root) {
  const input = root.querySelector("#filter");
  if (!input) return;
  const rows = input.closest("section").querySelectorAll("tbody tr");
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.dataset.words.includes(word));
  };
  input.addEventListener("input", apply); apply();
}
function ready(root) { charts(root); sliders(root); filters(root); }
async function again() {
  const main = document.querySelector("main");
  if (document.hidden || main.querySelector(".tip:not([hidden])")) return;
  try {
    const answer = await fetch(location.pathname, { cache: "no-cache" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.querySelector("main");
    if (next.innerHTML === again.before) return;
    again.before = next.innerHTML;
    const words = main.querySelector("#filter")?.value, open = [...main.querySelectorAll("details")].map((part) => part.open);
    const places = [...main.querySelectorAll(".frames input")].map((input) => input.value === input.max ? null : input.value);
    const focused = document.activeElement?.id === "filter";
    document.querySelector("header").replaceWith(fresh.querySelector("header"));
    main.replaceWith(next);
    if (words !== undefined && next.querySelector("#filter")) next.querySelector("#filter").value = words;
    next.querySelectorAll("details").forEach((part, place) => { part.open = Boolean(open[place]); });
    ready(next);
    next.querySelectorAll(".frames input").forEach((input, place) => {
      if (places[place]) { input.value = places[place]; input.dispatchEvent(new Event("input")); }
    });
    if (focused) next.querySelector("#filter")?.focus();
  } catch (error) { /* the server has ended; the page stays */ }
}
ready(document);
if (document.body.dataset.refresh) {
  again.before = document.querySelector("main").innerHTML;
  setInterval(again, 1000 * Number(document.body.dataset.refresh));
}
