"""Report of an identification: tables, text, and a page without external resources."""

import re
import sys
from html.parser import HTMLParser
from math import inf, nan
from xml.etree import ElementTree

import numpy as np
import pytest

from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.identification import write_fit_report
from arm_dynamics.identification.results.fit_report import fit_html, fit_tables
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit, ParameterFit

VOID = {"meta"}
GROUP = "J1.m + 0.4 J2.m - J3.mz"


class Balance(HTMLParser):
    """Open elements, all links, and the text of a page."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.text, self.tags = [], [], "", set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [v for k, v in attributes if k in {"src", "href", "xlink:href", "data"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_data(self, data):
        self.text += data


def summary(samples=5000, **changes):
    time, rng = np.linspace(0, 10, samples), np.random.default_rng(0)
    measured = np.sin(time) + 0.01 * rng.normal(size=samples)
    joints = [
        JointFit(
            name, "N·m", 1.25, 0.06, 0.31, 0.0152, time, measured, 0.8 * np.sin(time), np.sin(time),
        )
        for name in ("J1", "<J2>")
    ]  # fmt: skip
    parameters = (
        ParameterFit("J1.m", "kg", 1.0, 1.23456, 0.42),
        ParameterFit("J1.mz", "kg·m", 0.1, 0.1, nan),
        ParameterFit("J2.offset", "N·m", 0.0, 0.3, inf),
    )
    values = {
        "arm": "arm & co", "date": "2026-11-24", "sources": ("run1",), "held_out": ("run2",),
        "joints": tuple(joints), "parameters": parameters, "condition": 32.123, "groups": (GROUP,),
        "notes": ("delay of the efforts: 4.9 ms", "cut-off 8.2 Hz"),
    }  # fmt: skip
    return FitSummary(**{**values, **changes})


def page(text):
    found = Balance()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_deviations_far_above_the_value_have_its_unit():
    rows = (
        ParameterFit("J1.mx", "kg·m", 0.0, 1e-14, 9.81e11),
        ParameterFit("J1.my", "kg·m", 0.0, -0.002, 2500.0),
        ParameterFit("J1.mz", "kg·m", 0.0, 0.02, 250.0),
        ParameterFit("J1.loss", "1", nan, 0.02, 2500.0),
    )
    _, table = fit_tables(summary(parameters=rows))
    assert [row[-1] for row in table.rows] == ["0.00981 kg·m", "0.05 kg·m", "250 %", "0.5"]
    assert table.rows[-1][1:3] == ("1", "-")


def test_tables_and_page_have_all_values():
    joints, parameters = fit_tables(summary())
    assert joints.rows[0] == ("J1", "N·m", "1.25", "0.06", "31 %", "1.52 %")
    assert [row[-1] for row in parameters.rows] == [
        "0.42 %",
        "not distinguished",
        "not distinguished",
    ]
    assert all(len(row) == len(table.heads) for table in (joints, parameters) for row in table.rows)
    text = page(fit_html(summary())).text
    for part in (
        "arm & co: identification of 2026-11-24", "Fitted: run1.", "Held out: run2.", "32.12",
        "1.235", GROUP, "delay of the efforts: 4.9 ms", "not identifiable from this trajectory",
    ):  # fmt: skip
        assert part in text


def test_a_summary_without_values_has_a_report():
    bare = summary(joints=(), parameters=(), groups=(), notes=(), condition=inf, held_out=())
    found = page(fit_html(bare))
    assert "base regressor: -." in found.text
    assert "svg" not in found.tags
    assert "Held out: no recording." in found.text


def test_the_page_contains_everything_and_loads_nothing():
    text = fit_html(summary())
    found = page(text)
    assert all(link.startswith("#") for link in found.links)
    assert not re.search(r"https?:|url\((?!#)|@import|<script|<img", text)
    assert "arm & co: identification" in found.text
    assert "<J2>" in found.text
    assert text.count("<svg") == 2
    assert 'class="dim"' in text
    for part in (GROUP, "cut-off 8.2 Hz", "measured", "prior", "identified", "residual [N·m]"):
        assert part in found.text
    assert fit_html(summary()) == text


def test_figures_have_the_colors_of_the_page_in_light_and_dark():
    text = fit_html(summary())
    assert "prefers-color-scheme: dark" in text
    for figure in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(figure)
        assert not re.search(r"#[0-9a-fA-F]{6}\b|\b(?:black|white)\b", figure)
        assert {"var(--before)", "var(--after)", "currentColor"} <= set(
            re.findall(r"var\(--\w+\)|currentColor", figure)
        )


def test_long_curves_are_thinned_and_keep_their_peaks():
    from arm_dynamics.identification.results.fit_figure import BUCKETS, thinned

    time = np.linspace(0, 10, 100_001)
    values = np.sin(time)
    values[[123, 77_777]] = [9.0, -9.0]
    kept_time, kept = thinned(time, values)
    assert kept_time.size <= 2 * BUCKETS + 2
    assert {kept.max(), kept.min()} == {9.0, -9.0}
    assert (np.diff(kept_time) > 0).all()
    assert thinned(time[:10], values[:10])[0].size == 10
    assert len(fit_html(summary(100_000))) < 1.5 * len(fit_html(summary(5000)))


def test_the_report_is_written(tmp_path):
    file = write_fit_report(summary(500), tmp_path / "report.html")
    assert file.read_text(encoding="utf-8") == fit_html(summary(500))
    with pytest.raises(ConfigError, match="expected a path that can be written"):
        write_fit_report(summary(500), tmp_path / "missing" / "report.html")


def test_a_missing_matplotlib_is_named_with_its_remedy(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("core.figure_style", "identification.results.fit_figure"):
        monkeypatch.delitem(sys.modules, f"arm_dynamics.{name}", raising=False)
    with pytest.raises(ArmDynamicsError, match="matplotlib is not installed"):
        fit_html(summary(500))
