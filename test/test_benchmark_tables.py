"""Tables of the documentation have the columns of the benchmarks that write them."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tables():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import tables

        yield tables
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_each_table_has_one_place_and_one_benchmark_with_its_columns(tables):
    pages = "".join(page.read_text("utf-8") for page in ROOT.glob("docs/*.md"))
    found = [(block["name"], block["text"]) for block in tables.BLOCK.finditer(pages)]
    assert sorted(name for name, _ in found) == sorted(tables.COLUMNS)
    marks = re.findall(r"^<!-- (table|end)", pages, re.MULTILINE)
    assert marks == ["table", "end"] * len(found)
    for name, text in found:
        head, rule, *rows = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
        assert tuple(map(str.strip, head.split("|"))) == tables.COLUMNS[name]
        assert len(re.findall(r"^[^|\n]", text, re.MULTILINE)) == 1, name  # the machine's line
        assert {row.count("|") for row in (rule, *rows)} == {len(tables.COLUMNS[name]) - 1}


def test_make_bench_writes_each_table(tables):
    import write_tables

    run = {
        name: (ROOT / f"benchmarks/{name}.py").read_text("utf-8")
        for name in write_tables.BENCHMARKS
    }
    parts = {
        part for text in run.values() for part in re.findall(r"^from (\w+) import", text, re.M)
    }
    paths = [ROOT / f"benchmarks/{name}.py" for name in parts | run.keys()]
    texts = "".join(path.read_text("utf-8") for path in paths if path.exists())
    assert sorted(re.findall(r'\btable\("([^"]+)"', texts)) == sorted(tables.COLUMNS)


def test_tables_of_an_output_replace_those_of_a_page(tables, capsys):
    blocks = [f"<!-- table: {name} -->\nold\n<!-- end -->" for name in ("contact", "plans")]
    page = "a\n{}\nb\n{}\n".format(*blocks)
    with tables.table("plans") as printed:
        printed.row(*range(6))
        printed.miss("a peer")
    with tables.table("contact") as printed:
        printed.row("cube", 1.0, 2.0)
        with pytest.raises(ValueError, match=r"cells = 1; expected 3"):
            printed.row("cube")
    output = capsys.readouterr().out
    assert "not measured: a peer" in output
    after = tables.replaced(page, output)
    first, rest = after.split("\nb\n")
    assert rest == page.split("\nb\n")[1]
    assert first.splitlines()[1:] == output[output.index("<!-- table: contact") :].splitlines()
    assert first.endswith("| cube | 1.0 | 2.0 |\n\n<!-- end -->")


def test_the_curves_of_predictive_control_are_those_of_its_tables(tables):
    import plan_curves

    picture = plan_curves.PICTURE.read_text("utf-8")
    assert f"tables {plan_curves.digest(plan_curves.PAGE.read_text('utf-8'))}" in picture
