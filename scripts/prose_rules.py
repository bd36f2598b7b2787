"""Words that prose and names do not use, each with its replacement: data of prose_lint.py.

A rule matches without regard to case. Its ``allowed`` pattern names uses that stay; that one is
matched with regard to case. ``bad`` and ``good`` are an example of each, checked by the tests.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One pattern, what to write instead, and which uses are allowed."""

    pattern: str
    replacement: str
    bad: str
    good: str
    allowed: str = ""
    paths: tuple[str, ...] = ()
    """Glob patterns of files to which the rule does not apply."""


class Exemption(NamedTuple):
    """A text that may stay as it is, in files that match ``path``."""

    path: str
    text: str
    reason: str


PEOPLE = (
    r"(?i:people|persons?|users?|operators?|readers?|authors?|maintainers?|contributors?"
    r"|someone|anyone|everyone|those)"
)
DOCUMENTS = (
    r"(?i:data sheets?|manuals?|documentation|documents?|standards?|papers?|textbooks?|README"
    r"|REP \d+|authors?|users?|operators?)"
)

RULES = (
    Rule(r"\banew\b", "again, re-", "compiled anew", "compiled again"),
    Rule(
        r"\btold\b|\btells?\b", "reports, returns, specifies", "it tells the time", "it returns it"
    ),
    Rule(
        r"\bis none\b|\bare none\b|\bnone is\b",
        "does not exist",
        "where there is none",
        "none of it",
    ),
    Rule(
        r"\bis no (?!longer\b|more\b|less\b|later\b)\w+",
        "is not a ...",
        "it is no number",
        "it is no longer valid",
    ),
    Rule(r"\bthat there (is|are)\b", "(delete)", "all joints that there are", "all joints"),
    Rule(
        r"\blaws?\b",
        "controller",
        "the law in use",
        "the control law; Newton's second law",
        r"(?i:control|scaling|power|Newton's( \w+)?|Ohm's|Faraday's) laws?",
    ),
    Rule(
        r"\b(law|laws|motions?|ways?) of the tool\b",
        "task-space",
        "motions of the tool",
        "position of the tool",
    ),
    Rule(
        r"\b(law|laws) of the joints\b",
        "joint-space controller",
        "laws of the joints",
        "limits of the joints",
    ),
    Rule(
        r"\bways?\b",
        "path, direction, distance",
        "the way to the target",
        "under way, by way of the waypoint",
        r"(?i:by way of|under way)",
    ),
    Rule(r"\bown states?\b", "actuator state", "an actuator's own states", "the actuator state"),
    Rule(r"\brub(s|bed|bing)?\b", "dry friction", "what rubs", "rubber"),
    Rule(
        r"\bfinite numbers\b", "diverged, not finite", "left the finite numbers", "a finite number"
    ),
    Rule(
        r"\b(bears?|borne|bearable|unborne)\b",
        "carries, supports",
        "what motors bear",
        "the bearings",
    ),
    Rule(r"\baside\b", "background; separate", "checked aside", "on each side"),
    Rule(r"\bbeside\b", "in addition to, next to", "beside the others", "on the left side"),
    Rule(
        r"\bapart\b",
        "separately, except",
        "kept apart",
        "samples 0.1 s apart",
        r"\d\S*( [^\W\d]\S*)? apart\b",
    ),
    Rule(
        r"\bwho(ever|m)?\b",
        "(name the component)",
        "who may stop an arm",
        "users who know ROS; whole",
        PEOPLE + r",? who(m|ever)?\b",
    ),
    Rule(
        r"\bnobody\b|\bsomebody\b",
        "no client, a user",
        "while nobody listens",
        "while no client listens",
    ),
    Rule(
        r"\b(it|they|driver|node|loop|law) knows?\b",
        "contains, stores",
        "what the driver knows",
        "a known payload",
    ),
    Rule(
        r"\b(asks?|asked|asking) (for|of)\b",
        "request, command",
        "what was asked for",
        "the task of a controller",
    ),
    Rule(
        r"\b(wants?|wanted)\b",
        "desired, requires",
        "the wanted torque",
        "if you want a plot",
        r"(?i:you) wants?\b|(?i:you|users?) want\b",
    ),
    Rule(r"\bhear(s|d)?\b", "receive", "what was heard", "the head of the heap"),
    Rule(
        r"\b(says?|said)\b",
        "reports, message",
        "the driver says so",
        "the data sheet says 12 V",
        DOCUMENTS + r" says?\b",
    ),
    Rule(r"\bspeaks?\b", "uses the protocol", "it speaks CAN", "the peak"),
    Rule(r"\bbeliev\w*\b", "accept, valid", "not believed", "not accepted"),
    Rule(r"\bdoubt\w*\b", "uncertain, warning", "in doubt", "double"),
    Rule(r"\bjudg(e|es|ed|ement)\b", "check, evaluate", "judged at every tick", "evaluated"),
    Rule(r"\bverdicts?\b", "result", "the verdict", "the result"),
    Rule(
        r"\brefus(e|es|ed|al|als)\b",
        "reject, raise",
        "a refused command",
        "a rejected command",
    ),
    Rule(r"\bgo(es)? on\b|\bwent on\b", "continue", "it goes on", "it continues"),
    Rule(
        r"\bgoes ill\b|\bgo(es|ing)? along\b",
        "inconsistent; move with",
        "goes ill with it",
        "goes to zero",
    ),
    Rule(r"\btak(e|es|en|ing) up\b", "accept, start", "a goal taken up", "takes 2 s"),
    Rule(r"\btak(e|es|en|ing) over\b|\btook over\b", "restart", "it takes over", "it takes 2 s"),
    Rule(
        r"\bled\b|\bleads? (the|an?|its) (arm|tool|joints?)\b",
        "move, guide",
        "led by hand",
        "the LED blinks; this leads to an error",
        r"\bLED\b",
    ),
    Rule(
        r"\bgives? way\b|\bgave way\b", "yield, go unstable", "the joint gives way", "it gives 2 V"
    ),
    Rule(r"\bput away\b|\bset aside\b", "discard, back up", "it was put away", "it was put on top"),
    Rule(r"\bleft (out|over|alone)\b|\bleaves? out\b", "omit", "what is left out", "the left side"),
    Rule(r"\bmeanwhile\b", "during this time", "meanwhile it moves", "while it moves"),
    Rule(r"\bat once\b", "immediately; at the same time", "ends at once", "ends immediately"),
    Rule(r"\bsought\b|\bseeks?\b", "search, optimize", "gains are sought", "gains are tuned"),
    Rule(r"\breckon\w*\b", "assume, compute", "it reckons with 5 kg", "it assumes 5 kg"),
    Rule(r"\bmakers?\b", "manufacturer", "of other makers", "of other manufacturers"),
    Rule(r"\bspoilt\b|\bgarbled\b", "corrupt", "a garbled packet", "a corrupt packet"),
    Rule(r"\bROS 2 face\b|\bface of\b", "interface", "its ROS 2 face", "its interface"),
    Rule(r"\bseams?\b", "interface, extension point", "arms behind a seam", "it seems right"),
    Rule(
        r"\brooms?\b",
        "module, directory",
        "the room of a question",
        "at room temperature",
        r"(?i:room temperature)",
    ),
    Rule(
        r"\bshares?\b",
        "fraction, scale",
        "a share of the effort",
        "share/arm_dynamics and shared memory",
        r"share/|share[\"')\]]|/share\b",
    ),
    Rule(
        r"\bhottest\b|\bfarthest\b|\bweakest\b",
        "maximum, minimum",
        "the weakest motor",
        "the minimum torque",
    ),
    Rule(
        r"\bswing(s|ing)?\b",
        "oscillate",
        "a loop that swings",
        "the swinging pendulum",
        r"(?i:(pendulum|swing(s|ing)?)( \w+){0,3} (swing(s|ing)?|pendulum)|swing[ -]?up)",
        ("*demos/*", "*gallery/*", "docs/gallery.md"),
    ),
    Rule(r"\blost altogether\b|\bran away\b", "diverged", "the arm ran away", "the arm diverged"),
    Rule(
        r"\blanes?\b",
        "rollout",
        "many lanes at once",
        "eight SIMD lanes of a kernel",
        r"(?i:SIMD|vector) lanes?",
        ("*batch/kernels/*", "*/published_kernel.py", "*/published_trace.py"),
    ),
    Rule(
        r"\bnot told of\b|\bunknown to the law\b",
        "unmodeled",
        "a payload unknown to the law",
        "an unmodeled payload",
    ),
    Rule(
        r"\bgoes? where (it is|they are) told\b",
        "prescribed motion",
        "a joint that goes where it is told",
        "a joint with prescribed motion",
    ),
    Rule(r"\barm without mass\b", "CLIK", "follows an arm without mass", "follows CLIK"),
    Rule(r"\b(on|in) metal\b", "on hardware", "run on metal", "a metal frame"),
    Rule(
        r"\bby (itself|themselves)\b",
        "automatically, independently",
        "clears by itself",
        "clears automatically",
    ),
    Rule(
        r"\bwhat (is left|it (is|tells|takes|gives))\b",
        "(name the noun)",
        "what is left of it",
        "what remains",
    ),
    Rule(
        r"\bas .{1,30} (has|have) (it|them)\b",
        "as defined by",
        "as ros2_control has it",
        "as defined by ros2_control",
    ),
    Rule(
        r"\bof (a kind of )?its own\b", "separate, dedicated", "a bus of its own", "a separate bus"
    ),
    Rule(r"\bin force\b", "active", "the command in force", "an increase in forces"),
    Rule(
        r"\bon purpose\b",
        "deliberately; fault injection",
        "broken on purpose",
        "a general-purpose computer",
    ),
    Rule(
        r"\b(in )?truth\b",
        "actual",
        "in truth it moves",
        "compared with ground truth",
        r"(?i:ground truth)",
    ),
    Rule(
        r"\bfor ever\b|\bwithout end\b",
        "indefinitely, continuous joint",
        "turns without end",
        "runs indefinitely",
    ),
    Rule(
        r"\bnow and then\b|\bto and fro\b",
        "periodically, back and forth",
        "moves to and fro",
        "moves back and forth",
    ),
)

