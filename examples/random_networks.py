"""Checks random networks against their references, without the RTL.

Draws ten networks for sim-small from a seed. Prints how many elements were compared, and how many
of them differ from tflm or from the ONNX rule.
"""

from slipstick.targets import find_target
from slipstick.verify.random_networks.campaign import Campaign

campaign = Campaign(networks=10, seed=1, configuration=find_target("sim-small").configuration)
elements = mismatches = 0
for seed in range(campaign.seed, campaign.seed + campaign.networks):
    recipe = campaign.recipe(seed)
    outcome = campaign.check(seed)
    elements += outcome.elements
    mismatches += outcome.mismatches
    print(f"network {seed}: {len(recipe.layers)} layers, {outcome.status}")
print(f"{elements:,} elements compared, {mismatches} mismatches")
