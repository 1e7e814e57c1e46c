"""The report in a real browser: it draws, it is silent, it loads nothing, and names are text."""

import json
import time
from importlib import resources

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.known import known_fit

from mnpca import MNPCA, GeneralizedPCA
from mnpca.datasets import make_paper_small
from mnpca.report import write_comparison, write_report

HOSTILE = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "quotes \" ' ` and & ampersand",
    "emoji 🧬 العربية",
    "x" * 300,
    "twice",
    "twice",
    "line\u2028separator \\u003c ${1+1} {{ 7*7 }}",
    '=HYPERLINK("http://example.org")',
]


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The report of hostile data, opened; with what the browser logged and asked for."""
    distinct = [f"{name}.2" if name in HOSTILE[:j] else name for j, name in enumerate(HOSTILE)]
    columns = distinct + [f"feature {j}" for j in range(len(HOSTILE), 40)]
    rows = HOSTILE + [f"sample {i}" for i in range(len(HOSTILE), 60)]
    data, frame, model = known_fit(column_names=columns, row_names=rows)
    labels = [HOSTILE[label] for label in data.labels]
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        model, frame, path, labels=labels, label_name=HOSTILE[0], source=HOSTILE[1], notes=HOSTILE
    )
    return Page(browser, path, model)


@pytest.fixture(scope="module")
def tested(browser, tmp_path_factory):
    """The report of a fit with tests of its edges, names of 80 characters and two kinds of labels.

    Beside it the comparison of the fit with one of another rank.
    """
    data = make_paper_small(c=224, seed=1000, n_samples=80, n_features=50, density=0.05)
    frame = pd.DataFrame(
        data.Y,
        index=[f"{i:03d} sample".ljust(76, "x") + f"{i:04d}" for i in range(80)],
        columns=[f"{j:03d} feature".ljust(76, "y") + f"{j:04d}" for j in range(50)],
    )
    folder = tmp_path_factory.mktemp("tested")
    model = MNPCA(2, noise="graph", prior="gaussian").fit(frame)
    kinds = np.array([f"kind {j % 3} of a feature, with a name of many words" for j in range(50)])
    write_report(
        model, frame, folder / "report.html", labels=data.labels, column_labels=kinds, source="x"
    )
    other = MNPCA(3, noise="graph", prior="gaussian").fit(frame)
    write_comparison(model, other, folder / "comparison.html")
    return Page(browser, folder / "report.html", model)


class Page:
    def __init__(self, browser, path, model):
        self.browser, self.path, self.model = browser, path, model
        self.open()

    def open(self, width=1400, theme="light", *, ready=True):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.browser.get_log("browser"), self.browser.get_log("performance")
        self.browser.get(self.path.as_uri())
        deadline = time.monotonic() + 15
        while ready and self.js("return document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < deadline, self.browser.get_log("browser")
        self.console = self.browser.get_log("browser")
        events = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        self.requests = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def count(self, selector):
        return self.js("return document.querySelectorAll(arguments[0]).length", selector)

    def open_details(self):
        self.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        time.sleep(0.2)

    def search(self, side, text):
        """Type into the search of one network; return what it shows."""
        return self.js(
            "const s = document.querySelector(`#${arguments[0]} input[type=search]`);"
            "s.value = arguments[1]; s.dispatchEvent(new Event('input'));"
            "return document.querySelector(`#${arguments[0]} .found`).innerText",
            side,
            text,
        )


def test_no_console_message_and_no_request(page):
    page.open()
    assert page.console == []
    assert [url for url in page.requests if not url.startswith("data:")] == [page.path.as_uri()]


def test_scatter_and_networks_have_marks(page):
    page.open()
    assert page.count("#scatter-pca circle.point") == 60
    assert page.count("#scatter-mnpca circle.point") == 60
    for side in ("rows", "columns"):
        graph = page.model.noise_graph(side)
        assert page.count(f"#{side} .graph line.edge") == min(120, graph.number_of_edges())
        assert page.count(f"#{side} .graph circle.node") == sum(d > 0 for _, d in graph.degree())
        assert int(page.js(f"return document.querySelector('#{side} canvas').dataset.cells")) > 0
        painted = page.js(
            f"const c = document.querySelector('#{side} canvas');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "const seen = new Set(); for (let i = 0; i < d.length; i += 4)"
            " seen.add(d[i] + ',' + d[i+1] + ',' + d[i+2]); return seen.size"
        )
        assert painted > 5
    assert page.count("#chart-scree circle.point") == 40
    assert page.count("#whiteness rect.bar") > 60
    assert page.count("#chart-convergence circle.point") == 4


def test_hostile_names_are_text(page):
    page.open()
    assert page.js("return document.title").endswith(HOSTILE[1])
    assert page.count("img") == 0
    assert page.count("script") == 2
    assert page.js("return document.querySelector('h1').textContent") == HOSTILE[1]
    notes = page.js("return [...document.querySelectorAll('.notes li')].map(n => n.textContent)")
    assert notes == HOSTILE
    chips = page.js(
        "return [...document.querySelectorAll('#score-legend .chip')].map("
        "n => (n.querySelector('[title]')?.title ?? n.textContent))"
    )
    assert chips == sorted(HOSTILE[:3])
    names = page.js(
        "return JSON.parse(document.getElementById('data').textContent).networks.rows.names"
    )
    assert names[: len(HOSTILE)] == HOSTILE


def test_search_finds_names_and_marks_partners(page):
    page.open()
    for name in HOSTILE:
        for side in ("rows", "columns"):
            shown = page.search(side, name)
            assert " ".join(name.split()) in " ".join(shown.split())
    assert "2 names match" in page.search("rows", "twice")
    graph = page.model.noise_graph("columns")
    node = next(n for n in graph if n >= len(HOSTILE) and graph.degree(n))
    shown = page.search("columns", f"feature {node}")
    assert f"{graph.degree(node)} edges" in shown
    for partner in graph[node]:
        assert graph.nodes[partner]["name"][:40] in shown
    assert page.count("#columns .graph circle.node.hit") == 1
    assert page.search("columns", "no such feature") == "No name matches."


def test_hover_names_a_row_and_marks_it_in_both_panels(page):
    page.open()
    x, y = page.js(
        "const dot = document.querySelector('#scatter-pca circle[data-i=\"20\"]');"
        "dot.parentNode.append(dot); dot.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const b = dot.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]"
    )
    mouse = {"type": "mouseMoved", "x": x, "y": y}
    page.browser.execute_cdp_cmd("Input.dispatchMouseEvent", mouse)
    assert page.js("return document.getElementById('tip').innerText").startswith("sample 20")
    for panel in ("pca", "mnpca"):
        hit = f"#scatter-{panel} circle.hit"
        assert page.js(f"return document.querySelector('{hit}').dataset.i") == "20"


def test_drag_zooms_and_double_click_goes_back(page):
    page.open()
    ticks = (
        "return [...document.querySelectorAll('#scatter-mnpca .axis text')].map(t => t.textContent)"
    )
    box = "#scatter-mnpca svg"
    left, top = page.js(
        f"const s = document.querySelector('{box}'); s.scrollIntoView({{behavior: 'instant'}});"
        "scrollBy({top: -100, behavior: 'instant'});"
        "const b = s.getBoundingClientRect(); return [b.x, b.y]"
    )
    before = page.js(ticks)
    for kind, x, y in (("Pressed", 150, 80), ("Moved", 250, 160), ("Released", 250, 160)):
        event = {"type": f"mouse{kind}", "x": left + x, "y": top + y}
        button = {"button": "left", "clickCount": 1, "buttons": 1}
        page.browser.execute_cdp_cmd("Input.dispatchMouseEvent", event | button)
    assert page.js(ticks) != before
    page.js(f"document.querySelector('{box}').dispatchEvent(new Event('dblclick'))")
    assert page.js(ticks) == before


def test_table_slider_and_groups(page):
    page.open()
    page.open_details()
    edges = page.model.noise_graph("columns").number_of_edges()
    assert page.count("#columns .pairs tbody tr") == edges
    page.js(
        "const s = document.querySelector('#rows input[type=range]');"
        "s.value = 10; s.dispatchEvent(new Event('input'))"
    )
    assert page.count("#rows .graph line.edge") == 10
    page.js("document.querySelector('.chip').click()")
    assert page.count("#scatter-mnpca circle.point[display=none]") == 20


def test_prints_light_and_without_controls(page):
    page.open(theme="dark")
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    try:
        assert page.js(style, "body", "backgroundColor") == "rgb(255, 255, 255)"
        assert page.js(style, ".controls", "display") == "none"
        pdf = page.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        assert len(pdf) > 20_000
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize("components", [1, 4])
def test_other_ranks_draw_without_error(page, browser, tmp_path, components):
    data, frame, model = known_fit(k=components)
    path = tmp_path / "report.html"
    write_report(model, frame, path, labels=data.Y[:, 0])
    other = Page(browser, path, model)
    assert other.console == []
    assert other.count("#scatter-mnpca circle.point") == 60
    assert other.count("#score-controls select") == (2 if components > 2 else 0)


def test_large_report_is_small_and_quick(browser, tmp_path):
    data, frame, model = known_fit(n=1000, p=500, density=0.01)
    path = tmp_path / "report.html"
    write_report(model, frame, path, labels=data.labels)
    assert path.stat().st_size < 8e6
    start = time.perf_counter()
    large = Page(browser, path, model)
    assert time.perf_counter() - start < 10
    assert large.console == []
    n_edges = model.noise_graph("rows").number_of_edges()
    shown = large.js("return document.querySelector('#rows output').textContent")
    assert shown == f"120 of {n_edges:,}"
    took = large.js(
        "const s = document.querySelector('#rows input[type=range]'); const t = performance.now();"
        "s.value = 300; s.dispatchEvent(new Event('input')); return performance.now() - t"
    )
    assert took < 2000


def slide(page, side, rate):
    """Move the slider of a tested network to a false discovery rate; return the words beside it."""
    return page.js(
        "const s = document.querySelector(`#${arguments[0]} input[type=range]`);"
        "s.value = Math.log10(arguments[1]); s.dispatchEvent(new Event('input'));"
        "return document.querySelector(`#${arguments[0]} output`).textContent",
        side,
        rate,
    )


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_slider_goes_by_the_false_discovery_rate(tested, side):
    tested.open()
    for rate, words in ((0.05, "5%"), (0.2, "20%")):
        q = tested.model.edges(side, fdr=rate)["q"]
        wrong = rate * len(q)
        false = "fewer than 1" if wrong < 1 else f"about {wrong:.0f}"
        shown = slide(tested, side, rate * 1.0001)
        assert shown == f"{words}: {len(q)} edges, {false} expected to be false"
        assert tested.count(f"#{side} line.edge") == len(q)
        beyond = tested.count(f"#{side} line.edge:not([stroke-dasharray=none])")
        assert beyond == np.sum(q > 0.05)
    # The surer an edge, the wider its line.
    widths = tested.js(
        "return [...document.querySelectorAll(`#${arguments[0]} line.edge`)].map("
        "l => +l.getAttribute('stroke-width'))",
        side,
    )
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]


def test_long_names_lose_their_middle_and_are_whole_on_hover(tested):
    tested.open()
    tested.open_details()
    cell, whole = tested.js(
        "const s = document.querySelector('#columns .pairs td span');"
        "return [s.textContent, s.title]"
    )
    assert whole in tested.model.feature_names_in_
    assert len(cell) == 40
    assert cell.split("…") == [whole[:24], whole[-15:]]
    names = tested.js(
        "return [...document.querySelectorAll('#columns text.name')].map(t => t.textContent)"
    )
    assert all("…" in name and len(name) <= 22 for name in names)


def test_heat_map_shows_joined_items_and_legends_name_labels(tested):
    tested.open()
    for side, groups in (("rows", 3), ("columns", 3)):
        edges = tested.model.edges(side)
        joined = len(set(edges["node_1"]) | set(edges["node_2"]))
        hint = tested.js(f"return document.querySelector('#{side} .heat ~ .hint').textContent")
        assert hint.startswith(f"The {joined} {side} that have an edge, of ")
        assert tested.count(f"#{side} .legend .chip") == groups


OVERLAPS = """
const seen = (e) => e.checkVisibility({visibilityProperty: true});
const all = (selector, from = document) => [...from.querySelectorAll(selector)].filter(seen);
const cut = [], found = [];
for (const chart of all('.chart svg, .chart canvas')) {
  if (chart.getBoundingClientRect().right > innerWidth + 1) cut.push(chart.parentNode.id);
}
for (const svg of all('.chart svg')) {
  const frame = svg.getBoundingClientRect();
  const texts = all('text', svg).map(t => [t, t.getBoundingClientRect()]);
  for (const [t, b] of texts) {
    if (b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1
        || b.bottom > frame.bottom + 1) cut.push(t.textContent);
    for (const [u, c] of texts) if (t !== u && b.left < c.right - 1 && c.left < b.right - 1
        && b.top < c.bottom - 3 && c.top < b.bottom - 3) found.push([t.textContent, u.textContent]);
  }
}
for (const cell of all('td, th')) {
  if (cell.textContent.length > 4 && cell.clientWidth < 40) cut.push(cell.textContent);
}
for (const table of all('table')) {
  const room = table.closest('.panel, .hero').getBoundingClientRect().right;
  if (table.getBoundingClientRect().right > room + 1) cut.push(table.textContent);
}
for (const e of all('.panel p, .panel td, .chip, .card, h1, .controls label')) {
  if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) cut.push(e.textContent);
}
const blocks = all('.chart, .legend, .hint, figcaption, .controls > *, .zoom')
  .filter(e => e.textContent.trim()).map(e => [e, e.getBoundingClientRect()]);
