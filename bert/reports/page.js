"use strict";
// Has Vega draw each chart: at once where it can be seen, else when the fold that hides it opens. Expressions are
// interpreted (ast), so that the page needs no right to evaluate code.
const { config, specs } = JSON.parse(document.getElementById("charts").textContent);
const views = {};  // number of a chart -> Vega's view

async function draw(plot) {
  if (plot.dataset.drawn) return;
  plot.dataset.drawn = "yes";
  const number = plot.dataset.chart;
  try {
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config, tooltip: { theme: "page" } };
    views[number] = (await vegaEmbed(plot, specs[number], options)).view;
  } catch (error) {
    plot.textContent = `This chart cannot be drawn: ${error.message}`;
    plot.classList.add("warning");
  }
}

function drawAll(inside) {
  return Promise.all([...inside.querySelectorAll(".plot")].filter((plot) => !plot.closest("details:not([open])")).map(draw));
}

document.querySelectorAll("details").forEach((fold) => fold.addEventListener("toggle", () => fold.open && drawAll(fold)));
const ready = drawAll(document);
