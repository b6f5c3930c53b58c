"""A model of ECP5's MULT18X18D, for benches of what is elaborated for that chip.

As far as Slipstick uses it: operands from the ports A and B, each of operand, pipeline and output
registers there or not, by clock CLK0. Written from the vendor's description of the block; anything
else ends the simulation. CLK0_DIV stands for the clock of the high speed mode: it is left at its
default, ENABLED, as the vendor's synthesis leaves it for blocks at full rate.
"""

from ..toolchain import convert_to_verilog

MODEL = """
module MULT18X18D #(
    parameter REG_INPUTA_CLK = "NONE", parameter REG_INPUTA_CE = "CE0",
    parameter REG_INPUTA_RST = "RST0",
    parameter REG_INPUTB_CLK = "NONE", parameter REG_INPUTB_CE = "CE0",
    parameter REG_INPUTB_RST = "RST0",
    parameter REG_PIPELINE_CLK = "NONE", parameter REG_PIPELINE_CE = "CE0",
    parameter REG_PIPELINE_RST = "RST0",
    parameter REG_OUTPUT_CLK = "NONE", parameter REG_OUTPUT_CE = "CE0",
    parameter REG_OUTPUT_RST = "RST0",
    parameter SOURCEB_MODE = "B_SHIFT", parameter MULT_BYPASS = "DISABLED",
    parameter HIGHSPEED_CLK = "NONE", parameter CLK0_DIV = "ENABLED",
    parameter GSR = "ENABLED", parameter RESETMODE = "SYNC"
) (
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
    input CLK0, CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19,
              P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1,
              P0
);
    wire signed [17:0] a = {
        A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0
    };
    wire signed [17:0] b = {
        B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0
    };
    wire [3:0] enables = {CE3, CE2, CE1, CE0};
    wire [3:0] resets = {RST3, RST2, RST1, RST0};

    initial begin
        if (SOURCEB_MODE != "B_SHIFT" || MULT_BYPASS != "DISABLED" || HIGHSPEED_CLK != "NONE"
            || CLK0_DIV != "ENABLED" || RESETMODE != "SYNC")
            $fatal(1, "MULT18X18D: a mode that the model lacks");
    end
    always @(posedge CLK0) begin
        if (SOURCEA || SOURCEB) $fatal(1, "MULT18X18D: operands from a neighbour");
        if (CLK1 || CLK2 || CLK3) $fatal(1, "MULT18X18D: a clock other than CLK0");
    end

    wire signed [18:0] a_in, b_in, a_held, b_held;
    assign a_in = {SIGNEDA & a[17], a};
    assign b_in = {SIGNEDB & b[17], b};
    wire signed [37:0] product = a_held * b_held;
    wire [35:0] piped, p;

    mult18x18d_register #(19, REG_INPUTA_CLK, REG_INPUTA_CE, REG_INPUTA_RST)
        operand_a (CLK0, enables, resets, a_in, a_held);
    mult18x18d_register #(19, REG_INPUTB_CLK, REG_INPUTB_CE, REG_INPUTB_RST)
        operand_b (CLK0, enables, resets, b_in, b_held);
    mult18x18d_register #(36, REG_PIPELINE_CLK, REG_PIPELINE_CE, REG_PIPELINE_RST)
        pipeline (CLK0, enables, resets, product[35:0], piped);
    mult18x18d_register #(36, REG_OUTPUT_CLK, REG_OUTPUT_CE, REG_OUTPUT_RST)
        result (CLK0, enables, resets, piped, p);
    assign {
        P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19,
              P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1,
              P0
    } = p;
endmodule

// One rank of registers: none, or clocked by CLK0 with the enable and the reset that are named.
module mult18x18d_register #(
    parameter WIDTH = 1, parameter CLK = "NONE", parameter CE = "CE0", parameter RST = "RST0"
) (
    input clock, input [3:0] enables, input [3:0] resets,
    input [WIDTH-1:0] d, output [WIDTH-1:0] q
);
    localparam integer ENABLE = CE == "CE3" ? 3 : CE == "CE2" ? 2 : CE == "CE1" ? 1 : 0;
    localparam integer RESET = RST == "RST3" ? 3 : RST == "RST2" ? 2 : RST == "RST1" ? 1 : 0;
    reg [WIDTH-1:0] held = 0;
    initial if (CLK != "NONE" && CLK != "CLK0") $fatal(1, "MULT18X18D: a clock other than CLK0");
    always @(posedge clock)
        if (resets[RESET]) held <= 0;
        else if (enables[ENABLE]) held <= d;
    assign q = CLK == "NONE" ? d : held;
endmodule
"""


def verilog(rtlil: str, top: str) -> str:
    """The component as Yosys writes it, and the model of the block that it instantiates."""
    return convert_to_verilog(rtlil) + MODEL