HEADING_RULES = (
    Rule(r"^#+ .*\?$", "noun phrase", "## Which motors?", "## Supported motors"),
    Rule(
        r"^#+ (What|Where|How|Who|When|Why)\b",
        "noun phrase",
        "## What it tells",
        "## How-to guides; ## Published topics",
        r"^#+ How-to\b",
    ),
)

NAME_RULES = (
    Rule(r"\basks?\b|\basked\b", "requested, commanded", "asked torque", "task"),
    Rule(r"\bspoils?\b", "corrupt, distort", "spoil reply", "spoiler"),
    Rule(r"\bstruck\b|\bresent\b", "after impulse, after command", "resent act", "present"),
    Rule(r"\bslopes\b", "gradient, Hessian, Jacobian", "prior slopes", "slope"),
    Rule(
        r"(?-i:\b(LEAST|SMALLEST|LARGEST|FEWEST|SHORTEST|LONGEST|LOWEST|HIGHEST)\b)",
        "MIN, MAX",
        "LARGEST SPEED",
        "least squares",
    ),
)
"""Rules of names only."""

SUMMARY_STARTS = {
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "those",
    "it",
    "its",
    "he",
    "she",
    "they",
    "their",
    "what",
    "which",
    "who",
    "whose",
    "whether",
    "where",
    "when",
    "how",
    "why",
    "there",
    "one",
    "every",
    "each",
    "all",
    "any",
    "some",
}
"""First words of a docstring's summary that are not a verb in the imperative."""

