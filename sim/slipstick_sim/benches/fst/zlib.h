// Stands in for zlib, whose header Verilator's waveform writer wants and few machines have: a
// valid zlib stream of stored blocks. The writer keeps the plain bytes where they are shorter.
#pragma once
#include <cstdint>
#include <cstring>

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;

constexpr int Z_OK = 0;
constexpr int Z_BUF_ERROR = -5;
constexpr uLong Z_STORED_BLOCK = 65535;

inline uLong compressBound(uLong size) { return size + 5 * (size / Z_STORED_BLOCK + 1) + 6; }

inline uint32_t adler32_of(const Bytef* data, uLong size) {
    uint32_t low = 1, high = 0;
    for (uLong i = 0; i < size; ++i) {
        low = (low + data[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

inline int compress2(Bytef* target, uLongf* target_size, const Bytef* source, uLong size, int) {
    if (*target_size < compressBound(size)) return Z_BUF_ERROR;
    Bytef* out = target;
    *out++ = 0x78;
    *out++ = 0x01;
    uLong done = 0;
    do {
        const uLong length = size - done < Z_STORED_BLOCK ? size - done : Z_STORED_BLOCK;
        *out++ = done + length == size;
        *out++ = static_cast<Bytef>(length);
        *out++ = static_cast<Bytef>(length >> 8);
        *out++ = static_cast<Bytef>(~length);
        *out++ = static_cast<Bytef>(~length >> 8);
        std::memcpy(out, source + done, length);
        out += length;
        done += length;
    } while (done < size);
    const uint32_t check = adler32_of(source, size);
    for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<Bytef>(check >> shift);
    *target_size = static_cast<uLongf>(out - target);
    return Z_OK;
}
