"""The lint of prose finds the example of each rule, and passes what each rule allows."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import prose_lint  # noqa: E402
import prose_rules  # noqa: E402

ALL_RULES = [*prose_rules.RULES, *prose_rules.HEADING_RULES]
BY_PATTERN = pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.pattern)


def findings_in(text, kind="python", path="any.py"):
    """Return the words that are found in ``text``, with their lines."""
    prose = getattr(prose_lint, kind)(text)
    return [(found.line, found.word) for found in prose_lint.findings(path, prose)]


@BY_PATTERN
def test_a_rule_finds_its_example(rule):
    assert list(prose_lint.matches(rule, rule.bad))
    found = list(prose_lint.findings("any.md", prose_lint.markdown(rule.bad)))
    assert rule.replacement in {finding.replacement for finding in found}


@BY_PATTERN
def test_a_rule_passes_its_allowed_use(rule):
    assert list(prose_lint.matches(rule, rule.good)) == []


@pytest.mark.parametrize("rule", [r for r in ALL_RULES if r.allowed], ids=lambda rule: rule.pattern)
def test_an_allowed_use_is_needed(rule):
    """Without its allowance, a rule of this kind finds something in its good example."""
    assert list(prose_lint.matches(rule._replace(allowed=""), rule.good))


def test_patterns_of_rules_are_unique():
    patterns = [rule.pattern for rule in ALL_RULES]
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize("exemption", prose_rules.EXEMPTIONS, ids=lambda e: f"{e.path} {e.text}")
def test_an_exemption_has_a_reason_and_a_file(exemption):
    assert exemption.reason
    files = list(ROOT.glob(exemption.path))
    assert files
    assert any(exemption.text in file.read_text("utf-8") for file in files)


def test_docstrings_comments_and_literals_are_prose():
    text = '''\
"""A law.

Told
"""
# it goes on
x = "refused"  # a seam
y = (
    f"{law} spoilt "
    "values, told"
)
'''
    assert sorted(findings_in(text)) == [
        (1, "law"),
        (3, "Told"),
        (5, "goes on"),
        (6, "refused"),
        (6, "seam"),
        (8, "spoilt"),
        (9, "told"),
    ]


def test_words_are_found_across_lines_and_concatenated_literals():
    assert findings_in('x = ("all that there "\n     "are")\n') == [(1, "that there are")]
    assert findings_in("# all that there\n# are\n") == [(1, "that there are")]
    assert findings_in("All that there\nare.\n", "markdown") == [(1, "that there are")]


def test_code_is_not_prose():
    assert findings_in('"""Call ``law`` or `told`."""\nlaw = told\n') == []
    assert findings_in("A `law`, [x](docs/law.md), model.law.\n\n```\nlaw\n```\n", "markdown") == []


def test_replacement_fields_are_not_prose():
    assert findings_in("x = f\"{a['law']} {told:{seam}} fine {law!r}\"\n") == []


def test_comments_of_python_blocks_are_prose():
    assert findings_in("Text.\n\n```python\nx = 1  # not told of it\n```\n", "markdown") == [
        (4, "told"),
        (4, "not told of"),
    ]


def test_markdown_separates_paragraphs_lists_and_tables():
    text = "A\n\n- all that there\n- are\n\n| that there | are |\n|---|---|\n"
    assert findings_in(text, "markdown") == []


def test_comments_of_other_files_are_prose():
    assert findings_in("law: 1  # a law\nx: '# told'\n# goes\n# on\n", "hash_comments") == [
        (1, "law"),
        (3, "goes on"),
    ]
    assert findings_in("<law>\n<!-- a\nlaw -->\n</law>\n", "xml_comments") == [(3, "law")]


def test_an_exempt_text_is_not_found(monkeypatch):
    exempt = prose_rules.Exemption("any.py", "Fitts's law", "name of a publication")
    monkeypatch.setattr(prose_lint, "EXEMPTIONS", (exempt,))
    assert findings_in("# by Fitts's law, a law\n") == [(1, "law")]
    assert len(findings_in("# by Fitts's law\n", path="other.py")) == 1


def test_a_rule_may_exclude_files():
    assert findings_in("# it swings\n") == [(1, "swings")]
    assert findings_in("# it swings\n", path="examples/gallery/two_link.py") == []


NAMES = """\
class LawTable:
    def told(self, asked, *, control_law=None):
        self.own_share, own_states, LARGEST_SPEED = 0, 0, 0
        for way in asked:
            told.law(seam=1)
import law
"""


def test_names_are_checked_where_they_are_bound():
    assert sorted(findings_in(NAMES, "names")) == [
        (1, "Law"),
        (2, "asked"),
        (2, "told"),
        (3, "LARGEST"),
        (3, "own states"),
        (3, "share"),
        (4, "way"),
    ]
    assert findings_in("LARGEST_SPEED, largest_speed = 1, 2\n", "names") == [(1, "LARGEST")]
    assert findings_in("x = (\n", "names") == []


@pytest.mark.parametrize("rule", prose_rules.NAME_RULES, ids=lambda rule: rule.pattern)
def test_a_rule_of_names_finds_its_example(rule):
    assert list(prose_lint.matches(rule, rule.bad))
    assert list(prose_lint.matches(rule, rule.good)) == []


def test_error_messages_name_a_value_or_what_is_expected():
    text = """\
raise InvalidValue("bad size")
raise InvalidValue(f"size = {n}")
raise InvalidValue("a number is expected")
raise errors.InvalidValue("bad" f" {size}")
raise ValueError("bad")
raise UnknownName("interface", name, known)
raise InvalidValue(f"{name}: {problem}")
"""
    errors = prose_lint.package_errors()
    found = list(prose_lint.messages("any.py", text, errors))
    assert [finding.line for finding in found] == [1, 4]
    assert "InvalidValue" in errors
    assert "UnknownName" not in errors  # composes its message itself


def test_summaries_start_with_a_verb():
    text = '''\
class A:
    """A class."""

    def f(self):
        """The value."""

    def g(self):
        """Return the value."""

    @property
    def h(self):
        """The value."""
'''
    assert [finding.line for finding in prose_lint.summaries("any.py", text)] == [5]


def test_long_sentences_are_found():
    text = f"Short one. {'Word ' * 31}and more. Short.\n"
    (found,) = prose_lint.long_sentences("any.md", prose_lint.markdown(text))
    assert found.word.startswith("33 words: Word")


def run(*findings_in):
    command = [sys.executable, ROOT / "scripts" / "prose_lint.py", *findings_in]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_findings_are_printed_by_line_and_counted_by_directory(tmp_path):
    (tmp_path / "a.md").write_text("# Fine\n\nA law.\n")
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (1, f"{tmp_path}/a.md:3: law => controller\n")
    assert run("--summary", tmp_path).stdout.split()[0] == "1"
    (tmp_path / "a.md").write_text("# Fine\n")
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    done = run(tmp_path / "none.md")
    assert done.returncode == 1
    assert "expected a file or directory" in done.stderr


@pytest.mark.slow
def test_the_whole_tree_is_clean():
    done = run()
    assert (done.returncode, done.stdout) == (0, "")
