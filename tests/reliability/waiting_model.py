"""A model of one occurrence in one partition, at which two processes are, and the search of all its states.

It is what `dispatch`, `taking`, `crew` and `invocations` do, one request to storage a step. Time is left out: a
ticket may come, a lock run out and a pass stop waiting at any moment. Slots are left out too: a pass that wants
one may get it or not.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

DUE, RUNS = "due", "runs"  # kinds of tickets
MOST_TICKETS = 2  # on the way and in hand: further ones would do the same

# The rules on which all rests, each to be broken by a test.
VERSION = "a run is missed at the version that was read"
LOCKED = "a run is executed only once it is locked, at the version that was read"
EXPIRED = "a lock is taken over only once its holder has stopped"
UNBEGUN = "only a run that nobody ever locked is missed"
RELIEVED = "an invocation returns only after the next one has taken its place"
DETECTION = "detection finds what no ticket leads to"
RULES = frozenset({VERSION, LOCKED, EXPIRED, UNBEGUN, RELIEVED, DETECTION})

CRASH, DRAIN, LOSE, DOUBLE, FAIL, LAST, STALL = "crash", "drain", "lose", "double", "fail", "last", "stall"


class Occurrence(NamedTuple):
    """The occurrence's row, and what has come of it. `place`: timer, run, or past."""

    place: str = "timer"
    was_locked: bool = False
    version: int = 0
    called: bool = False
    end: str = ""
    ends: int = 0


class Pass(NamedTuple):
    """A pass that has not fired yet, in an invocation of its own, or one that waits for a slot. `next`: its next
    request; `seen`: the version of the row that it has read."""

    ticket: str
    next: str = "read"
    seen: int = -1


