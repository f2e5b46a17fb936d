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

MORE: dict[str, list[str]] = {
    "coding": [
        "Write a SQL query that finds the three customers with the highest total of orders in each country.",
        "Write a JavaScript function that debounces another function, and show how it is used.",
        "Write a Python generator that yields the prime numbers, and a test that takes the first ten.",
        "Write a shell script that renames all .jpeg files of a folder to .jpg and says how many there were.",
    ],
    "editing": [
        f"Make `receipt` print prices with two decimals. Answer with the whole file.\n\n```python\n{SHOP}```",
        f"Translate this class to TypeScript. Answer with the whole file.\n\n```python\n{SHOP}```",
    ],
    "maths": [
        "A rectangle is 7 cm longer than wide and has an area of 120 square centimetres. How wide is it?",
        "Write out the multiplication table of 7 up to 7 x 12, one line each.",
        "What is the probability of at least one six in four throws of a die? Show the steps.",
    ],
    "reasoning": [
        "All smiths are members. Some members are painters. Does it follow that some smiths are painters? Explain.",
        "You have a 3 litre jug and a 5 litre jug. How do you measure 4 litres? List every step.",
    ],
    "chat": [
        "Suggest five names for a small bakery by the sea and say what each evokes.",
        "What is the difference between a violin and a viola?",
        "I slept badly. What could I change in the evening?",
    ],
    "writing": [
        "Write a polite letter to a neighbour whose dog barks at night.",
        "Describe a railway station at five in the morning, in the present tense.",
    ],
    "summary": [
        f"Make a table of years and events from this text:\n\n{HARBOUR}",
    ],
    "translation": [
        "Translate into Spanish, keeping the code as it is: Call `total()` before `receipt()`, or the sum is stale.",
        f"Translate the first two sentences into Italian:\n\n{HARBOUR}",
    ],
}
FORTY = [*ALL, *((kind, prompt) for kind, prompts in MORE.items() for prompt in prompts)]
"""All of them: for what wants many texts more than a few timings."""
