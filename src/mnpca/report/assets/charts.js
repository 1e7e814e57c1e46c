// Axes, lines and histograms.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= high / step + 1e-9; i++) marks.push(i * step);
  return marks;
}

function span(values, pad = 0.05) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null && isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
  if (!isFinite(low)) return [0, 1];
  if (low === high) { const d = Math.abs(low) || 1; return [low - d / 2, high + d / 2]; }
  return [low - pad * (high - low), high + pad * (high - low)];
}

// A frame with axes; x and y turn values into pixels.
function plane(box, width, height, xSpan, ySpan, options = {}) {
  const yTicks = ticks(...ySpan, height / 55), yText = yTicks.map((v) => number(v, options.yDigits || 3));
  const widest = Math.max(...yText.map((t) => t.length), 3);
  const margin = { left: options.noY ? 6 : 7 * widest + 28, right: 10, top: 8, bottom: options.xTitle ? 40 : 26 };
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  const inner = { w: width - margin.left - margin.right, h: height - margin.top - margin.bottom };
  const x = (v) => margin.left + (v - xSpan[0]) / (xSpan[1] - xSpan[0]) * inner.w;
  const y = (v) => margin.top + inner.h - (v - ySpan[0]) / (ySpan[1] - ySpan[0]) * inner.h;
  const grid = shape("g", { class: "grid" }, svg);
  const axis = shape("g", { class: "axis" }, svg);
  for (const v of options.xTicks || ticks(...xSpan, width / 90)) {
    shape("line", { x1: x(v), x2: x(v), y1: margin.top, y2: margin.top + inner.h }, grid);
    shape("text", { x: x(v), y: margin.top + inner.h + 16, "text-anchor": "middle" }, axis).textContent = number(v);
  }
  yTicks.forEach((v, i) => {
    shape("line", { x1: margin.left, x2: margin.left + inner.w, y1: y(v), y2: y(v) }, grid);
    if (!options.noY) shape("text", { x: margin.left - 7, y: y(v) + 4, "text-anchor": "end" }, axis).textContent = yText[i];
  });
  if (options.xTitle) shape("text", { x: margin.left + inner.w / 2, y: height - 5, "text-anchor": "middle" }, svg).textContent = options.xTitle;
  if (options.yTitle) {
    shape("text", { transform: `translate(12 ${margin.top + inner.h / 2}) rotate(-90)`, "text-anchor": "middle" }, svg).textContent = options.yTitle;
  }
  shape("rect", { class: "frame", x: margin.left, y: margin.top, width: inner.w, height: inner.h }, svg);
  const marks = shape("g", { class: "marks" }, svg);
  box.replaceChildren(svg);
  return { svg, marks, x, y, margin, inner };
}

const path = (xs, ys, x, y) => xs.map((v, i) => `${i ? "L" : "M"}${x(v).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("");

function histogramChart(box, data, xTitle, label) {
  drawn(box, (width) => {
    const top = Math.max(...data.after, ...data.law, ...data.before.slice(1, -1)) * 1.06 || 1;
    const p = plane(box, width, 230, [data.bins[0], data.bins[data.bins.length - 1]], [0, top], { xTitle, noY: true, label });
    const bars = (heights, fill, opacity) => heights.forEach((h, i) => {
      const left = p.x(data.bins[i]), high = p.y(Math.min(h, top));
      if (h > 0) shape("rect", { class: "bar", x: left, y: high, width: Math.max(p.x(data.bins[i + 1]) - left - 0.6, 0.4), height: p.y(0) - high, fill, "fill-opacity": opacity }, p.marks);
    });
    bars(data.before, "var(--bar)", 0.6);
    bars(data.after, "var(--plus)", 0.6);
    shape("path", { class: "curve", stroke: "var(--ink)", d: path(data.at, data.law, p.x, p.y) }, p.marks);
  });
}

function screeChart(box, data) {
  drawn(box, (width) => {
    const count = data.generalized.length;
    const xs = Array.from({ length: count }, (_, i) => i + 1);
    const high = Math.max(...data.generalized, ...data.plain, 1.2) * 1.08;
    const step = Math.ceil(count / (width / 45));
    const p = plane(box, width, 260, [0.5, count + 0.5], [0, high], { xTitle: "component", yTitle: "singular value / noise edge", xTicks: xs.filter((v) => (v - 1) % step === 0), label: "Singular values of the data and of the whitened data, over the noise edge" });
    shape("line", { x1: p.x(0.5), x2: p.x(count + 0.5), y1: p.y(1), y2: p.y(1), stroke: "var(--ink)", "stroke-dasharray": "5 4" }, p.marks);
    for (const [values, color, name] of [[data.plain, "var(--bar)", "PCA"], [data.generalized, "var(--plus)", "whitened"]]) {
      shape("path", { class: "curve", stroke: color, d: path(xs, values, p.x, p.y) }, p.marks);
      values.forEach((v, i) => {
        const kept = name === "whitened" && i < data.kept;
        const dot = shape("circle", { class: "point", cx: p.x(i + 1), cy: p.y(v), r: kept ? 6 : 3.6, fill: kept ? "var(--minus)" : color }, p.marks);
        dot.addEventListener("mousemove", (e) => showTip(e, [`component ${i + 1}, ${name}`, `${number(v)} × noise edge`, kept ? "kept" : "not kept"]));
        dot.addEventListener("mouseleave", hideTip);
      });
    }
  });
  const key = [["whitened data", "var(--plus)"], ["PCA", "var(--bar)"]];
  if (data.kept) key.unshift(["whitened data, kept", "var(--minus)"]);
  box.after(make("div", { class: "legend" }, ...key.map((entry) => chip("span", ...entry))));
}

function convergenceChart(box, data) {
  if (!data.objective.length) { box.append(make("div", { class: "empty" }, "This estimator has a closed form: there is no history.")); return; }
  drawn(box, (width) => {
    const xs = data.objective.map((_, i) => i + 1);
    const p = plane(box, width, 230, span(xs, 0.03), span(data.objective), { xTitle: "iteration", yTitle: "objective", yDigits: 6, xTicks: ticks(1, xs.length, width / 90).filter((v) => v >= 1 && Number.isInteger(v)), label: "Objective after every iteration" });
    shape("path", { class: "curve", stroke: "var(--plus)", d: path(xs, data.objective, p.x, p.y) }, p.marks);
    data.objective.forEach((v, i) => {
      const dot = shape("circle", { class: "point", cx: p.x(i + 1), cy: p.y(v), r: 4, fill: "var(--plus)" }, p.marks);
      dot.addEventListener("mousemove", (e) => showTip(e, [`iteration ${i + 1}`, `objective ${number(v, 7)}`]));
      dot.addEventListener("mouseleave", hideTip);
    });
  });
}
