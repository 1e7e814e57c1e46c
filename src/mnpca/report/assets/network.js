// One noise network: drawing of the strongest edges, heat map, search, table.
function network(section) {
  const side = section.dataset.side, data = DATA.networks[side];
  if (!data.n_edges) return;
  const drawing = data.drawing, [first, second, value] = data.edges, rate = data.q;
  const item = side === "rows" ? "row" : "column";
  const nameOf = (i) => i >= data.names.length ? `${item} ${i}` : data.named ? data.names[i] : `${item} ${data.names[i]}`;
  const all = (n) => n.toLocaleString("en");
  let chosen = -1, shown = Math.min(120, drawing.first.length);
  const [graphBox, heatBox] = [section.querySelector(".graph"), section.querySelector(".heat")];
  const [graphHint, heatHint] = section.querySelectorAll(".hint");

  const partners = new Map();
  first.forEach((a, e) => {
    const b = second[e];
    for (const [from, to] of [[a, b], [b, a]]) {
      if (!partners.has(from)) partners.set(from, []);
      partners.get(from).push([to, value[e]]);
    }
  });

  // The drawing.
  const places = drawing.node.map((_, i) => [drawing.x[i], drawing.y[i]]);
  let zoom = 1, center = [0, 0];
  const drawGraph = drawn(graphBox, (width) => {
    const height = Math.min(Math.max(width * 0.8, 280), 520);
    const svg = shape("svg", { width, height, role: "img" });
    shape("title", {}, svg).textContent = `Network among ${side}`;
    const pad = 26;
    const toX = (v) => width / 2 + (v - center[0]) * zoom * (width / 2 - pad);
    const toY = (v) => height / 2 + (v - center[1]) * zoom * (height / 2 - pad);
    const strength = new Map();
    const lines = [];
    for (let e = 0; e < shown; e++) {
      const [a, b] = [drawing.first[e], drawing.second[e]];
      const line = shape("line", { class: "edge", stroke: value[e] > 0 ? "var(--plus)" : "var(--minus)", "stroke-opacity": 0.65, "stroke-width": (0.8 + 4 * Math.abs(value[e])).toFixed(2) }, svg);
      line.addEventListener("mousemove", (event) => showTip(event, [`${clipped(nameOf(drawing.node[a]), 60)} – ${clipped(nameOf(drawing.node[b]), 60)}`, `partial correlation ${number(value[e])}`].concat(rate ? [`q-value ${number(rate[e])}`] : [])));
      line.addEventListener("mouseleave", hideTip);
      lines.push([line, a, b]);
      for (const i of [a, b]) strength.set(i, (strength.get(i) || 0) + Math.abs(value[e]));
    }
    const near = new Set(chosen < 0 ? [] : lines.filter(([, a, b]) => drawing.node[a] === chosen || drawing.node[b] === chosen).flatMap(([, a, b]) => [a, b]));
    const order = [...strength.keys()].sort((a, b) => (drawing.node[b] === chosen) - (drawing.node[a] === chosen) || strength.get(b) - strength.get(a));
    const named = new Set(order.slice(0, strength.size <= 60 ? 60 : width < 500 ? 12 : 24));
    const nodes = new Map(), texts = new Map();
    for (const i of order) {
      const s = strength.get(i);
      const dot = shape("circle", { class: "node", r: (Math.min(3.6 + 1.6 * Math.sqrt(s), 10) * (width < 500 ? 0.75 : 1)).toFixed(1), fill: groupColor(drawing.group[i]), "data-i": i }, svg);
      nodes.set(i, dot);
      if (chosen >= 0 ? near.has(i) : named.has(i)) {
        texts.set(i, shape("text", { class: "name" }));
        texts.get(i).textContent = clipped(nameOf(drawing.node[i]), 18);
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
      const taken = [];
      for (const [i, text] of texts) {
        const x = toX(places[i][0]), y = toY(places[i][1]), end = x > width - 110, long = 7 * Array.from(text.textContent).length;
        text.setAttribute("x", (x + (end ? -9 : 9)).toFixed(1)); text.setAttribute("y", (y + 4).toFixed(1));
        text.setAttribute("text-anchor", end ? "end" : "start");
        // A name that would cover another is left out; the chosen node's come first.
        const box = [end ? x - long : x, y - 8, end ? x : x + long, y + 8];
        const free = taken.every((b) => box[2] < b[0] || box[0] > b[2] || box[3] < b[1] || box[1] > b[3]);
        text.setAttribute("visibility", free || drawing.node[i] === chosen ? "visible" : "hidden");
        if (free) taken.push(box);
      }
    };
    move();
    graphBox.replaceChildren(svg, zoomButtons());
    dragging(svg, width, height, pad, move);
    graphHint.textContent = `${shown < data.n_edges ? `${all(shown)} strongest of ${all(data.n_edges)} edges` : shown > 1 ? `All ${all(shown)} edges` : "The only edge"}. Blue: deviate together; orange: in opposite directions. Drag nodes or the background; click a node for its partners.`;
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
          showTip(e, [nameOf(node), group, `${all(data.degree[node] ?? 0)} edge${data.degree[node] === 1 ? "" : "s"}`].filter((t) => t !== null));
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
      const at = band + (place.get(chosen) + 0.5) * (size - band) / data.n_items;
      pen.strokeStyle = css("--ink"); pen.globalAlpha = 0.7;
      pen.beginPath(); pen.moveTo(at, band); pen.lineTo(at, size); pen.moveTo(band, at); pen.lineTo(size, at); pen.stroke();
      pen.globalAlpha = 1;
    }
    canvas.dataset.cells = heat.first.length;
    const cells = new Map(heat.first.map((i, e) => [i * heat.bins + heat.second[e], heat.percent[e]]));
    const inBin = (b) => {
      const low = Math.ceil(b * data.n_items / heat.bins), high = Math.ceil((b + 1) * data.n_items / heat.bins) - 1;
      if (!heat.order.length) return `positions ${low}–${high}`;
      return high > low ? `${clipped(nameOf(heat.order[low]), 40)} and ${high - low} more` : clipped(nameOf(heat.order[low]), 60);
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
    const coarse = data.n_items >= 1.5 * heat.bins ? ` Each cell shows the strongest of about ${Math.round(data.n_items / heat.bins)} × ${Math.round(data.n_items / heat.bins)} pairs.` : "";
    heatHint.textContent = `${all(data.n_items)} × ${all(data.n_items)}, ${all(data.n_communities)} communities` + (data.n_isolated ? `; ${all(data.n_isolated)} without an edge come last${data.ordered_by === "label" ? " in each label" : ""}.` : ".") + coarse;
  });

  // Search, slider, table.
  const found = section.querySelector(".found"), search = section.querySelector("input[type=search]");
  function choose(node) {
    chosen = node;
    found.replaceChildren();
    found.hidden = node < 0;
    if (node >= 0) {
      const close = partners.get(node) || [];
      found.append(make("p", {}, make("strong", {}, nameOf(node)), ` · ${all(data.degree[node] ?? 0)} edges`));
      if (!close.length) {
        const words = data.degree[node] ? `None of them is among the ${all(first.length)} strongest edges that this report holds; see the exported table.` : "Its noise is not correlated with that of any other.";
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
      found.append(make("p", {}, go, ` · ${all(data.degree[i])} edges`));
    }
    if (matches.length > 25) found.append(make("p", { class: "muted" }, `and ${all(matches.length - 25)} more`));
  });

  const slider = section.querySelector("input[type=range]"), output = section.querySelector("output");
  slider.max = drawing.first.length; slider.min = Math.min(10, drawing.first.length); slider.step = 1; slider.value = shown;
  output.textContent = shown;
  slider.addEventListener("input", () => { shown = +slider.value; output.textContent = shown; drawGraph(); });

  const details = section.querySelector("details");
  details.addEventListener("toggle", () => {
    const holder = section.querySelector(".pairs");
    if (!details.open || holder.childElementCount) return;
    const head = make("thead", {}, make("tr", {}, make("th", { class: "num" }, "#"), make("th", {}, item), make("th", {}, item), make("th", { class: "num" }, "partial correlation"), ...(rate ? [make("th", { class: "num" }, "q-value")] : [])));
    const body = make("tbody"), count = Math.min(first.length, 500);
    for (let e = 0; e < count; e++) body.append(make("tr", {}, make("td", { class: "num" }, String(e + 1)), make("td", {}, clipped(nameOf(first[e]), 80)), make("td", {}, clipped(nameOf(second[e]), 80)), make("td", { class: "num" }, number(value[e])), ...(rate ? [make("td", { class: "num" }, number(rate[e]))] : [])));
    holder.append(make("table", {}, head, body));
    if (count < data.n_edges) holder.append(make("p", { class: "hint" }, `The ${all(count)} strongest of ${all(data.n_edges)} pairs; the exported table has all.`));
  });
}
