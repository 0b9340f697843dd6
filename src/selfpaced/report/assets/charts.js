// Figures (Vega-Lite), and light and dark.
const data = JSON.parse(document.getElementById("data").textContent);
const views = new Map();

function colours() {
  const css = getComputedStyle(document.documentElement);
  const read = (name) => css.getPropertyValue(name).trim();
  const [ink, quiet, line, accent, second] = ["--ink", "--quiet", "--line", "--accent", "--second"].map(read);
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent", font,
    view: { stroke: "transparent" },
    axis: { labelColor: quiet, titleColor: quiet, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
    axisX: { grid: false },
    legend: { labelColor: quiet, titleColor: quiet, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
    bar: { color: accent }, area: { color: accent }, line: { color: accent }, point: { color: accent }, rule: { color: accent },
    range: { category: [accent, second, "#4aa37c", "#a06cc4", "#c9a227", "#8a9099"], heatmap: [read("--low"), read("--high")], ramp: [read("--low"), read("--high")] },
  };
}

async function draw() {
  const config = colours();
  for (const [id, spec] of Object.entries(data.charts)) {
    views.get(id)?.finalize();
    const embedded = await window.vegaEmbed(document.getElementById(id), spec, {
      config, ast: true, renderer: "svg", actions: false, mode: "vega-lite", tooltip: { theme: "custom" },
    });
    views.set(id, embedded);
  }
  document.documentElement.dataset.drawn = "yes";
}

// One drawing after the other: a second one must not begin in a figure that the first has not finished.
let drawing = Promise.resolve();
function redraw() {
  drawing = drawing.then(draw);
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  redraw();
});
dark.addEventListener("change", redraw);
redraw();