class Process(NamedTuple):
    """A process, with up to one pass that has not fired yet, and up to one that `lingers`: waits for a slot.

    Under way besides: `holds`, the versions of the run that it executes, and whether each was called; and
    `misses`, those that it records as missed. `kept`: tickets of the invocations that are open for all that.
    `alone`: the last one had to return.
    """

    passes: tuple[Pass, ...] = ()
    holds: tuple[tuple[int, bool], ...] = ()
    misses: tuple[int, ...] = ()
    lingers: tuple[Pass, ...] = ()
    kept: tuple[str, ...] = ()
    drains: bool = False
    alone: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way after firing."""
        return bool(self.holds or self.misses or self.lingers)


class State(NamedTuple):
    """All there is. `faults`: what may still go wrong."""

    occurrence: Occurrence
    processes: tuple[Process, ...]
    tickets: tuple[str, ...]
    late: bool
    faults: tuple[str, ...]

    @property
    def all_tickets(self) -> int:
        """The tickets on the way and those that open invocations hold."""
        return len(self.tickets) + sum(len(p.kept) + len(p.passes) for p in self.processes)

    @property
    def is_good(self) -> bool:
        """Whether all is over, and the occurrence recorded."""
        quiet = not any(p.is_busy or p.passes or p.kept for p in self.processes)
        return quiet and not self.tickets and self.occurrence.place == "past"


Step = tuple[str, State]
Ways = dict[State, tuple[State, str] | None]  # from where, and how, each state was first reached


@dataclass
class Found:
    """What a search has found: the number of states, and the way to the first one that is wrong, and why."""

    states: int
    wrong: str = ""
    way: list[str] = field(default_factory=list)


def search(faults: tuple[str, ...], rules: frozenset[str] = RULES) -> Found:
    """All states that can be reached with these faults. Wrong is one that `fault_of` names, or from which no good
    end can be reached without a further fault."""
    first = State(Occurrence(), (Process(), Process()), (DUE,), False, tuple(sorted(faults)))
    came: Ways = {first: None}
    before: defaultdict[State, list[State]] = defaultdict(list)
    ahead = deque([first])
    while ahead:
        state = ahead.popleft()
        if wrong := fault_of(state):
            return Found(len(came), wrong, _way(came, state))
        for label, step in Model(state, rules).steps():
            following = step._replace(processes=tuple(sorted(step.processes)))  # which is which matters to none
            if following.faults == state.faults:
                before[following].append(state)
            if following not in came:
                came[following] = (state, label)
                ahead.append(following)
    good = _leading_to({state for state in came if state.is_good}, before)
    stuck = next((state for state in came if state not in good), None)
    return Found(len(came), "no good end can be reached", _way(came, stuck)) if stuck else Found(len(came))


def _way(came: Ways, state: State) -> list[str]:
    """The steps that lead to a state."""
    labels: list[str] = []
    while step := came[state]:
        state = step[0]
        labels.append(step[1])
    return labels[::-1]


def _leading_to(states: set[State], before: Mapping[State, Sequence[State]]) -> set[State]:
    """These states and all from which they can be reached."""
    found, ahead = set(states), list(states)
    while ahead:
        new = set(before.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def fault_of(state: State) -> str:
    """What is wrong with a state, '' if nothing is."""
    one = state.occurrence
    if sum(called for p in state.processes for _, called in p.holds) > 1:
        return "it is executed by two at once"
    if one.called and one.end == "missed":
        return "it is called and missed"
    if one.ends > 1:
        return "its end is recorded twice"
    if any(len(p.kept) > 1 for p in state.processes):
        return "two invocations are kept"
    if any(p.is_busy and not (p.kept or p.passes or p.alone) for p in state.processes):
        return "no invocation is open although something is under way"
    return ""


class Model:
    """The steps that may come next in a state."""

    def __init__(self, state: State, rules: frozenset[str]) -> None:
        self._state = state
        self._one = state.occurrence
        self._rules = rules

    def steps(self) -> Iterator[Step]:
        """Each with what it is called."""
        state = self._state
        if not state.late:
            yield "it gets late", state._replace(late=True)
        yield from self._detect()
        for number, process in enumerate(state.processes):
            for label, following in self._of_process(number, process):
                yield f"{number}: {label}", following
        for kind in set(state.tickets):
            yield from self._fault(LOSE, f"ticket {kind} is lost", self._without(state, kind))
            yield from self._fault(DOUBLE, f"ticket {kind} is doubled", self._sent(state, kind))

    def _of_process(self, number: int, process: Process) -> Iterator[Step]:
        yield from self._receive(number, process)
        for each in process.passes:
            yield from self._pass(number, process, each)
        yield from self._under_way(number, process)
        yield from self._invocation(number, process)
        yield from self._fault(CRASH, "dies", self._dead(number))
        if not process.drains:
            yield from self._fault(DRAIN, "is drained", self._with(number, process._replace(drains=True)))

    # Tickets

    def _sent(self, state: State, kind: str) -> State:
        if state.all_tickets >= MOST_TICKETS:
            return state
        return state._replace(tickets=tuple(sorted([*state.tickets, kind])))

    def _without(self, state: State, kind: str) -> State:
        tickets = list(state.tickets)
        tickets.remove(kind)
        return state._replace(tickets=tuple(tickets))

    def _detect(self) -> Iterator[Step]:
        if DETECTION in self._rules and not self._state.tickets:
            if self._one.place == "timer":
                yield "detection sends", self._sent(self._state, DUE)
            elif self._is_free():
                yield "detection sends", self._sent(self._state, RUNS)

    def _receive(self, number: int, process: Process) -> Iterator[Step]:
        if process.drains or process.passes:
            return
        for kind in set(self._state.tickets):
            following = process._replace(passes=(Pass(kind),))
            yield f"receives {kind}", self._without(self._with(number, following), kind)

    # Invocations

    def _invocation(self, number: int, process: Process) -> Iterator[Step]:
        if process.kept:
            if not process.is_busy and not process.passes:
                yield "the invocation returns", self._with(number, process._replace(kept=()))
            if process.is_busy and not self._state.tickets:
                kept = process.kept if RELIEVED in self._rules else ()
                following = self._with(number, process._replace(kept=kept))
                yield "the invocation is old, and calls for another", self._sent(following, RUNS)
            last = process._replace(kept=(), alone=True)
            yield from self._fault(LAST, "the invocation must end", self._with(number, last))
        elif process.drains and not process.passes:
            yield "is drained, and killed", self._dead(number)

    def _fired(self, number: int, process: Process) -> State:
        """The pass has fired: its invocation takes the place of the one kept; or returns, nothing being under
        way."""
        (each,) = process.passes
        following = process._replace(passes=())
        if following.is_busy:
            following = following._replace(kept=(each.ticket,), alone=False)
        return self._with(number, following)

    def _dead(self, number: int) -> State:
        """The process has died: the tickets of its open invocations come again, and it starts anew."""
        process = self._state.processes[number]
        state = self._with(number, Process())
        for kind in [*process.kept, *(each.ticket for each in process.passes)]:
            state = self._sent(state, kind)
        return state

    # Passes

    def _pass(self, number: int, process: Process, each: Pass) -> Iterator[Step]:
        yield from self._failed(number, process, each, self._one)
        if each.next == "read":
            wanted = self._one.place == "timer" if each.ticket == DUE else self._is_free()
            step = {DUE: "fire", RUNS: "take"}[each.ticket]
            following = process._replace(passes=(Pass(each.ticket, step, self._one.version),))
            yield (
                f"reads for {each.ticket}",
                self._with(number, following) if wanted else self._fired(number, process),
            )
        elif each.next == "fire":
            yield from self._fire(number, process, each)
        elif each.next == "take":
            yield from self._take(number, process, each)
        else:
            yield each.next, self._sent(self._fired(number, process), RUNS)
            if each.next == "call":
                yield "has called already", self._fired(number, process)

    def _failed(self, number: int, process: Process, each: Pass, one: Occurrence) -> Iterator[Step]:
        """Storage fails a pass before it has fired. Its ticket comes again; what is under way keeps the
        invocation."""
        following = self._fired(number, process)._replace(occurrence=one)
        yield from self._fault(FAIL, f"fails to {each.next}", self._sent(following, each.ticket))

    def _fire(self, number: int, process: Process, each: Pass) -> Iterator[Step]:
        if self._one.version != each.seen:
            yield "has met another", self._fired(number, process)
        elif self._state.late:
            yield "fires it as missed", self._ended("missed", self._fired(number, process))
        else:
            locked = self._locked()
            state = self._fired(number, self._holding(process, locked))
            yield "fires it", state._replace(occurrence=locked)
            waits = process._replace(passes=(Pass(each.ticket, "announce"),))
            state = self._fired(number, process) if process.lingers else self._with(number, waits)
            yield "fires it, without a slot", state._replace(occurrence=self._written(place="run"))
            yield from self._failed(number, process, each, locked)

    def _take(self, number: int, process: Process, each: Pass) -> Iterator[Step]:
        for label, following, one in self._taking(process, each.seen):
            yield label, self._fired(number, following)._replace(occurrence=one)
        if self._one.version == each.seen:
            yield from self._failed(number, process, each, self._locked())
        if process.lingers:
            yield "leaves it to who waits for a slot", self._fired(number, process)
        else:
            following = process._replace(lingers=(Pass(RUNS, "wait"),), passes=(Pass(RUNS, "call"),))
            yield "gets no slot", self._with(number, following)

    def _taking(self, process: Process, seen: int) -> Iterator[tuple[str, Process, Occurrence]]:
        """What a pass does with a run that it has read as free, and has a slot for."""
        if self._is_too_late():
            misses = tuple(sorted({*process.misses, seen}))
            yield "takes it to be missed", process._replace(misses=misses), self._one
        elif self._one.version == seen or (LOCKED not in self._rules and self._one.place == "run"):
            locked = self._locked()
            yield "takes it", self._holding(process, locked), locked
        else:
            yield "is too slow to take it", process, self._one

    # What is under way after firing

    def _under_way(self, number: int, process: Process) -> Iterator[Step]:
        for hold in process.holds:
            yield from self._execute(number, process, hold)
        for seen in process.misses:
            misses = list(process.misses)
            misses.remove(seen)
            following = self._with(number, process._replace(misses=tuple(misses)))
            same = self._one.version == seen or VERSION not in self._rules
            yield "records it as missed", self._ended("missed", following) if same else following
            yield from self._fault(FAIL, "fails to record it", following)
        for each in process.lingers:
            yield from self._linger(number, process, each)

    def _execute(self, number: int, process: Process, hold: tuple[int, bool]) -> Iterator[Step]:
        version, called = hold
        holds = list(process.holds)
        holds.remove(hold)
        following = self._with(number, process._replace(holds=tuple(holds)))
        if not called:
            state = self._with(number, process._replace(holds=tuple(sorted([*holds, (version, True)]))))
            yield "calls", state._replace(occurrence=self._one._replace(called=True))
        else:
            completed = self._ended("called", following)
            yield "completes it", completed if self._one.version == version else following
            if self._one.version == version:
                yield from self._fault(FAIL, "completes it, the answer lost", completed)
            yield from self._fault(FAIL, "fails to complete it", following)
        yield from self._fault(STALL, "loses the lease", following)

    def _linger(self, number: int, process: Process, each: Pass) -> Iterator[Step]:
        """Takes the run as soon as there is a slot, or calls for others when its time is over."""

        def on(*lingers: Pass) -> State:
            return self._with(number, process._replace(lingers=lingers))

        call, wait = Pass(RUNS, "call"), Pass(RUNS, "wait")
        if each.next == "wait":
            yield "there is a slot", on(Pass(RUNS, "read"))
            yield "has waited long enough", on(call)
        elif each.next == "read":
            yield "reads again", on(Pass(RUNS, "take", self._one.version)) if self._is_free() else on()
            yield from self._fault(FAIL, "fails to read again", on(call))
        elif each.next == "take":
            for label, following, one in self._taking(process, each.seen):
                yield label, self._with(number, following._replace(lingers=()))._replace(occurrence=one)
            yield "gets no slot", on(wait)
            yield from self._fault(FAIL, "fails to take", on(call))
        else:
            yield "calls for others", self._sent(on(), RUNS)
            yield "has called already", on()
            yield from self._fault(FAIL, "fails to call", on())

    # The row

    def _is_free(self) -> bool:
        """Whether the run is unlocked, or its lock has run out: whoever held it has died, or stopped."""
        held = any(version == self._one.version for p in self._state.processes for version, _ in p.holds)
        return self._one.place == "run" and not (held and EXPIRED in self._rules)

    def _is_too_late(self) -> bool:
        return self._state.late and not (self._one.was_locked and UNBEGUN in self._rules)

    def _written(self, **changed: object) -> Occurrence:
        return self._one._replace(version=self._one.version + 1, **changed)  # type: ignore[arg-type]

    def _locked(self) -> Occurrence:
        return self._written(place="run", was_locked=True)

    def _holding(self, process: Process, locked: Occurrence) -> Process:
        return process._replace(holds=tuple(sorted([*process.holds, (locked.version, False)])))

    def _ended(self, end: str, state: State) -> State:
        return state._replace(occurrence=self._written(place="past", end=end, ends=self._one.ends + 1))

    def _with(self, number: int, process: Process) -> State:
        processes = list(self._state.processes)
        processes[number] = process
        return self._state._replace(processes=tuple(processes))

    def _fault(self, fault: str, label: str, following: State) -> Iterator[Step]:
        """The step, if such a fault is still to come."""
        if fault in self._state.faults:
            faults = list(self._state.faults)
            faults.remove(fault)
            yield label, following._replace(faults=tuple(faults))
