// One noise network: drawing of the surest edges, heat map, search, table.
function network(section) {
  const side = section.dataset.side, data = DATA.networks[side];
  if (!data.n_edges) return;
  const drawing = data.drawing, [first, second, value] = data.edges, rate = data.q;
  const item = side === "rows" ? "row" : "column";
  const nameOf = (i) => i >= data.names.length ? `${item} ${i}` : data.named ? data.names[i] : `${item} ${data.names[i]}`;
  const all = (n) => n.toLocaleString("en"), percent = (share) => share < 1e-3 ? share.toExponential(0) : `${number(100 * share, 2)}%`;
  const edges = (i) => `${all(data.degree[i] ?? 0)} edge${data.degree[i] === 1 ? "" : "s"}`;
  const fdr = data.fdr ?? 1, q = (e) => rate ? rate[e] : 0;
  let chosen = -1, shown = 0;
  const [graphBox, heatBox] = [section.querySelector(".graph"), section.querySelector(".heat")];
  const [graphHint, heatHint] = section.querySelectorAll(".hint");

  const partners = new Map();
  first.forEach((a, e) => {
    if (q(e) > fdr) return;
    const b = second[e];
    for (const [from, to] of [[a, b], [b, a]]) {
      if (!partners.has(from)) partners.set(from, []);
      partners.get(from).push([to, value[e]]);
    }
  });

  // The drawing. A line is wide where its edge is sure: q of 1e-6 or less; without tests, where it is strong.
  const thickness = (e) => (rate ? 0.7 + 3.5 * Math.min(-Math.log10(Math.max(rate[e], 1e-6)), 6) / 6 : 0.8 + 4 * Math.abs(value[e])).toFixed(2);
  const places = drawing.node.map((_, i) => [drawing.x[i], drawing.y[i]]);
  let zoom = 1, center = [0, 0];
  const drawGraph = drawn(graphBox, (width) => {
    const height = Math.min(Math.max(width * 0.8, 280), 520);
    const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Network among ${side}: ${shown} edges` });
    const pad = 26;
    const toX = (v) => width / 2 + (v - center[0]) * zoom * (width / 2 - pad);
    const toY = (v) => height / 2 + (v - center[1]) * zoom * (height / 2 - pad);
    const strength = new Map();
    const lines = [];
    for (let e = 0; e < shown; e++) {
      const [a, b] = [drawing.first[e], drawing.second[e]];
      const line = shape("line", { class: "edge", stroke: value[e] > 0 ? "var(--plus)" : "var(--minus)", "stroke-opacity": 0.65, "stroke-width": thickness(e), "stroke-dasharray": q(e) > fdr ? "4 5" : "none" }, svg);
      line.addEventListener("mousemove", (event) => showTip(event, [`${nameOf(drawing.node[a])} – ${nameOf(drawing.node[b])}`, `partial correlation ${number(value[e])}`].concat(rate ? [`q-value ${number(rate[e])}`] : [])));
      line.addEventListener("mouseleave", hideTip);
      lines.push([line, a, b]);
      for (const i of [a, b]) strength.set(i, (strength.get(i) || 0) + Math.abs(value[e]));
    }
    const near = new Set(chosen < 0 ? [] : lines.filter(([, a, b]) => drawing.node[a] === chosen || drawing.node[b] === chosen).flatMap(([, a, b]) => [a, b]));
    const order = [...strength.keys()].sort((a, b) => (drawing.node[b] === chosen) - (drawing.node[a] === chosen) || strength.get(b) - strength.get(a));
    const nodes = new Map(), texts = new Map();
    for (const i of order) {
      const s = strength.get(i);
      const dot = shape("circle", { class: "node", r: (Math.min(3.6 + 1.6 * Math.sqrt(s), 10) * (width < 500 ? 0.75 : 1)).toFixed(1), fill: groupColor(drawing.group[i]), "data-i": i }, svg);
      nodes.set(i, dot);
      if (chosen < 0 || near.has(i)) {
        texts.set(i, shape("text", { class: "name" }));
        texts.get(i).textContent = clipped(nameOf(drawing.node[i]), width < 500 ? 15 : 22);
      }
      if (drawing.node[i] === chosen) dot.classList.add("hit");
      if (chosen >= 0 && !near.has(i) && near.size) dot.classList.add("dim");
    }
    svg.append(...texts.values());
    if (chosen >= 0 && near.size) for (const [line, a, b] of lines) if (drawing.node[a] !== chosen && drawing.node[b] !== chosen) line.classList.add("dim");
    const move = () => {
      for (const [line, a, b] of lines) {
        line.setAttribute("x1", toX(places[a][0]).toFixed(1)); line.setAttribute("y1", toY(places[a][1]).toFixed(1));
        line.setAttribute("x2", toX(places[b][0]).toFixed(1)); line.setAttribute("y2", toY(places[b][1]).toFixed(1));
      }
      for (const [i, dot] of nodes) { dot.setAttribute("cx", toX(places[i][0]).toFixed(1)); dot.setAttribute("cy", toY(places[i][1]).toFixed(1)); }
      // A name stands right or left of its node, first where fewer of its edges go, and where it covers neither a node nor
      // another name; else it is left out.
      const lean = new Map();
      for (const [, a, b] of lines) for (const [i, j] of [[a, b], [b, a]]) {
        const offset = toX(places[j][0]) - toX(places[i][0]);
        lean.set(i, (lean.get(i) || 0) + offset / Math.hypot(offset, toY(places[j][1]) - toY(places[i][1]), 1));
      }
      const taken = [...nodes.keys()].map((i) => [toX(places[i][0]) - 4, toY(places[i][1]) - 4, toX(places[i][0]) + 4, toY(places[i][1]) + 4]);
      const free = (box) => box[0] >= 0 && box[2] <= width && taken.every((b) => box[2] < b[0] || box[0] > b[2] || box[3] < b[1] || box[1] > b[3]);
      for (const [i, text] of texts) {
        const x = toX(places[i][0]), y = toY(places[i][1]), long = 13 + text.getComputedTextLength();
        const boxes = [[x + 5, y - 6, x + long, y + 6], [x - long, y - 6, x - 5, y + 6]];
        const at = (lean.get(i) > 0 ? [1, 0] : [0, 1]).find((side) => free(boxes[side])) ?? -1;
        text.setAttribute("x", (x + (at === 1 ? -9 : 9)).toFixed(1)); text.setAttribute("y", (y + 4).toFixed(1));
        text.setAttribute("text-anchor", at === 1 ? "end" : "start");
        text.setAttribute("visibility", at >= 0 || drawing.node[i] === chosen ? "visible" : "hidden");
        if (at >= 0) taken.push(boxes[at]);
      }
    };
    graphBox.replaceChildren(zoomButtons(), svg);
    move();
    dragging(svg, width, height, pad, move);
    graphHint.textContent = `Blue: deviate together; orange: in opposite directions. The wider, the ${rate ? "surer" : "stronger"}.${rate ? ` Dashed: beyond a rate of ${percent(fdr)}.` : ""} Drag nodes or the background; click a node for its partners.`;
  });

  function zoomButtons() {
    const buttons = make("div", { class: "zoom" });
    for (const [sign, title, factor] of [["+", "Closer", 1.4], ["−", "Farther", 1 / 1.4], ["⌂", "Whole network", 0]]) {
      const button = make("button", { type: "button", title, "aria-label": title }, sign);
      button.addEventListener("click", () => { if (factor) zoom *= factor; else { zoom = 1; center = [0, 0]; } drawGraph(); });
      buttons.append(button);
    }
    return buttons;
  }

  function dragging(svg, width, height, pad, move) {
    let from = null, held = null, moved = 0;
    svg.addEventListener("pointerdown", (e) => {
      if (e.pointerType !== "mouse" && e.target.dataset.i === undefined) return;
      from = [e.clientX, e.clientY]; moved = 0;
      held = e.target.dataset.i === undefined ? null : +e.target.dataset.i;
      svg.setPointerCapture(e.pointerId);
    });
    svg.addEventListener("pointermove", (e) => {
      if (!from) {
        const i = e.target.dataset.i;
        if (i !== undefined) {
          const node = drawing.node[+i], group = drawing.groups ? drawing.groups[drawing.group[+i]] : null;
          showTip(e, [nameOf(node), group, edges(node)].filter((t) => t !== null));
        } else if (e.target === svg) hideTip();
        return;
      }
      const [dx, dy] = [e.clientX - from[0], e.clientY - from[1]];
      from = [e.clientX, e.clientY]; moved += Math.abs(dx) + Math.abs(dy);
      const [ux, uy] = [dx / (zoom * (width / 2 - pad)), dy / (zoom * (height / 2 - pad))];
      if (held === null) { center = [center[0] - ux, center[1] - uy]; } else { places[held][0] += ux; places[held][1] += uy; }
      hideTip(); move();
    });
    svg.addEventListener("pointerup", () => {
      const clicked = from && moved < 4;
      from = null;
      if (clicked) choose(held === null ? -1 : drawing.node[held]);
    });
    svg.addEventListener("pointerleave", hideTip);
  }

  // The heat map.
  const heat = data.heat;
  const joined = heat.order.length;
  const place = new Map(heat.order.map((node, at) => [node, at]));
  const drawHeat = drawn(heatBox, (width) => {
    const band = heat.bands ? 12 : 0, size = Math.min(width, 520), ratio = Math.min(devicePixelRatio || 1, 2);
    const canvas = make("canvas", { width: size * ratio, height: size * ratio, role: "img", "aria-label": `Partial correlations among ${side}` });
    canvas.style.width = canvas.style.height = size + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = css("--page"); pen.fillRect(band, band, size - band, size - band);
    const cell = (size - band) / heat.bins, dot = Math.max(cell, 3);
    heat.first.forEach((i, e) => {
      const j = heat.second[e], v = heat.percent[e];
      pen.globalAlpha = Math.min(0.45 + Math.abs(v) / 100 * 1.1, 1);
      pen.fillStyle = css(v > 0 ? "--plus" : "--minus");
      pen.fillRect(band + j * cell, band + i * cell, dot, dot);
      pen.fillRect(band + i * cell, band + j * cell, dot, dot);
    });
    pen.globalAlpha = 1;
    if (band) heat.bands.forEach((group, at) => {
      const from = band + at * (size - band) / heat.bands.length, long = (size - band) / heat.bands.length + 0.5;
      pen.fillStyle = groupColor(group);
      pen.fillRect(from, 0, long, band - 4); pen.fillRect(0, from, band - 4, long);
    });
    pen.strokeStyle = css("--line"); pen.strokeRect(band + 0.5, band + 0.5, size - band - 1, size - band - 1);
    if (chosen >= 0 && place.has(chosen)) {
      const at = band + (place.get(chosen) + 0.5) * (size - band) / joined;
      pen.strokeStyle = css("--ink"); pen.globalAlpha = 0.7;
      pen.beginPath(); pen.moveTo(at, band); pen.lineTo(at, size); pen.moveTo(band, at); pen.lineTo(size, at); pen.stroke();
      pen.globalAlpha = 1;
    }
    canvas.dataset.cells = heat.first.length;
    const cells = new Map(heat.first.map((i, e) => [i * heat.bins + heat.second[e], heat.percent[e]]));
    const inBin = (b) => {
      const low = Math.ceil(b * joined / heat.bins), high = Math.ceil((b + 1) * joined / heat.bins) - 1;
      return nameOf(heat.order[low]) + (high > low ? ` and ${high - low} more` : "");
    };
    canvas.addEventListener("mousemove", (e) => {
      const b = canvas.getBoundingClientRect();
      const [j, i] = [Math.floor((e.clientX - b.left - band) / cell), Math.floor((e.clientY - b.top - band) / cell)];
      if (i < 0 || j < 0 || i >= heat.bins || j >= heat.bins) { hideTip(); return; }
      const v = cells.get(Math.min(i, j) * heat.bins + Math.max(i, j));
      showTip(e, [inBin(i), inBin(j), v === undefined ? "no edge" : `partial correlation ${number(v / 100, 2)}`]);
    });
    canvas.addEventListener("mouseleave", hideTip);
    heatBox.replaceChildren(canvas);
    const pairs = Math.round(joined / heat.bins);
    heatHint.textContent = `The ${all(joined)} ${side} that have an edge${data.n_isolated ? `, of ${all(data.n_items)}` : ""}.` + (pairs > 1 ? ` Each cell shows the strongest of about ${pairs} × ${pairs} pairs.` : "");
  });

  // Search, slider, table.
  const found = section.querySelector(".found"), search = section.querySelector("input[type=search]");
  function choose(node) {
    chosen = node;
    found.replaceChildren();
    found.hidden = node < 0;
    if (node >= 0) {
      const close = partners.get(node) || [];
      found.append(make("p", {}, make("strong", {}, nameOf(node)), ` · ${edges(node)}`));
      if (!close.length) {
        const words = data.degree[node] ? `None of them is among the ${all(first.length)} first edges, which this report holds; see the exported table.` : "Its noise is not correlated with that of any other.";
        found.append(make("p", { class: "muted" }, words));
      }
      for (const [other, v] of close.slice(0, 30)) {
        const go = make("button", { type: "button" }, nameOf(other));
        go.addEventListener("click", () => choose(other));
        found.append(make("p", {}, go, ` partial correlation ${number(v)}`));
      }
      if (close.length > 30) found.append(make("p", { class: "muted" }, `and ${close.length - 30} more`));
    }
    drawGraph(); drawHeat();
  }
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    if (!wanted) { choose(-1); return; }
    const exact = [], hits = [];
    data.names.forEach((_, i) => {
      const name = nameOf(i).toLowerCase();
      if (name === wanted || data.names[i].toLowerCase() === wanted) exact.push(i); else if (name.includes(wanted)) hits.push(i);
    });
    const matches = exact.concat(hits);
    if (exact.length === 1 || matches.length === 1) { choose(matches[0]); return; }
    choose(-1);
    found.hidden = false;
    found.append(make("p", {}, matches.length ? `${all(matches.length)} names match` : "No name matches."));
    for (const i of matches.slice(0, 25)) {
      const go = make("button", { type: "button" }, nameOf(i));
      go.addEventListener("click", () => choose(i));
      found.append(make("p", {}, go, ` · ${edges(i)}`));
    }
    if (matches.length > 25) found.append(make("p", { class: "muted" }, `and ${all(matches.length - 25)} more`));
  });

  // The slider goes by the false discovery rate, on a scale of logarithms; without tests, by the number of edges.
  const slider = section.querySelector("input[type=range]"), output = section.querySelector("output");
  const few = Math.min(10, first.length) - 1, tens = (e) => Math.log10(Math.max(rate[e], 1e-12));
  const upTo = (limit) => { let count = 0; while (count < first.length && tens(count) <= limit + 1e-9) count++; return count; };
  function slide() {
    const limit = +slider.value, count = rate ? upTo(limit) : limit, wrong = 10 ** limit * count;
    shown = Math.min(count, drawing.first.length);
    const rest = shown < count ? `; the ${all(shown)} surest are drawn` : "";
    output.textContent = rate
      ? `${percent(10 ** limit)}: ${all(count)} edge${count === 1 ? "" : "s"}, ${wrong < 1 ? "fewer than 1" : `about ${all(Math.round(wrong))}`} expected to be false${rest}`
      : `${all(shown)} of ${all(data.n_edges)}`;
    slider.setAttribute("aria-valuetext", output.textContent);
    drawGraph();
  }
  slider.step = rate ? "any" : 1;
  slider.min = rate ? Math.floor(Math.min(tens(few), Math.log10(fdr))) : few + 1;
  slider.max = !rate ? drawing.first.length : first.length < data.n_offered ? tens(first.length - 1) : Math.log10(data.max_rate);
  slider.value = !rate ? 120 : data.n_edges > 150 ? tens(119) : Math.log10(fdr);
  slider.addEventListener("input", slide);
  slide();
  if (drawing.groups) section.querySelector(".legend").append(...[...new Set(drawing.group)].sort((a, b) => a - b).map((g) => chip("span", drawing.groups[g], groupColor(g))));

  const details = section.querySelector("details");
  details.addEventListener("toggle", () => {
    const holder = section.querySelector(".pairs");
    if (!details.open || holder.childElementCount) return;
    const head = make("thead", {}, make("tr", {}, make("th", { class: "num" }, "#"), make("th", {}, item), make("th", {}, item), make("th", { class: "num" }, "partial correlation"), ...(rate ? [make("th", { class: "num" }, "q-value")] : [])));
    const body = make("tbody"), count = Math.min(data.n_edges, first.length, 500);
    for (let e = 0; e < count; e++) body.append(make("tr", {}, make("td", { class: "num" }, String(e + 1)), make("td", {}, named(nameOf(first[e]), 40)), make("td", {}, named(nameOf(second[e]), 40)), make("td", { class: "num" }, number(value[e])), ...(rate ? [make("td", { class: "num" }, number(rate[e]))] : [])));
    holder.append(make("table", {}, head, body));
    if (count < data.n_edges) holder.append(make("p", { class: "hint" }, `The first ${all(count)} of ${all(data.n_edges)} pairs; the exported table has all.`));
  });
}
