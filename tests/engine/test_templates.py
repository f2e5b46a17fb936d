"""Templates of honest models render as Jinja renders them; those of hostile ones end soon, in one line."""

import ast
import json
from datetime import datetime
from pathlib import Path

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import TemplateFailed
from engine.sandbox import Budget, Exhausted, Sandbox
from engine.templates import ChatTemplate, TemplateExhausted
from tests.chat_templates import EVERY

TALK = [
    {"role": "user", "content": "  hi {{7*7}} {% if %} \n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nyes & <b>no</b>"},
    {"role": "user", "content": "é 👩 'more'"},
]

EXPRESSIONS = [
    "{{ messages | tojson }}|{{ messages[0] | tojson(indent=2) }}",
    "{{ messages | map(attribute='role') | join(', ') }}|{{ ['a', 'b'] | join }}|{{ '-'.join(['x', 'y']) }}",
    "{{ 'a,b'.split(',') }}{{ ('x' ~ 1 ~ none ~ 2.5 ~ [1, 'a']) }}{{ {'a': 1} }}{{ (1, 2) }}{{ undefined_name }}",
    "{{ 'aXbX'.replace('X', 'yy') }}{{ 'aXbX' | replace('X', '') }}{{ 'ab'.replace('', '-', 2) }}",
    "{{ 'a\n\nb' | indent(2) }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent('> ', first=true, blank=true) }}",
    "{% for x in range(5) if x % 2 %}{{ loop.index }}{{ loop.last }}{{ x }}{% else %}none{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{{ loop.length }}{% break %}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}",
    "{% set ns = namespace(n=1) %}{% set ns.n = ns.n * 3 + 2 ** 3 - 1 // 1 %}{{ ns.n }}{{ 7 / 2 }}{{ -ns.n % 4 }}",
    "{% macro m(a, b='z') %}<{{ a }}{{ b }}{{ caller() if caller }}>{% endmacro %}"
    "{{ m(1) }}{% call m(2) %}c{% endcall %}",
    "{% set x %}a{{ 1 }}{% endset %}{{ x | upper }}{% filter trim %}  y {% endfilter %}{{ messages[1:][0].role }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ 'B' in 'ABC' }}{{ 'abc'[::-1] }}",
    "{{ [3, 1, 2] | sort | first }}{{ {'b': 1, 'a': 2} | dictsort }}{{ 'x' | default('y') }}"
    "{{ none | default('y', true) }}",
    "{% if messages is defined and tools is not defined or not tools %}  ok{% endif %}  \n"
    "  {# note #}\n  {%- if 1 %} x {% endif %}",
]


