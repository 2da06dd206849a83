"""What the host knows of a saved number without reading it."""

import torch
from pretend_gpu import Pretend, Pretended

from vantage.memory.host_count import HostCount


def test_a_device_is_asked_only_where_the_bounds_leave_it_open():
    with Pretend() as mode:
        buffer, host_count = Pretended(torch.tensor(3)), HostCount()
        assert host_count.exact(buffer) == 3 and len(mode.waits) == 1
        host_count.add(buffer, 2, 2)
        assert host_count.exact(buffer) == 5 and host_count.lower_bound(buffer) == 5 and len(mode.waits) == 1
        host_count.add(buffer, torch.full((), 1, device=buffer.device), 4)  # from 5 to 9
        assert (
            host_count.lower_bound(buffer) == 5
            and host_count.at_least(buffer, 5)
            and not host_count.at_least(buffer, 10)
        )
        assert len(mode.waits) == 1
        assert not host_count.at_least(buffer, 7) and len(mode.waits) == 2  # read: it is 6
        assert host_count.at_least(buffer, 6) and host_count.exact(buffer) == 6 and len(mode.waits) == 2


def test_what_others_write_or_replace_is_read_again():
    buffer, host_count = torch.tensor(3), HostCount()
    assert host_count.exact(buffer) == 3
    buffer.fill_(7)
    assert host_count.exact(buffer) == 7
    assert host_count.exact(torch.tensor(9)) == 9
    flag = torch.tensor(False)
    assert not host_count.at_least(flag, 1)
    flag.fill_(True)
    assert host_count.at_least(flag, 1)
