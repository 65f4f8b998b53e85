"""Snippet: the Python that makes a picture, runnable as shown."""

from typing import Any

HEAD = '''"""{title}, as Forgetscope draws it."""

from app.charts import pictures
from app.charts.theme import {theme}
from core.runs import Runs

run = Runs().record({key!r})
if run is None:
    raise SystemExit("This run is not kept here: make it again, or set FORGETSCOPE_HOME.")

'''

CHART = """chart = pictures.{call}
if chart is None:
    raise SystemExit("This run has no such picture.")
print(chart.title)
chart.figure.write_html("{name}.html")
"""

STRIP = """strip = pictures.{call}
print(strip.alt)
with open("{name}.svg", "w", encoding="utf-8") as file:
    file.write(strip.svg)
"""

MAPS = """maps = pictures.{call}
for model, chart in maps.charts.items():
    print(model, chart.title)
    chart.figure.write_html(f"{name}_{{model}}.html")
"""

ATTENTION = """from app.charts import heat
from core.data import load

data = load(run.report["recipe"]["dataset"])
images = {{
    int(i): x for part in (data.train, data.test) for i, x in zip(part.ids, part.x.numpy())
}}
rows = pictures.{call}
grid = [[heat.picture(images[i]), *(o.image for o in row.values())] for i, row in rows]
with open("{name}.png", "wb") as file:
    file.write(heat.sheet(grid))
"""

PICTURES = {
    "readings": ("readings", "Readings", STRIP),
    "map": ("map_charts", "Maps", MAPS),
    "angles": ("angles", "Angles", CHART),
    "angle_matrix": ("matrix", "Angle matrix", CHART),
    "arrows": ("arrows", "Class means and head rows", CHART),
    "strength": ("along_strength", "What strength changes", CHART),
    "depth": ("along_depth", "Leakage along depth", CHART),
    "flow": ("where_to", "Where the images go", CHART),
    "confidence": ("confidence", "Confidence", CHART),
    "class_change": ("by_class", "Accuracy change by class", CHART),
    "membership": ("attack", "Membership attack", CHART),
    "attention": ("attention", "Attention", ATTENTION),
}
"""Name of a picture to its function in `pictures`, its title, and what is done with it."""


def snippet(chart_name: str, key: str, *, theme: str = "light", **options: Any) -> str:
    """A script that draws the picture `chart_name` of the run `key` with `options`.

    Raises:
        KeyError: there is no such picture.
        TypeError: an option that is no plain value.
    """
    function, title, body = PICTURES[chart_name]
    known = [f"{name}={_written(value)}" for name, value in options.items()]
    first = ["run"] + (["image=images.__getitem__"] if body is ATTENTION else [theme.upper()])
    call = f"{function}({', '.join(first + known)})"
    shown = HEAD.format(title=title, key=key, theme=theme.upper())
    return shown + body.format(call=call, name=chart_name)


def _written(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"({''.join(f'{_written(v)}, ' for v in value)})"
    raise TypeError(f"{type(value).__name__} cannot be written into a script.")
