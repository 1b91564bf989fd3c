"""What do the pages look like? Reports, live pages and notebooks, and pictures of them.

`python experiments/gallery.py --out FOLDER` writes the pages: short and long formulas, headings of all kinds, a
template, a motion, classes, and the live page while it seeds, while it evolves and at its end. Then Chromium takes
pictures of each at 1280 and 390 pixels, light and dark, and prints it; with pypdfium2, the prints become pictures, too.
`--only long headings` makes some of the pages, `--pages-only` no pictures. `experiments/tests/test_gallery.py` measures
the same pages.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import shine
from shine import Model, SymbolicDynamics, SymbolicRegressor
from shine.data.datasets.dataset import Dataset
from shine.faces.dynamics.report import report_parts
from shine.faces.keywords import settings_from
from shine.faces.live.view import Live
from shine.formats.page.markup import element
from shine.formats.page.page import html_page, own_text
from shine.report import report_html
from shine.search.evolution.observers import Observers
from shine.search.kinds.classes import ClassesProblem
from shine.search.models.result import Result
from shine.search.run import search

BROWSER = Path(__file__).parents[1] / "tests" / "helpers" / "chromium.py"

SETTINGS = {
    "data": {"file": "measurements/2026/laboratory_of_the_north/temperature_and_pressure_by_minute.csv"},
    "primitives": ["add", "sub", "mul", "div", "sqrt", "exp", "log"],
    "evolution": {"population": 500, "migration_interval": 20, "probabilities": {"subtree_crossover": 0.45}},
    "seed": 7,
}


def of_hand(codes: Sequence[str], data: Dataset, chosen: int = -1) -> Result:
    """A result of formulas that nobody searched for."""
    models = [Model(shine.parse(code, data.features), 0.0, 1.0, headings=data.headings, digits=5) for code in codes]
    models = [model.with_rows(data, "mse", "absolute") for model in models]
    return Result(models, chosen % len(models), 12, 345678, 25.0, 7, "seconds")


def history(result: Result) -> list[dict[str, Any]]:
    """Losses of generations that begin late, and fall by little."""
    best = result.best.loss
    return [{"generation": at, "seconds": 19 + 0.6 * at, "loss": best * (1 + 0.04 / (1 + at))} for at in range(11)]


def reported(result: Result, data: Dataset, title: str, target: str, lines: Any = ()) -> str:
    return report_html(result, data, history=lines, settings=SETTINGS, title=title, target=target)


def short() -> str:
    """An exact fit of 4000 rows."""
    X = np.random.default_rng(0).uniform(1, 5, (4000, 2))
    data = Dataset.from_arrays(X, np.hypot(*X.T), features=["a", "b"])
    result = of_hand(["4.3", "0.75*a + 0.75*b", "sqrt(a**2 + b**2)"], data)
    return reported(result, data, "pythagoras", "c", history(result))


LONG = (
    "0.31",
    "1.2345*x0*x1*x2*x3*x4*x5*x6*x7/(1 + x0)",
    "2.3456*exp(-1.2345*x0)*sin(3.4567*x1 + 0.1234)*log(1.2345 + x2**2)*sqrt(x3)*x4*x5*x6**2*x7*tanh(0.5432*x0*x1*x2)",
    "(1.2345*x0*x1 + 2.3456*x2*x3 - 3.4567*x4*x5 + 0.1234*sin(x6*x7) - 4.5678)/(5.6789 + x0**2 + x1**2 + x2**2 + "
    "x3**2)",
    "sin(1.2345*x0 + 2.3456*x1 + 3.4567*x2 + 4.5678*x3 + 5.6789*x4 + 6.789*x5) + sqrt(0.4321*x0 + 1.5432*x1*x2*x3 + "
    "2.6543*x4*x5*x6*x7 + 3.7654) + x0",
    "(1.2345*x0*x1*x2 if x3 < 0.5432*x4 + 1.2345 else 2.3456*x5*sin(3.4567*x6)*exp(-0.9876*x7) if x0 < x1 else "
    "3.4567*x0 + 4.5678*x1)*x2 + 1.5",
    "1.2345*exp(-((x0 - 0.4321)**2 + (x1 - 0.5432)**2 + (x2 - 0.6543)**2 + (x3 - 0.7654)**2)/(2*0.1234**2)) + "
    "2.3456*(x4*x5*x6 + 1.2345*x7*x0*x1 + 2.3456)**1.5*abs(x2*x3 - 0.9876*x4*x5*x6*x7*x0*x1*x2)/max(x3, x4, 0.1234) + "
    "(x0 + 1.2345*x1)/(x2 + 2.3456/(x3 + 3.4567*x4/(x5 + 4.5678*x6/(x7 + 5.6789))))",
)


def long() -> str:
    """Long products, quotients, calls, choices and powers."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.1, 1, (400, 8))
    names = [f"x{place}" for place in range(8)]
    tree = shine.parse(LONG[-2], names)
    y = Model(tree, 0.0, 1.0).predict(X) + rng.normal(0, 0.1, 400)
    data = Dataset.from_arrays(X, y, features=names)
    result = of_hand(LONG, data)
    return reported(result, data, "a long formula of eight columns", "y", history(result))


