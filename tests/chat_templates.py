"""Chat templates written for the tests, in the shapes that models bring; none is a model's own."""

CHATML = """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role != 'system' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
"""A default system prompt, everything else as it is."""

TRIMMING = """{{ bos_token }}{% for message in messages %}
<|im_start|>{{ message['role'] }}

{{ message['content'] | trim }}<|im_end|>{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant

{% endif %}
"""
"""An opening token, and every message trimmed."""

NO_SYSTEM = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate') }}
    {%- endif %}
    {%- set role = 'model' if message.role == 'assistant' else message.role %}
    {{- '<|im_start|>' ~ role ~ '\\n' ~ message.content.strip() ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>model\\n' }}{% endif %}
"""
"""Refuses a system prompt and neighbours of one role."""

DEAF = """{% for message in messages if message.role != 'system' %}
<|im_start|>{{ message.role }}:{{ message.content }}<|im_end|>
{% endfor %}
<|im_start|>assistant:"""
"""Leaves out the system prompt without a word."""

THINKING = """{%- set ns = namespace(last=0) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == 'user' and not ns.last %}{% set ns.last = index %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\\n' }}
"""
"""Strips the thoughts of earlier answers."""

BRACKETS = """{%- macro turn(text) %} [INST] {{ text }} [/INST]{% endmacro -%}
{{ bos_token }}{% for message in messages %}
{% if message.role == 'user' %}{{ turn(message.content) }}{% else %}{{ message.content }}{{ eos_token }}{% endif %}
{% endfor %}"""
"""No roles as words, the end token after each answer."""

EVERY = {
    "chatml": CHATML,
    "trimming": TRIMMING,
    "no_system": NO_SYSTEM,
    "deaf": DEAF,
    "thinking": THINKING,
    "brackets": BRACKETS,
}
