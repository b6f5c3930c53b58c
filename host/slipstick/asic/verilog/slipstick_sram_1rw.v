// A static memory with one port that reads or writes: the behavioural model of the wrapper that a
// macro of the process takes the place of. Names, polarities and timing are OpenRAM's.
//
// In a cycle in which csb0 is 0 the port writes (web0 0) the bits of din0 whose wmask0 is 1, or
// reads (web0 1): the word at addr0 is at dout0 in the next cycle, and only in the next: after any
// other cycle dout0 is undefined. Contents are undefined until they are written.
module slipstick_sram_1rw #(
    parameter WORDS = 256,
    parameter BITS = 32,
    parameter WRITE_BITS = BITS,  // that one bit of wmask0 stands for
    parameter ADDRESS_BITS = 8,
    parameter MASK_BITS = BITS / WRITE_BITS
) (
    input clk0,
    input csb0,
    input web0,
    input [MASK_BITS-1:0] wmask0,
    input [ADDRESS_BITS-1:0] addr0,
    input [BITS-1:0] din0,
    output reg [BITS-1:0] dout0
);
    reg [BITS-1:0] words[0:WORDS-1];
    integer part;

    always @(posedge clk0) begin
        dout0 <= !csb0 && web0 ? words[addr0] : {BITS{1'bx}};
        for (part = 0; part < MASK_BITS; part = part + 1)
            if (!csb0 && !web0 && wmask0[part])
                words[addr0][part*WRITE_BITS+:WRITE_BITS] <= din0[part*WRITE_BITS+:WRITE_BITS];
    end
endmodule
