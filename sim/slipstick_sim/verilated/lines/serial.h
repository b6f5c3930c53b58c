// The pins of a UART: ten bits a byte. A byte counts as taken when its start bit begins.
//
// SERIAL_DIVISOR: clock cycles of a bit at the core's end. This end's may be of another length, and
// both directions may be disturbed.

constexpr int64_t kParts = 256;  // of a cycle
constexpr int64_t kBit = SERIAL_DIVISOR;

// One direction's disturbances: chance decides when, and which.
class Disturbance {
public:
    enum Kind { kGlitch, kBits, kBreak, kKinds };

    void begin(uint64_t seed, uint64_t mean_cycles) {
        state_ = seed * 0x9e3779b97f4a7c15u | 1;
        mean_ = mean_cycles;
        left_ = 0;
        wait();
    }

    // The level that arrives.
    bool apply(bool level) {
        if (mean_ == 0) return level;
        if (left_ == 0) {
            if (quiet_-- != 0) return level;
            start();
        }
        if (--left_ == 0) wait();
        return kind_ != kBreak && !level;
    }

    uint64_t counts[kKinds] = {};

private:
    uint64_t draw(uint64_t below) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return (state_ >> 11) % below;
    }

    void wait() { quiet_ = mean_ ? draw(2 * mean_) : 0; }

    // A glitch inverts for less than half a bit, bits are inverted for up to three of them, a break
    // is low for longer than any byte.
    void start() {
        const uint64_t chance = draw(8);
        kind_ = chance < 3 ? kGlitch : chance < 6 ? kBits : kBreak;
        if (kind_ == kGlitch) left_ = 1 + draw(kBit > 2 ? (kBit - 1) / 2 : 1);
        if (kind_ == kBits) left_ = kBit / 2 + 1 + draw(3 * kBit);
        if (kind_ == kBreak) left_ = 10 * kBit + draw(15 * kBit);
        ++counts[kind_];
    }

    Kind kind_ = kGlitch;
    uint64_t state_ = 1, mean_ = 0, quiet_ = 0, left_ = 0;
};

class Line : public PlainLine {
public:
    // The host's end outlives the core.
    void rest(Vtop& top) {
        top.rx = 1;
        shift_ = bits_ = heard_ = bit_ = 0;
        left_ = since_ = 0;
        level_ = high_ = true;
        taken_ = hearing_ = false;
    }

    void disturb(uint64_t seed, uint64_t mean_cycles) {
        inward_.begin(2 * seed + 1, mean_cycles);
        outward_.begin(2 * seed + 2, mean_cycles);
    }

    void set_bit_length(uint64_t parts) { length_ = int64_t(parts); }

    void disturbances(uint64_t* counts) const {
        std::memcpy(counts, inward_.counts, sizeof inward_.counts);
        std::memcpy(counts + Disturbance::kKinds, outward_.counts, sizeof outward_.counts);
    }

    void drive(Vtop& top, const uint8_t* offered) {
        taken_ = left_ <= 0 && bits_ == 0 && offered;
        if (taken_) {
            shift_ = 0x200u | unsigned(*offered) << 1;
            bits_ = 10;
        }
        if (left_ <= 0 && bits_ != 0) {
            level_ = shift_ & 1;
            shift_ >>= 1;
            --bits_;
            left_ += length_;
        }
        if (left_ > 0) left_ -= kParts;
        top.rx = inward_.apply(level_);
    }

    // Looks at the middle of each bit; drops a byte whose stop bit is low.
    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        const bool level = outward_.apply(top.tx);
        if (!hearing_ && !level && high_) {
            hearing_ = true;
            heard_ = bit_ = 0;
            since_ = -(length_ / 2);
        }
        high_ = level;
        if (hearing_ && since_ >= 0) {
            heard_ |= unsigned(level) << bit_;
            since_ -= length_;
            if (bit_++ == 9) {
                hearing_ = false;
                if (heard_ >> 9 && !(heard_ & 1)) received.push_back(heard_ >> 1 & 0xff);
            }
        }
        since_ += kParts;
        return taken_;
    }

private:
    int64_t length_ = kBit * kParts;  // of a bit at this end
    unsigned shift_ = 0, bits_ = 0;   // what is sent, bits after this one
    int64_t left_ = 0;                // of the bit that is sent
    bool level_ = true, taken_ = false;
    unsigned heard_ = 0, bit_ = 0;  // what was received, and which bit is next
    int64_t since_ = 0;             // since that bit's middle
    bool hearing_ = false, high_ = true;
    Disturbance inward_, outward_;
};