HEADINGS = {
    "t": "temperature of the outer wall of the furnace, measured every minute [°C]",
    "druck": "Druckdifferenzmessumformerausgangssignalmittelwert",
    "zhiliang": "質量和高度以及每分鐘測量的外壁溫度和壓力的平均值乘以時間",
    "davlenie": "давление на входе в котёл, среднее за минуту",
    "harara": "درجة حرارة الجدار الخارجي للفرن",
    "a_very_long_name_of_a_column_with_underscores": "a_very_long_name_of_a_column_with_underscores",
    "wide": "WWWWWWWWWWWWWWWWWWWWWWWW",
    "wider": "MMMMMMMM_mmmmmmmm_WWWWWW",
}


def headings() -> str:
    """Long headings, in several alphabets; 37 rows."""
    rng = np.random.default_rng(2)
    X = rng.uniform(1, 3, (37, len(HEADINGS)))
    y = X[:, 0] * X[:, 1] / X[:, 2] + X[:, 3] - X[:, 4] * X[:, 5] + rng.normal(0, 0.05, 37)
    data = Dataset.from_arrays(X, y, features=list(HEADINGS), headings=list(HEADINGS.values()))
    names = tuple(HEADINGS)
    law = f"{names[0]}*{names[1]}/{names[2]} + {names[3]} - {names[4]}*{names[5]} + 0.01*wide/(wider + wide)"
    result = of_hand(["3.21", f"1.2345*{names[0]}*{names[1]}/{names[2]}", "wide*wider/(wide + wider)", law], data)
    return reported(result, data, "Wandtemperatur_und_Druck_2026-03", "heat flux through the outer wall [kW/m²]")


def template() -> str:
    """A law with an unknown function, and a constant for each patient."""
    rng = np.random.default_rng(3)
    dose, time, patient = rng.uniform(1, 5, 120), rng.uniform(0, 4, 120), rng.integers(0, 4, 120)
    rates = np.array([0.3, 0.5, 0.8, 1.1])
    y = 2 * dose**2 * np.exp(-rates[patient] * time)
    X = np.column_stack([dose, time, patient])
    law = shine.template("f(dose)*exp(-k[patient]*t)")
    names = ["dose", "t", "patient"]
    result = shine.evolve(
        X, y, features=names, template=law, generations=3, seconds=None, population=100, primitives=["add", "mul"]
    )
    data = Dataset.from_arrays(X, y, features=names)
    return reported(result, data, "concentrations", "blood [mg/l]", [])


def motion() -> str:
    """Equations of motion."""
    times = np.linspace(0, 12, 150)
    x = np.array([np.cos(times) * np.exp(-0.1 * times), -np.sin(times) * np.exp(-0.1 * times)]).T
    model = SymbolicDynamics(max_time=12, random_state=0).fit(x, t=times)
    parts = report_parts(model.front_, model.trajectories_, "damped_oscillator", SETTINGS)
    return html_page("damped_oscillator", element("main", *parts), own_text("script.js"))


def notebook() -> str:
    """What estimators show in a notebook."""
    rng = np.random.default_rng(4)
    X = rng.uniform(1, 5, (200, 2))
    y = 2.5 * X[:, 0] * np.exp(-0.3 * X[:, 1]) + rng.normal(0, 0.05, 200)
    model = SymbolicRegressor(generations=3, population_size=100, max_time=None, random_state=0).fit(X, y)
    data = Dataset.from_arrays(rng.uniform(0.1, 1, (50, 8)), rng.uniform(size=50))
    cells = [model._fitted_html(), model.summary()._repr_html_(), of_hand(LONG, data).front._repr_html_()]
    style = "body { font: 14px sans-serif; margin: 16px; } td, th { padding: 4px 8px; }"
    style += "@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } }"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
    return f"<!DOCTYPE html><html><head>{head}</head><body>{'<hr>'.join(cells)}</body></html>"


class Recorder:
    """Hears what a live page is told, and keeps what it would show once something is so."""

    def __init__(self, live: Live, wanted: Callable[[dict[str, Any]], bool]) -> None:
        self._live, self._wanted = live, wanted
        self.parts: dict[str, str] = {}
        self.kept: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        for text in self._live.messages():
            if not text:
                continue
            message = json.loads(text)
            self.parts |= message["parts"]
            if not self.kept and self._wanted(message["status"] | {"parts": self.parts}):
                self.kept = {"parts": dict(self.parts), "status": message["status"]}

    def joined(self) -> dict[str, Any]:
        """The message, after the end."""
        self._thread.join(60)
        return self.kept


