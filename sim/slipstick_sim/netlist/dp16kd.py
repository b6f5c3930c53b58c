"""A model of ECP5's block RAM DP16KD, for benches of what synthesis makes for that chip.

As far as Yosys and Slipstick use it: ports of 1 to 18 bits each, or one that writes and one that
reads where either has 36; output registers; memories that begin as zeros. Anything else ends the
simulation. A word that is read by one port while the other writes it comes out inverted: no block
may use it.
"""


def _bus(name: str, bits: int) -> str:
    return ", ".join(f"{name}{k}" for k in reversed(range(bits)))


def _port(p: str) -> str:
    """The declarations of a port."""
    inputs = [_bus(f"DI{p}", 18), _bus(f"AD{p}", 14), _bus(f"CS{p}", 3)]
    inputs += [f"CE{p}, OCE{p}, CLK{p}, WE{p}, RST{p}"]
    return f"    input {', '.join(inputs)},\n    output {_bus(f'DO{p}', 18)}"


def _work(p: str, other: str) -> str:
    """Returns the Verilog of a port's reads and writes."""
    return f"""
    wire [13:0] ad_{p} = {{{_bus(f"AD{p}", 14)}}};
    wire [17:0] di_{p} = {{{_bus(f"DI{p}", 18)}}};
    wire [3:0] reads_{p} = reads(DATA_WIDTH_{p}, ad_{p});
    wire [3:0] writes_{p} = WE{p} && CE{p} ? writes(DATA_WIDTH_{p}, ad_{p}) : 4'b0;
    wire [35:0] given_{p} = DATA_WIDTH_{p} == 36 ? {{di_B, di_A}}
        : DATA_WIDTH_{p} == 18 ? {{2{{di_{p}}}}} : {{4{{di_{p}[8:0]}}}};
    wire [35:0] old_{p} = {{
        cells[{{ad_{p}[13:5], 2'd3}}], cells[{{ad_{p}[13:5], 2'd2}}],
        cells[{{ad_{p}[13:5], 2'd1}}], cells[{{ad_{p}[13:5], 2'd0}}]
    }};
    wire [8:0] byte_{p} = cells[ad_{p}[13:3]];
    wire [35:0] new_{p};
    genvar k_{p};
    generate for (k_{p} = 0; k_{p} < 4; k_{p} = k_{p} + 1)
        assign new_{p}[9 * k_{p} +: 9] = !writes_{p}[k_{p}] ? old_{p}[9 * k_{p} +: 9]
            : DATA_WIDTH_{p} >= 9 ? given_{p}[9 * k_{p} +: 9]
            : narrow(DATA_WIDTH_{p}, ad_{p}, byte_{p}, di_{p}[3:0]);
    endgenerate
    wire collides_{p} = ad_{p}[13:5] == ad_{other}[13:5] && |(reads_{p} & writes_{other});
    reg [35:0] read_{p} = 0, late_{p} = 0;
    always @(posedge CLK{p}) begin
        if (RST{p} || CS{p}0 || CS{p}1 || CS{p}2) $fatal(1, "DP16KD: a mode that the model lacks");
        if (CE{p}) begin
            if (!WE{p} || WRITEMODE_{p} == "READBEFOREWRITE")
                read_{p} <= select(DATA_WIDTH_{p}, ad_{p}, collides_{p} ? ~old_{p} : old_{p});
            else if (WRITEMODE_{p} == "WRITETHROUGH")
                read_{p} <= select(DATA_WIDTH_{p}, ad_{p}, new_{p});
        end
        if (OCE{p}) late_{p} <= read_{p};
        for (k = 0; k < 4; k = k + 1)
            if (writes_{p}[k]) cells[{{ad_{p}[13:5], k[1:0]}}] <= new_{p}[9 * k +: 9];
    end
    wire [35:0] word_{p} = REGMODE_{p} == "OUTREG" ? late_{p} : read_{p};
    initial if (CLK{p}MUX != "CLK{p}" || CSDECODE_{p} != "0b000"
        || (REGMODE_{p} != "NOREG" && REGMODE_{p} != "OUTREG"))
        $fatal(1, "DP16KD: a mode that the model lacks");
"""


_NAMES = [f"INITVAL_{k:02X}" for k in range(64)]

MODEL = f"""
module DP16KD #(
    parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18,
    parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG",
    parameter WRITEMODE_A = "NORMAL", parameter WRITEMODE_B = "NORMAL",
    parameter CLKAMUX = "CLKA", parameter CLKBMUX = "CLKB",
    parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000",
    parameter RESETMODE = "SYNC", parameter ASYNC_RESET_RELEASE = "SYNC", parameter GSR = "ENABLED",
    {", ".join(f"parameter [319:0] {name} = 0" for name in _NAMES)}
) (
{_port("A")},
{_port("B")}
);
    reg [8:0] cells[0:2047];
    integer k;
    initial for (k = 0; k < 2048; k = k + 1) cells[k] = 0;
    initial if ({" || ".join(f"{name} != 0" for name in _NAMES)})
        $fatal(1, "DP16KD: contents, which the model lacks");

    function [3:0] reads(input integer width, input [13:0] address);
        reads = width == 36 ? 4'b1111 : width == 18 ? 4'b0011 << {{address[4], 1'b0}}
            : 4'b0001 << address[4:3];
    endfunction
    function [3:0] writes(input integer width, input [13:0] address);
        writes = width == 36 ? address[3:0]
            : width == 18 ? {{2'b0, address[1:0]}} << {{address[4], 1'b0}}
            : 4'b0001 << address[4:3];
    endfunction
    function [35:0] select(input integer width, input [13:0] address, input [35:0] word);
        reg [8:0] single;
        begin
            single = word[9 * address[4:3] +: 9];
            case (width)
                36: select = word;
                18: select = address[4] ? word[35:18] : word[17:0];
                9: select = single;
                4: select = single[4 * address[2] +: 4];
                2: select = single[2 * address[2:1] +: 2];
                default: select = single[address[2:0]];
            endcase
        end
    endfunction
    function [8:0] narrow(
        input integer width, input [13:0] address, input [8:0] old, input [3:0] given
    );
        begin
            narrow = old;
            case (width)
                4: narrow[4 * address[2] +: 4] = given;
                2: narrow[2 * address[2:1] +: 2] = given[1:0];
                default: narrow[address[2:0]] = given[0];
            endcase
        end
    endfunction
{_work("A", "B")}{_work("B", "A")}
    always @(posedge CLKB) if (WEB && (DATA_WIDTH_A == 36 || DATA_WIDTH_B == 36))
        $fatal(1, "DP16KD: port B writes a word of 36 bits, or beside one");
    // a word of 36 bits leaves at both ports, read by port B
    wire wide = DATA_WIDTH_B == 36;
    wire [35:0] both = REGMODE_A == "OUTREG" ? late_B : read_B;
    assign {{{_bus("DOA", 18)}}} = wide ? both[17:0] : word_A[17:0];
    assign {{{_bus("DOB", 18)}}} = wide ? word_B[35:18] : word_B[17:0];
endmodule
"""
