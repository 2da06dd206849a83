"""What the host knows of a saved number without reading it."""

import torch
from pretended import Pretend, Pretended

from vantage.memory.host_count import HostCount


def test_a_device_is_asked_only_where_the_bounds_leave_it_open():
    with Pretend() as mode:
        buffer, known = Pretended(torch.tensor(3)), HostCount()
        assert known.exact(buffer) == 3 and len(mode.waits) == 1
        known.add(buffer, 2, 2)
        assert known.exact(buffer) == 5 and known.lower_bound(buffer) == 5 and len(mode.waits) == 1
        known.add(buffer, torch.full((), 1, device=buffer.device), 4)  # from 5 to 9
        assert known.lower_bound(buffer) == 5 and known.at_least(buffer, 5) and not known.at_least(buffer, 10)
        assert len(mode.waits) == 1
        assert not known.at_least(buffer, 7) and len(mode.waits) == 2  # read: it is 6
        assert known.at_least(buffer, 6) and known.exact(buffer) == 6 and len(mode.waits) == 2


def test_what_others_write_or_replace_is_read_again():
    buffer, known = torch.tensor(3), HostCount()
    assert known.exact(buffer) == 3
    buffer.fill_(7)
    assert known.exact(buffer) == 7
    assert known.exact(torch.tensor(9)) == 9
    flag = torch.tensor(False)
    assert not known.at_least(flag, 1)
    flag.fill_(True)
    assert known.at_least(flag, 1)
