// The I/O cells of an ECP5 that LiteEth has instances of, without their delays.

module DELAYG(input A, output Z);
    parameter DEL_MODE = "USER_DEFINED";
    parameter DEL_VALUE = 0;
    assign Z = A;
endmodule

// D0 while the clock is high, D1 while it is low.
module ODDRX1F(input SCLK, input RST, input D0, input D1, output Q);
    reg high = 0, low = 0;
    always @(posedge SCLK) begin
        high <= D0;
        low <= D1;
    end
    assign Q = SCLK ? high : low;
endmodule

// With the next rising edge, Q0 is what a rising edge found, and Q1 what the falling one after it.
module IDDRX1F(input SCLK, input RST, input D, output reg Q0, output reg Q1);
    reg rising = 0, falling = 0;
    always @(posedge SCLK) begin
        rising <= D;
        Q0 <= rising;
        Q1 <= falling;
    end
    always @(negedge SCLK) falling <= D;
endmodule

module FD1S3BX(input CK, input D, input PD, output reg Q = 1);
    always @(posedge CK or posedge PD)
        if (PD) Q <= 1;
        else Q <= D;
endmodule

module IFS1P3BX(input SCLK, input SP, input PD, input D, output reg Q = 1);
    always @(posedge SCLK) if (SP) Q <= D;
endmodule

module OFS1P3BX(input SCLK, input SP, input PD, input D, output reg Q = 1);
    always @(posedge SCLK) if (SP) Q <= D;
endmodule
