"""Prompts written for this project, by kind: what people ask a small coder model on their own machine."""

SHOP = """class Basket:
    def __init__(self, currency):
        self.currency = currency
        self.lines = []

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError("count must be at least 1")
        self.lines.append((name, price, count))

    def total(self):
        return sum(price * count for _, price, count in self.lines)

    def receipt(self):
        rows = [f"{name} x{count}: {price * count}" for name, price, count in self.lines]
        return "\\n".join(rows + [f"total: {self.total()} {self.currency}"])
"""
HARBOUR = (
    "The harbour of Lindvik was built in 1884 with stone from the quarry at Holm. Ships brought salt and took away "
    "timber. In 1911 the railway reached the town, and the timber trade moved inland. The harbour office then rented "
    "its sheds to two boat builders, who stayed until 1963. Today a school of sailing uses the northern quay, the "
    "southern quay belongs to the fish market, and the old crane, restored in 1998, is a small museum of its own."
)

PROMPTS: dict[str, list[str]] = {
    "coding": [
        "Write a Python function that returns the longest common prefix of a list of strings, with tests.",
        "Write a Python class for an LRU cache with get and put in constant time. Explain it briefly.",
        "Write a C function that reverses a singly linked list in place, then a main that shows it.",
        "Write a small command line tool in Python that counts the words of a file and prints the ten most common.",
    ],
    "editing": [
        f"Add type hints and docstrings to this class. Answer with the whole file.\n\n```python\n{SHOP}```",
        f"Rename `lines` to `items` everywhere in this class and answer with the whole file.\n\n```python\n{SHOP}```",
        f"Add a method `remove(name)` to this class. Answer with the whole file.\n\n```python\n{SHOP}```",
    ],
    "maths": [
        "A train leaves at 9:40 and arrives at 13:05 after 240 km. What is its average speed? Show the steps.",
        "Solve 3x^2 - 12x + 9 = 0 by completing the square, step by step.",
        "Three friends share 84 marbles in the ratio 2 : 3 : 7. How many does each get? Explain.",
    ],
    "reasoning": [
        "Anna is older than Ben, Carl is younger than Ben, and Dora is older than Anna. Order them by age and explain.",
        "Is a tomato a fruit or a vegetable? Give the argument for each side, then a conclusion.",
    ],
    "chat": [
        "What should I look at when I buy a used bicycle?",
        "Explain how a refrigerator works to a ten-year-old.",
        "Give me a plan for a quiet weekend in autumn.",
    ],
    "writing": [
        "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
        "Write a poem of three stanzas about the first snow.",
    ],
    "summary": [
        f"Summarize this text in three bullet points, quoting the years:\n\n{HARBOUR}",
        f"Which facts does this text give about the sheds? Quote the sentences.\n\n{HARBOUR}",
    ],
    "translation": [
        f"Translate into German:\n\n{HARBOUR}",
        "Translate into French: The meeting has been moved to Thursday because the room is being painted.",
    ],
}

ALL = [(kind, prompt) for kind, prompts in PROMPTS.items() for prompt in prompts]
