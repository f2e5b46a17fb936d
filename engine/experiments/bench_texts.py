"""What the benchmark's prompts are about, written for it: a file to edit, texts to summarize and to translate."""


def _unwrapped(text: str) -> str:
    """Each paragraph as one line, as a text is that somebody pastes."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


WORKSHOP = '''"""Keeps the jobs of a bicycle workshop: what came in, what was done, and what it costs."""

import csv
from datetime import date, timedelta

HOURLY_RATE = 48
STORAGE_DAYS = 14


class JobError(Exception):
    """Raised when a job cannot be changed as asked."""


class Job:
    def __init__(self, number, owner, bicycle, arrived):
        self.number = number
        self.owner = owner
        self.bicycle = bicycle
        self.arrived = arrived
        self.parts = []
        self.minutes = 0
        self.finished = None

    def add_part(self, name, price, count=1):
        if self.finished is not None:
            raise JobError(f"job {self.number} is finished")
        if count < 1:
            raise JobError("count must be at least 1")
        self.parts.append((name, price, count))

    def add_work(self, minutes):
        if minutes <= 0:
            raise JobError("minutes must be above 0")
        self.minutes += minutes

    def total(self):
        parts = sum(price * count for _, price, count in self.parts)
        return parts + self.minutes / 60 * HOURLY_RATE

    def collect_by(self):
        if self.finished is None:
            return None
        return self.finished + timedelta(days=STORAGE_DAYS)


class Workshop:
    def __init__(self, name):
        self.name = name
        self.jobs = {}

    def take_in(self, owner, bicycle, arrived=None):
        number = max(self.jobs, default=0) + 1
        self.jobs[number] = Job(number, owner, bicycle, arrived or date.today())
        return self.jobs[number]

    def finish(self, number, day=None):
        job = self.jobs[number]
        job.finished = day or date.today()
        return job.total()

    def open_jobs(self):
        return [job for job in self.jobs.values() if job.finished is None]

    def export(self, path):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            for job in self.jobs.values():
                writer.writerow([job.number, job.owner, job.bicycle, job.total()])
'''
"""About 70 lines without a type hint."""

FERRY = _unwrapped(
    """\
The ferry of Aldermouth crosses the lower Senn between the old town and the farms of the eastern bank. It is
the last ferry in the county that is pulled along a chain, and the only one that still belongs to the people
who use it. The crossing is 210 metres wide, takes six minutes in calm weather, and has been made on most days
since the spring of 1871.

Before there was a ferry there was a ford. It could be walked for about five months of the year, and for the
rest the farmers had to go round by the bridge at Tillbrook, a journey of nineteen kilometres. In the winter
of 1869 two carts were lost in the ford within a week. The parish council met in the school and decided, by
eleven votes to four, to buy a ferry. "We do not ask for a bridge," the minutes say, "for a bridge is a matter
of princes. We ask for a raft and a chain." The raft was built by the cooper Jonas Reed, who had never built a
boat, and it carried two carts, eight cows or forty people. It was in use for thirty-one years.

The present boat is the third. It was launched in 1934, is eighteen metres long, and carries six cars. Its
hull is of riveted steel; the engine, which drives the wheel over which the chain runs, was replaced in 1958
and again in 1997. The chain lies on the bed of the river when the boat is not crossing, so that other boats
can pass above it. Every four years it is taken up, and each of its 4,200 links is struck with a hammer. A
good link rings. "You learn it in a day and you do not forget it," says Marta Oyelaran, who has been
ferrywoman since 2009. "The bad ones sound like a cup with a crack."

In the years after 1960 the ferry nearly came to an end. The county built a bridge at Harrow Point, only four
kilometres upstream, and stopped paying for the crossing. Passengers fell from 96,000 in 1959 to 21,000 in
1966. The boat was offered for sale, and a restaurant in the city wanted it for a terrace. Instead, 312
families on both banks bought shares of five pounds each, and the Aldermouth Ferry Society was founded on 3
March 1967. It has one rule that is not found in other societies of its kind: whoever owns a share must work
on the boat for one day in each year. Teachers, bakers and two retired judges have taken fares, painted rails
and greased the wheel. "It is the reason we are still here," says the chairman, Piet Halloran. "Nobody lets a
thing sink that he has painted himself."

Today the ferry carries about 70,000 people a year. Half of them are cyclists, since the path along the
eastern bank was opened in 2004; a quarter are children on their way to school. A crossing costs one pound, a
bicycle nothing. The society earns a little more than it spends in most years, but the hull will have to be
renewed before 2030, and this will cost about 900,000 pounds. There are two plans. The first is to build a new
boat of aluminium with an electric motor, which would be cheaper to run and need a crew of one. The second is
to keep the old boat and replace its plates one by one in the winter months, as was done at a smaller scale in
1983. The members will vote in November. Those who want the new boat say that the chain is what matters, not
the hull. Those who want the old one answer that this is what is always said before something is thrown away.
Marta Oyelaran does not say how she will vote. "The river does not mind," she says. "It only wants to be asked
every morning."
"""
)
"""About 600 words, with dates, figures and things said."""

MARKET = (
    "On Saturdays the market begins before it is light. The bakers come first, because bread is heavy and the "
    "best places are near the fountain. At seven the fishmonger opens his van, and the cats of the square take "
    "their seats. By ten nobody can hear the church clock any more. At two it is all over: a man with a broom "
    "walks across the empty square, and only the smell of oranges stays until evening."
)
NOTICE = (
    "Dear residents, the water will be turned off on Tuesday from 9 to 12 because a valve in the cellar has to be "
    "replaced. Please fill a jug beforehand and do not use the washing machine. If the work takes longer, we will "
    "put a note on the front door. We are sorry for the trouble, and the lift will run as usual."
)
