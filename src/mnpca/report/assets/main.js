// Puts the report together; light or dark as the reader's system is, until the reader chooses.
const system = matchMedia("(prefers-color-scheme: dark)");
let theme = system.matches ? "dark" : "light";
function apply(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  drawings.forEach((draw) => draw());
}
system.addEventListener("change", (e) => apply(e.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () => apply(theme === "dark" ? "light" : "dark"));
addEventListener("beforeprint", () => drawings.forEach((draw) => draw()));
addEventListener("afterprint", () => drawings.forEach((draw) => draw()));

function rankWords(data) {
  const above = data.generalized.filter((v) => v > 1).length, plainAbove = data.plain.filter((v) => v > 1).length;
  const count = (n) => n === 0 ? "none" : String(n);
  const plain = plainAbove > above ? ` Without whitening ${plainAbove} do: correlated or unequal noise looks like signal to PCA.` : "";
  return `Singular values in units of the largest that white noise would give. After whitening ${count(above)} of the first ${data.generalized.length} ${above === 1 ? "stands" : "stand"} above the noise edge; ${count(data.kept)} ${data.kept === 1 ? "is" : "are"} kept (${/^\d+$/.test(data.requested) ? "as requested" : "chosen from the data"}).${plain}`;
}

apply(theme);
scores();
byId("rank-words").textContent = rankWords(DATA.scree);
screeChart(byId("chart-scree"), DATA.scree);
document.querySelectorAll("section.network").forEach(network);
histogramChart(byId("white-values"), DATA.whiteness.values, "singular value");
for (const side of ["rows", "columns"]) histogramChart(byId("white-" + side), DATA.whiteness[side], "correlation of a pair");
convergenceChart(byId("chart-convergence"), DATA.convergence);
document.documentElement.dataset.ready = "yes";
