// Puts the report together.
addEventListener("beforeprint", () => drawings.forEach((draw) => draw()));
addEventListener("afterprint", () => drawings.forEach((draw) => draw()));

scores();
screeChart(byId("chart-scree"), DATA.scree);
document.querySelectorAll("section.network").forEach(network);
histogramChart(byId("white-values"), DATA.whiteness.values, "singular value", "Histogram of the residual's singular values, before and after whitening");
for (const side of ["rows", "columns"]) histogramChart(byId("white-" + side), DATA.whiteness[side], "correlation of a pair", `Histogram of the residual's correlations of ${side}, before and after whitening`);
convergenceChart(byId("chart-convergence"), DATA.convergence);
document.documentElement.dataset.ready = "yes";
