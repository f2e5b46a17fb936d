"""Chat templates: a Jinja source and messages in, the text of a prompt out.

One invariant: whatever the source holds, `render` returns a text or raises TemplateFailed, in one line and soon.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Never

from jinja2 import meta, nodes
from jinja2.environment import Template
from jinja2.exceptions import TemplateError

from engine.detokenize import sanitize
from engine.errors import TemplateFailed
from engine.sandbox import Budget, Exhausted, Sandbox
from engine.template_tree import watched

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
"""For models that know its control tokens but bring no template."""

PLAIN = (
    "{% for message in messages %}"
    "{% if message.role == 'user' %}User: {% elif message.role == 'assistant' %}Assistant:{% endif %}"
    "{{ message.content }}\n"
    "{% endfor %}Assistant:"
)
"""For models that know nothing of chats."""

SWITCHES = frozenset({"enable_thinking", "thinking"})
"""Names under which templates ask whether to think."""
MAX_SOURCE = 200_000
"""Characters of a template; the largest in use have a tenth of it."""
MAX_SECONDS = 1.0
"""This thread's own time that one rendering may take; an honest one takes milliseconds."""
_BASE, _SHARE = 4_000_000, 64
"""Characters that a rendering may make: a base, and so many for each character of the messages."""


class TemplateExhausted(TemplateFailed):
    """The template ran for too long or wrote too much; it would do so again."""


class ChatTemplate:
    """One template, compiled once; for one thread at a time."""

    def __init__(self, source: str, now: datetime | None = None) -> None:
        self.source = source
        self._now = now or datetime.now()  # one time for a whole conversation: a later one would change read tokens
        self._environment = Sandbox()
        self._environment.globals.update(raise_exception=_raise_exception, strftime_now=self._strftime)
        self.literals: frozenset[str] = frozenset()
        """Texts in its expressions: what it may look for in a message."""
        self.switches: frozenset[str] = frozenset()
        """Under which of the names in SWITCHES it asks."""
        self._template = self._compile()

    def _compile(self) -> Template:
        environment = self._environment
        try:
            if len(self.source) > MAX_SOURCE:
                raise TemplateError(f"it has {len(self.source):,} characters")
            tree = environment.parse(self.source)
            texts = (node.value for node in tree.find_all(nodes.Const))
            self.literals = frozenset(text for text in texts if isinstance(text, str))
            self.switches = SWITCHES & meta.find_undeclared_variables(tree)
            code = environment.compile(watched(tree, environment), name="chat template")
            return Template.from_code(environment, code, environment.make_globals(None))
        except Exception as error:  # a program of somebody else's: whatever it raises is its failing
            raise _failed(error) from error

    def render(
        self, messages: Sequence[Mapping[str, str]], bos: str = "", eos: str = "", thinking: bool | None = None
    ) -> str:
        """The prompt up to where the assistant begins; raises TemplateFailed.

        `thinking`: what a template that asks is told; None: nothing.
        """
        told = {} if thinking is None else dict.fromkeys(self.switches, thinking)
        size = sum(len(text) for message in messages for text in message.values())
        self._environment.budget = Budget(_BASE + _SHARE * size, MAX_SECONDS)
        try:
            return self._template.render(
                messages=messages,
                bos_token=bos,
                eos_token=eos,
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **told,
            )
        except Exhausted as error:
            raise TemplateExhausted(str(_failed(error))) from error
        except Exception as error:  # as above
            raise _failed(error) from error

    def _strftime(self, form: str) -> str:
        if len(form) > 100:
            raise TemplateError("its date format is too long")
        return self._now.strftime(form)


def _raise_exception(message: str) -> Never:
    raise TemplateError(message)


def _failed(error: Exception) -> TemplateFailed:
    reason = " ".join(sanitize(str(error)).split())[:200] or type(error).__name__
    return TemplateFailed(
        f"the model's chat template failed ({reason}): take another file of this model, or tell its maker"
    )
