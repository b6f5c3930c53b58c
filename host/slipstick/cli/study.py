"""``slipstick study``: experiments that say what a number format costs a network."""

import typer

from .study_accuracy import lns_accuracy_command
from .study_mnist import lns_mnist_command
from .study_price import price_list_command
from .study_training import training_command
from .study_training_aware import training_aware_command
from .study_training_parallel import training_parallel_command

app = typer.Typer(
    no_args_is_help=True, help="Experiments that say what a number format costs a network."
)


@app.callback()
def _studies() -> None:
    pass


app.command("lns-accuracy")(lns_accuracy_command)
app.command("lns-mnist")(lns_mnist_command)
app.command("price-list")(price_list_command)
app.command("training")(training_command)
app.command("training-parallel")(training_parallel_command)
app.command("training-aware")(training_aware_command)