def plain_jinja(source: str) -> str:
    """What Jinja itself makes of it, with the conventions of chat templates."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    template = environment.from_string(source)
    return template.render(messages=TALK, bos_token="<s>", eos_token="</s>", add_generation_prompt=True, tools=None)


@pytest.mark.parametrize("source", [*EVERY.values(), *EXPRESSIONS])
def test_an_honest_template_renders_as_in_plain_jinja(source: str) -> None:
    assert ChatTemplate(source).render(TALK, "<s>", "</s>") == plain_jinja(source)


def test_dates_are_those_of_the_start_of_the_conversation() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}", now=datetime(2031, 5, 4))
    assert template.render(TALK) == template.render(TALK) == "04 May 2031"


def test_the_generation_tag_only_passes_its_body_on() -> None:
    source = "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}"
    assert ChatTemplate(source).render(TALK) == "userassistantuser"


def test_json_keeps_letters_and_signs_as_they_are() -> None:
    assert ChatTemplate("{{ 'é<b>' | tojson }}").render(TALK) == '"é<b>"'


def test_literals_are_what_a_template_may_look_for() -> None:
    template = ChatTemplate("<|a|>{% if '</think>' in messages[0].content %}{{ 'x' ~ 1 }}{% endif %}")
    assert {"</think>", "x"} <= template.literals
    assert "<|a|>" not in template.literals


DOUBLING = (
    "{{% set ns = namespace(x={0}) %}}{{% for i in range(99) %}}{{% set ns.x = {1} %}}{{% endfor %}}{{{{ ns.x }}}}"
)
MANY = "{% set many = range(100000) | list %}"
LOOP = "{% for a in many %}"
WASTEFUL = {
    "nested loops": MANY + LOOP * 3 + "{% endfor %}" * 3,
    "text in loops": MANY + LOOP + "x" * 50000 + "{% endfor %}",
    "a loop that never enters its body": MANY + "{% for a in many if -1 in many %}{% endfor %}",
    "recursive macros": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a long text at once": "{{ 'a' * 10**10 }}",
    "a long list at once": "{{ [0] * 10**10 }}",
    "a long number": "{{ 9 ** 99999999 }}",
    "a growing number": DOUBLING.format("99", "ns.x * ns.x"),
    "texts doubled by +": DOUBLING.format("'a'", "ns.x + ns.x"),
    "texts doubled by ~": DOUBLING.format("'a'", "ns.x ~ ns.x"),
    "texts doubled by capture": "{% set x = 'aaaaaaaa' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "texts doubled by join": DOUBLING.format("'a'", "[ns.x, ns.x] | join"),
    "texts doubled by a method": DOUBLING.format("'a'", "'-'.join([ns.x, ns.x])"),
    "texts squared": "{% set x = 'a' * 100000 %}{{ x | replace('a', x) }}",
    "texts squared by a method": "{% set x = 'a' * 100000 %}{{ x.replace('', x) }}",
    "texts mapped": "{% set x = 'a' * 100000 %}{{ range(100000) | map('replace', '1', x) | join }}",
    "a long join": "{% set x = 'a' * 100000 %}{{ ([''] * 100000) | join(x) }}",
    "a long join by a method": "{% set x = 'a' * 100000 %}{{ x.join([''] * 100000) }}",
    "lists within lists": DOUBLING.format("[]", "[ns.x, ns.x]"),
    "tuples within tuples": DOUBLING.format("()", "(ns.x, ns.x)"),
    "maps within maps": DOUBLING.format("{}", "dict(a=ns.x, b=ns.x)"),
    "lists doubled": DOUBLING.format("[0]", "ns.x + ns.x"),
    "copies by slices": "{% set x = 'a' * 4000000 %}{{ x[1:] | length + x[1:] | length + x[1:] | length }}",
    "a wide indent": "{{ 'a\nb' | indent(1000000000) }}",
}


@pytest.mark.parametrize("source", WASTEFUL.values(), ids=WASTEFUL.keys())
def test_a_template_that_never_ends_or_grows_is_stopped(source: str) -> None:
    with pytest.raises(TemplateExhausted):
        ChatTemplate(source).render(TALK)


def test_a_budget_ends_by_time_too() -> None:
    budget = Budget(10**9, -1.0)
    with pytest.raises(Exhausted):
        budget.spend()


def test_long_messages_have_a_larger_budget() -> None:
    talk = [{"role": "user", "content": "word " * 1_000_000}]
    assert len(ChatTemplate(EVERY["chatml"]).render(talk)) > 2_000_000


REACHING = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''['__class__'] }}",
    "{% if messages.__class__ %}{% endif %}",
    "{{ lipsum() }}",
    "{{ lipsum.__globals__['os'].system('touch CANARY') }}",
    "{{ cycler.__init__.__globals__.os.system('touch CANARY') }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__self__ }}",
    "{{ ''|attr('__class__') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | join(attribute='__class__') }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ '{:9}'.format(1) }}",
    "{{ '{a:9}'.format_map({'a': 1}) }}",
    "{{ '%s' % 1 }}",
    "{{ ''.center(9) }}",
    "{{ (5).to_bytes(9, 'big') }}",
    "{{ dict.fromkeys([1]) }}",
    "{{ messages.append(1) }}",
    "{{ range }}",
    "{{ 'a' | tojson(indent=99) }}",
    "{% include 'x' %}",
    "{% import 'os' as os %}",
    "{{ strftime_now('%d' * 99) }}",
]


@pytest.mark.parametrize("source", REACHING)
def test_nothing_outside_can_be_reached(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TemplateFailed) as caught:
        ChatTemplate(source).render(TALK)
    assert not isinstance(caught.value, TemplateExhausted)
    assert list(tmp_path.iterdir()) == []


BROKEN = [
    "{{ }",
    "{% for %}",
    "{{ nothing.at.all }}",
    "{{ 1 / 0 }}",
    "{{ 'a' | nofilter }}",
    "{{ " + "(" * 30000 + "1" + ")" * 30000 + " }}",
    "{{ " + "not " * 30000 + "1 }}",
    "{{ a" + ".b" * 30000 + " }}",
    "{% for a in range(2) %}" * 40 + "{% endfor %}" * 40,
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "x" * 300_000,
    "{{ raise_exception('two\nlines \x1b[2J') }}",
    "{{ range(10 ** 9) }}",
]


@pytest.mark.parametrize("source", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_template_fails_in_one_line(source: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        ChatTemplate(source).render(TALK)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 330


def test_what_the_template_says_is_told() -> None:
    with pytest.raises(TemplateFailed, match=r"failed \(Roles must alternate\): take another file"):
        ChatTemplate(EVERY["no_system"]).render(TALK[:1] * 2)


def test_after_a_failure_the_template_works_again() -> None:
    template = ChatTemplate("{% if messages|length > 1 %}{{ 'a' * 10**10 }}{% endif %}ok")
    with pytest.raises(TemplateExhausted):
        template.render(TALK)
    assert template.render(TALK[:1]) == "ok"


def environments(path: Path) -> list[str]:
    """Names of Jinja environments and templates that a module makes or derives from."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    bases = [base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
    names = [ast.unparse(node).rsplit(".", maxsplit=1)[-1] for node in (*calls, *bases)]
    return [name for name in names if name.endswith("Environment") or name in ("Template", "Sandbox", "from_string")]


def test_there_is_one_environment_in_the_whole_program() -> None:
    root = Path(__file__).parents[2]
    found = {
        path.name: names
        for package in ("app", "engine", "models")
        for path in (root / package).rglob("*.py")
        if (names := environments(path))
    }
    assert found == {"sandbox.py": ["ImmutableSandboxedEnvironment"], "templates.py": ["Sandbox"]}
    assert Sandbox.sandboxed