def frozen(page: str, message: dict[str, Any]) -> str:
    """A live page that is told one message, by nobody."""
    told = json.dumps(json.dumps(message)).replace("</", "<\\/")
    tell = f"queueMicrotask(() => this.onmessage({{ data: {told} }}))"
    stub = f"<script>window.EventSource = class {{ constructor() {{ {tell}; }} close() {{}} }};"
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return page.replace("<script>", stub + "</script><script>", 1)


def towers() -> Dataset:
    """Noisy readings, whose errors are relative to the target."""
    rng = np.random.default_rng(5)
    X = rng.uniform(1, 5, (300, 3))
    y = 20 + 1.5 * X[:, 0] * np.sqrt(X[:, 1]) - np.sin(2 * X[:, 2]) * X[:, 0] - 4.956
    names = {"features": ["mass", "h", "outer_wall"], "headings": ["mass", "h", "outer wall [m]"]}
    return Dataset.from_arrays(X, y * rng.normal(1, 0.05, 300), **names)


def watched(
    wanted: Callable[[dict[str, Any]], bool],
    data: Sequence[Dataset],
    titles: Sequence[str] = ("",),
    kind: Any = None,
    put_in: str = "",
    **options: Any,
) -> str:
    """The live page of searches at a moment."""
    given = {"seed": 3, "generations": 12, "seconds": 20.0, "population": 100, **options}
    with Live("cooling towers of the north", "heat flux [kW/m²]") as live:
        page, heard = live.page(), Recorder(live, wanted)
        for title, rows in zip(titles, data, strict=True):
            watch, asked = live.watch(title), [put_in] * bool(put_in)

            def at(progress: Any, watch: Any = watch, asked: list[str] = asked) -> None:
                if progress.generation and asked:
                    watch.put_in(asked.pop())

            live.ended(search(rows, settings_from(**given), Observers(at, watch), kind=kind), SETTINGS)
    return frozen(page, heard.joined())


def live_seeding() -> str:
    """The live page while the search looks for formulas to start from."""
    return watched(lambda told: "R²" in told["parts"].get("top", ""), [towers()], noise="relative")


def live_running() -> str:
    """The live page after some generations."""
    law = "20*mass*h*outer_wall*sin(2*outer_wall + 3.4567*mass)*sqrt(h)*exp(-0.1234*mass*outer_wall)"
    options = {"seeding": 0.0, "generations": 300, "seconds": 6.0, "max_size": 40, "islands": 4, "noise": "relative"}
    return watched(lambda told: "after gen" in told["parts"].get("put-in", ""), [towers()], put_in=law, **options)


def live_ended() -> str:
    """The live page after the search."""
    options = {"seeding": 0.0, "seconds": 4.0, "noise": "relative"}
    return watched(lambda told: told["state"] == "ended", [towers()], put_in="mass*h", **options)


def classes() -> str:
    """The last page of searches for the odds of two classes."""
    X = np.random.default_rng(6).normal(size=(200, 2))
    names = "Iris setosa (Pall. ex Link)", "Iris versicolor"
    targets = (X[:, 0] > 0.1), X[:, 0] * X[:, 1] + X[:, 1] > 0.5
    data = [Dataset.from_arrays(X, target.astype(float), features=["petal", "sepal"]) for target in targets]
    options = {"seeding": 0.0, "generations": 5}
    return watched(lambda told: told["state"] == "ended", data, names, ClassesProblem, **options)


PAGES: dict[str, Callable[[], str]] = {
    "short": short, "long": long, "headings": headings, "template": template, "motion": motion, "classes": classes,
    "notebook": notebook, "live-seeding": live_seeding, "live-running": live_running, "live-ended": live_ended,
}  # fmt: skip


def rasterized(path: Path) -> None:
    """Write the pages of a PDF as pictures, if pypdfium2 is there."""
    try:
        import pypdfium2  # type: ignore[import-not-found]
    except ImportError:
        return
    for number, page in enumerate(pypdfium2.PdfDocument(path), 1):
        page.render(scale=1.2).to_pil().save(path.with_name(f"{path.stem}-print-{number}.png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=PAGES, default=list(PAGES))
    parser.add_argument("--pages-only", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    paths = [given.out / f"{name}.html" for name in given.only]
    for path in paths:
        path.write_text(PAGES[path.stem](), encoding="utf-8")
        print(path)
    if not given.pages_only:
        subprocess.run([sys.executable, str(BROWSER), str(given.out), *map(str, paths)], check=True)
        for path in paths:
            rasterized(path.with_suffix(".pdf"))


if __name__ == "__main__":
    main()
