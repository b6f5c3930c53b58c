"""cocotb's Verilator runner, with only the top's ports open to the tests.

cocotb opens every signal of the model (``--public-flat-rw``). For a design of some size most of
the time then goes into compiling the tables of their names, and the model runs slower.
"""

from pathlib import Path

from cocotb_tools.runner import Verilator


class PortsVerilator(Verilator):
    """Builds models of which tests see the ports of the top and nothing else."""

    def _build_command(self) -> list:
        control = Path(self.build_dir) / "ports.vlt"
        control.parent.mkdir(parents=True, exist_ok=True)
        control.write_text(
            f'`verilator_config\npublic_flat_rw -module "{self.hdl_toplevel}" -var "*"\n'
        )
        commands = super()._build_command()
        for command in commands:
            if "--public-flat-rw" in command:
                command[command.index("--public-flat-rw")] = str(control)
        return commands
