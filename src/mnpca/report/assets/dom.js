// Elements, numbers, colors and the tooltip. Text from the data only ever becomes text nodes.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#0b78d0", "#e0620d", "#0f9d73", "#c9609c", "#dba000", "#7a5bd0", "#3fb0d8", "#a0723a", "#d6405b", "#8a94a3"];
const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") node.className = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function shape(tag, attributes, parent) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (parent) parent.append(node);
  return node;
}

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(2);
  if (size >= 1e4) return Number(value.toPrecision(Math.max(digits, 5))).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// A long name loses its middle: both ends tell names apart.
function clipped(text, length) {
  const letters = Array.from(text), head = Math.ceil(0.6 * (length - 1));
  return letters.length > length ? letters.slice(0, head).join("") + "…" + letters.slice(head + 1 - length).join("") : text;
}
// A name that may be clipped, whole on hover.
const named = (text, length) => make("span", clipped(text, length) === text ? {} : { title: text }, clipped(text, length));

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const groupColor = (group) => (group < 0 ? COLOURS[9] : COLOURS[group % COLOURS.length]);

// From dark blue over teal to yellow, for labels that are values.
function scaleColor(share) {
  const stops = [[58, 40, 130], [33, 120, 160], [60, 180, 120], [240, 210, 60]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return "rgb(" + stops[low].map((c, i) => Math.round(c + (at - low) * (stops[low + 1][i] - c))).join(",") + ")";
}

function chip(tag, name, color, attributes) {
  const dot = make("span", { class: "dot" });
  dot.style.background = color;
  return make(tag, { class: "chip", ...attributes }, dot, named(name || "(empty)", 36));
}

const tip = byId("tip");
function showTip(event, lines) {
  tip.replaceChildren(...lines.map((line, i) => make(i ? "div" : "strong", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const top = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16;
  tip.style.left = Math.max(left, 8) + "px";
  tip.style.top = Math.max(top, 8) + "px";
}
const hideTip = () => { tip.hidden = true; };

// A drawing is made again whenever its width, the theme or the medium changes.
function drawn(box, draw) {
  let width = 0;
  const again = () => { width = Math.floor(box.clientWidth); if (width > 0) draw(width); };
  drawings.push(again);
  new ResizeObserver(() => { if (Math.floor(box.clientWidth) !== width) again(); }).observe(box);
  again();
  return again;
}
