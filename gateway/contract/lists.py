"""Lists of distinct values.

Responsible for judging a list as a whole (is it one, how long, does an entry repeat) with a rule
for its entries that the caller brings. Used for allowances, hostname patterns and capabilities.
"""

from gateway.contract.faults import Check, Fault, described


def list_faults(
    value: object, entry_fault: Check, *, of: str, max_entries: int | None = None
) -> list[Fault]:
    """Every violation of "a list of distinct entries"; `of` names the entries in the plural.

    A tuple counts as a list: it is how Python holds one that does not change.
    """
    if type(value) is not list and type(value) is not tuple:
        return [Fault("", f"must be a list of {of}, not {described(value)}")]
    faults = []
    if max_entries is not None and len(value) > max_entries:
        faults.append(Fault("", f"must hold at most {max_entries} {of}, not {len(value)}"))
    seen: set[object] = set()
    for index, entry in enumerate(tuple(value)):
        sentence = entry_fault(entry)
        # An entry without a fault is a plain str, so that it may be hashed and compared.
        if sentence is None and entry in seen:
            sentence = f"must be distinct, and {described(entry)} is there already"
        if sentence is not None:
            faults.append(Fault(f"[{index}]", sentence))
        else:
            seen.add(entry)
    return faults
