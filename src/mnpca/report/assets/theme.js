// Light or dark as the reader's system is, until the reader chooses.
const drawings = [];
const system = matchMedia("(prefers-color-scheme: dark)");
function apply(name) {
  document.documentElement.dataset.theme = name;
  drawings.forEach((draw) => draw());
}
apply(system.matches ? "dark" : "light");
system.addEventListener("change", (e) => apply(e.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => apply(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
