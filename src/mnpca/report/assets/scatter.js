// The two linked scatters: components to choose, groups to hide, drag to zoom.
function scores() {
  const data = DATA.scores, labels = data.labels;
  const count = data.names.length;
  const hidden = new Set();
  let axes = [0, 1], hit = -1;
  const range = labels && labels.kind === "values" ? span(labels.values, 0) : null;
  const color = (i) => !labels ? "var(--plus)" : !range ? groupColor(labels.code[i]) : labels.values[i] === null
    ? "var(--bar)" : scaleColor((labels.values[i] - range[0]) / (range[1] - range[0]));
  const rowName = (i) => data.named ? data.names[i] : `row ${data.names[i]}`;
  const labelText = (i) => !labels ? null : range ? (labels.values[i] === null ? "no value" : number(labels.values[i], 5)) : labels.names[labels.code[i]];

  function scatter(box, columns) {
    if (!columns.length) {
      box.append(make("div", { class: "empty" }, "No component stands clearly above the noise, so there are no scores."));
      return null;
    }
    let zoom = null, points = [];
    const column = (axis) => columns[axes[axis]] || (axis && columns.length === 1 ? data.names.map((_, i) => i) : columns[Math.min(axis, columns.length - 1)]);
    const redraw = drawn(box, (width) => {
      const xs = column(0), ys = column(1), height = Math.min(Math.max(width * 0.78, 260), 460);
      const [xSpan, ySpan] = zoom || [span(xs), span(ys)];
      const yTitle = columns.length === 1 ? "position" : `component ${axes[1] + 1}`;
      const p = plane(box, width, height, xSpan, ySpan, { xTitle: `component ${axes[0] + 1}`, yTitle, label: `Scores under ${box.id === "scatter-pca" ? "PCA" : "MN-PCA"}: component ${axes[0] + 1} across, ${yTitle} up` });
      const clip = "clip-" + box.id;
      const c = shape("clipPath", { id: clip }, p.svg);
      shape("rect", { x: p.margin.left, y: p.margin.top, width: p.inner.w, height: p.inner.h }, c);
      p.marks.setAttribute("clip-path", `url(#${clip})`);
      const radius = count > 1500 ? 2.6 : count > 400 ? 3.4 : 4.4;
      points = data.names.map((_, i) => {
        const dot = shape("circle", { class: "point", cx: p.x(xs[i]).toFixed(1), cy: p.y(ys[i]).toFixed(1), r: radius, fill: color(i), "fill-opacity": 0.85, "data-i": i });
        if (labels && !range && hidden.has(labels.code[i])) dot.setAttribute("display", "none");
        if (i === hit) dot.classList.add("hit");
        return dot;
      });
      p.marks.append(...points);
      brush(p, xSpan, ySpan);
    });

    function brush(p, xSpan, ySpan) {
      let start = null, rectangle = null;
      const place = (e) => { const b = p.svg.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };
      const value = ([px, py]) => [
        xSpan[0] + (px - p.margin.left) / p.inner.w * (xSpan[1] - xSpan[0]),
        ySpan[0] + (p.margin.top + p.inner.h - py) / p.inner.h * (ySpan[1] - ySpan[0])];
      p.svg.addEventListener("pointerdown", (e) => { if (e.pointerType === "mouse") { start = place(e); e.preventDefault(); } });
      p.svg.addEventListener("pointermove", (e) => {
        if (!start) {
          const i = e.target.dataset ? e.target.dataset.i : undefined;
          if (i === undefined) { find(-1); hideTip(); } else { find(+i); showTip(e, [rowName(+i), labelText(+i)].filter((t) => t !== null)); }
          return;
        }
        const [x, y] = place(e);
        rectangle = rectangle || shape("rect", { class: "brush" }, p.svg);
        for (const [k, v] of Object.entries({ x: Math.min(x, start[0]), y: Math.min(y, start[1]), width: Math.abs(x - start[0]), height: Math.abs(y - start[1]) })) rectangle.setAttribute(k, v);
      });
      const end = (e) => {
        if (!start) return;
        const from = value(start), to = value(place(e)), wide = rectangle && rectangle.getAttribute("width") > 8;
        start = null;
        if (rectangle) { rectangle.remove(); rectangle = null; }
        if (wide) {
          zoom = [[from[0], to[0]].sort((a, b) => a - b), [from[1], to[1]].sort((a, b) => a - b)];
          redraw();
        }
      };
      p.svg.addEventListener("pointerup", end);
      p.svg.addEventListener("pointerleave", (e) => { end(e); find(-1); hideTip(); });
      p.svg.addEventListener("dblclick", () => { zoom = null; redraw(); });
    }
    return { redraw, points: () => points, reset: () => { zoom = null; redraw(); } };
  }

  const panels = [scatter(byId("scatter-pca"), data.pca), scatter(byId("scatter-mnpca"), data.mnpca)].filter(Boolean);

  function find(i) {
    if (i === hit) return;
    for (const panel of panels) {
      const points = panel.points();
      if (hit >= 0) points[hit].classList.remove("hit");
      if (i >= 0) { points[i].classList.add("hit"); points[i].parentNode.append(points[i]); }
    }
    hit = i;
  }

  const controls = byId("score-controls");
  const components = Math.max(data.mnpca.length, data.pca.length);
  if (components > 2) {
    ["Across", "Up"].forEach((title, axis) => {
      const select = make("select", { "aria-label": title });
      for (let k = 0; k < components; k++) select.append(make("option", { value: k }, `component ${k + 1}`));
      select.value = axes[axis];
      select.addEventListener("change", () => { axes[axis] = +select.value; panels.forEach((panel) => panel.reset()); });
      controls.append(make("label", {}, title, select));
    });
  }
  const search = make("input", { type: "search", placeholder: "a row name", "aria-label": "Find a row", id: "score-search" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    const match = (i) => wanted && rowName(i).toLowerCase().includes(wanted);
    for (const panel of panels) panel.points().forEach((dot, i) => dot.classList.toggle("dim", Boolean(wanted) && !match(i)));
  });
  controls.append(make("label", { class: "search" }, "Find", search));
  if (data.n_rows > count) controls.append(make("span", {}, `${count.toLocaleString("en")} of ${data.n_rows.toLocaleString("en")} rows shown, at equal distances`));

  const legend = byId("score-legend");
  if (labels && range) {
    const bar = make("div", { class: "scale" });
    bar.style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(scaleColor).join(",")})`;
    legend.append(`${DATA.label_name || "label"}: ${number(range[0])}`, bar, number(range[1]) + (labels.values.includes(null) ? "; gray: no value" : ""));
  } else if (labels) {
    labels.names.forEach((name, code) => {
      const button = chip("button", name, groupColor(code), { type: "button", "aria-pressed": "true" });
      button.addEventListener("click", () => {
        if (hidden.has(code)) hidden.delete(code); else hidden.add(code);
        button.setAttribute("aria-pressed", String(!hidden.has(code)));
        panels.forEach((panel) => panel.redraw());
      });
      legend.append(button);
    });
  }
  loadings();
}

function loadings() {
  const tables = byId("loading-tables");
  if (!DATA.loadings.components.length) { byId("loadings").remove(); return; }
  DATA.loadings.components.forEach((rows, k) => {
    const body = make("tbody");
    for (const [name, ...values] of rows) body.append(make("tr", {}, make("td", {}, named(name, 40)), ...values.map((value) => make("td", { class: "num" }, number(value)))));
    const titles = ["loading", "P(zero)"].slice(0, rows[0].length - 1);
    const head = make("thead", {}, make("tr", {}, make("th", {}, `Component ${k + 1}`), ...titles.map((title) => make("th", { class: "num" }, title))));
    tables.append(make("table", {}, head, body));
  });
}
