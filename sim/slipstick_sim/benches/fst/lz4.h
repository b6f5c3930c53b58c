// Stands in for the LZ4 library, which Verilator's waveform writer wants and few machines have:
// a valid LZ4 block that holds the data as it is, one run of literals.
#pragma once
#include <cstring>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

inline int LZ4_compress_default(const char* source, char* target, int size, int capacity) {
    if (capacity < LZ4_compressBound(size)) return 0;
    unsigned char* out = reinterpret_cast<unsigned char*>(target);
    // The token's high half is the number of literals, 15 saying that more bytes add to it.
    if (size < 15) {
        *out++ = static_cast<unsigned char>(size << 4);
    } else {
        *out++ = 0xf0;
        int rest = size - 15;
        for (; rest >= 255; rest -= 255) *out++ = 255;
        *out++ = static_cast<unsigned char>(rest);
    }
    std::memcpy(out, source, static_cast<std::size_t>(size));
    return static_cast<int>(out - reinterpret_cast<unsigned char*>(target)) + size;
}
