"""A campaign whose processes end at one network: a module, as other processes import it."""

import os
import time

from slipstick.verify.random_networks.campaign import Campaign
from slipstick.verify.random_networks.network_check import Outcome


class EndingCampaign(Campaign):
    """Seed 7 ends its process, seed 9 takes no end, and all others are equal."""

    def check(self, seed: int) -> Outcome:
        if seed == 7:
            os._exit(3)
        if seed == 9:
            time.sleep(3600)
        return Outcome(seed, "equal")