MAX_SENTENCE_WORDS = 30
"""Words of a sentence, above which it is a warning."""

EXEMPTIONS: tuple[Exemption, ...] = (
    Exemption("LICENSE", "", "text of the Apache Software Foundation"),
    Exemption("scripts/prose_rules.py", "", "contains the patterns and their examples"),
    Exemption("setup.py", "share", "the directory share/ of an installation"),
    Exemption("setup.py", "SHARE", "the directory share/ of an installation"),
    Exemption("arm_dynamics/batch/rollouts/backends.py", "lanes", "SIMD lanes of a kernel"),
    Exemption("arm_dynamics/recording/bag.py", "tell", "method of a file"),
    Exemption("test/batch/test_kernel*.py", "LANES", "SIMD lanes of a kernel"),
    Exemption("test/batch/test_kernel.py", "lanes", "the parameter lanes of a kernel: SIMD lanes"),
    Exemption(
        "test/batch/test_kernel_check.py", "lanes", "the message quotes SIMD lanes of a kernel"
    ),
    Exemption("test/batch/test_lane_loop.py", "lane", "SIMD lanes of a kernel"),
    Exemption("test/batch/test_lane_loop.py", "lanes", "SIMD lanes of a kernel"),
    Exemption("test/test_prose_lint.py", "", "contains examples of findings"),
)
"""Texts that stay; an empty text exempts the file."""