for (const [e, b] of blocks) for (const [f, c] of blocks) if (e !== f && !e.contains(f)
    && !f.contains(e) && b.left < c.right - 1 && c.left < b.right - 1 && b.top < c.bottom - 1
    && c.top < b.bottom - 1 && !(e.matches('.zoom, figcaption') && f.matches('.zoom, figcaption')))
  found.push([e.className, f.className]);
return [cut, found, document.documentElement.scrollWidth];
"""


def serious(page):
    """Return the serious and critical violations that axe finds."""
    axe = pytest.importorskip("axe_core_python")
    script = (resources.files(axe) / "axe.min.js").read_text(encoding="utf-8")
    found = page.browser.execute_async_script(
        script + "; axe.run().then(arguments[arguments.length - 1])"
    )
    return [
        (violation["id"], [node["html"][:120] for node in violation["nodes"]])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def assert_readable(page, width, theme):
    """Nothing is cut or covered, also in what opens, and axe finds nothing serious."""
    assert page.console == []
    assert page.js("return document.documentElement.dataset.theme") == theme
    background = page.js("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) > 380) == (theme == "light")
    page.open_details()
    cut, overlaps, wide = page.js(OVERLAPS)
    assert (cut, overlaps) == ([], [])
    assert wide <= width
    page.js("document.querySelectorAll('.pairs tr:nth-child(n + 20)').forEach(r => r.remove())")
    assert serious(page) == []


@pytest.fixture(scope="module")
def bare(browser, tmp_path_factory):
    """The report of a fit without components and edges."""
    X = np.random.default_rng(0).normal(size=(40, 20))
    path = tmp_path_factory.mktemp("bare") / "report.html"
    model = MNPCA(0, noise="diagonal").fit(X)
    write_report(model, X, path)
    return Page(browser, path, model)


@pytest.fixture(scope="module")
def wide(browser, tmp_path_factory):
    """The report of 5,000 columns with names of 80 characters, in eleven sectors."""
    n, p = 40, 5000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) + 3 * np.outer(rng.normal(size=n), rng.normal(size=p) > 1)
    chains = np.where(np.arange(p - 1) % 4 < 3, -0.4, 0.0)
    metric = sp.diags_array([chains, np.ones(p), chains], offsets=[-1, 0, 1], format="csr")
    frame = pd.DataFrame(
        X, columns=[f"{j:04d} company {'of a long name ' * 5}"[:80] for j in range(p)]
    )
    model = GeneralizedPCA(2, col_metric=metric).fit(frame)
    path = tmp_path_factory.mktemp("wide") / "report.html"
    write_report(model, frame, path, column_labels=[f"the sector {j % 11}" for j in range(p)])
    return Page(browser, path, model)


@pytest.mark.parametrize("name", ["page", "tested", "bare", "wide"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_overlaps_and_axe_is_content(request, name, width, theme):
    shown = request.getfixturevalue(name)
    shown.open(width, theme)
    assert_readable(shown, width, theme)
    assert bool(shown.count("#scatter-mnpca circle.point")) == (name != "bare")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")])
def test_comparison_fits_the_screen_and_axe_is_content(tested, width, theme):
    report, tested.path = tested.path, tested.path.with_name("comparison.html")
    try:
        tested.open(width, theme, ready=False)
        assert_readable(tested, width, theme)
        assert tested.count("#components tbody tr") == 3
    finally:
        tested.path = report
