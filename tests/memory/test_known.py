"""What the host knows of a saved number without reading it."""

import torch
from pretended import Pretend, Pretended

from vantage.memory.known import Known


def test_a_device_is_asked_only_where_the_bounds_leave_it_open():
    with Pretend() as mode:
        buffer, known = Pretended(torch.tensor(3)), Known()
        assert known.exactly(buffer) == 3 and len(mode.waits) == 1
        known.add(buffer, 2, 2)
        assert known.exactly(buffer) == 5 and known.surely(buffer) == 5 and len(mode.waits) == 1
        known.add(buffer, torch.full((), 1, device=buffer.device), 4)  # from 5 to 9
        assert known.surely(buffer) == 5 and known.reached(buffer, 5) and not known.reached(buffer, 10)
        assert len(mode.waits) == 1
        assert not known.reached(buffer, 7) and len(mode.waits) == 2  # read: it is 6
        assert known.reached(buffer, 6) and known.exactly(buffer) == 6 and len(mode.waits) == 2


def test_what_others_write_or_replace_is_read_again():
    buffer, known = torch.tensor(3), Known()
    assert known.exactly(buffer) == 3
    buffer.fill_(7)
    assert known.exactly(buffer) == 7
    assert known.exactly(torch.tensor(9)) == 9
    flag = torch.tensor(False)
    assert not known.reached(flag, 1)
    flag.fill_(True)
    assert known.reached(flag, 1)
