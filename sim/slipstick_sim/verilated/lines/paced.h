// The byte streams of the core alone, with a wire's timing: each byte comes at a cycle that is
// planned, through a queue of some bytes, and each byte that leaves occupies the wire for a while.

#include <deque>

class Line : public PlainLine {
public:
    void rest(Vtop& top) {
        top.i___05Fvalid = 0;
        top.i___05Fpayload = 0;
        top.o___05Fready = 1;
    }

    // A queue of depth bytes: a byte that finds it full waits if the wire can hold it back, and is
    // lost otherwise. A byte that leaves takes period 256ths of a cycle.
    void set_wire(size_t depth, bool holds_back, uint64_t period) {
        depth_ = depth;
        holds_back_ = holds_back;
        period_ = period;
    }

    // Bytes that come one in period 256ths of a cycle, the first one at a cycle.
    void plan(const uint8_t* data, size_t size, uint64_t cycle, uint64_t period) {
        for (size_t k = 0; k < size; ++k)
            planned_.push_back({data[k], cycle + (k * period >> 8)});
    }

    void drive(Vtop& top, const uint8_t*) {
        while (!planned_.empty() && planned_.front().cycle <= now_) {
            if (queue_.size() < depth_) {
                queue_.push_back(planned_.front().data);
            } else if (holds_back_) {
                break;
            } else {
                ++lost_;
            }
            planned_.pop_front();
        }
        top.i___05Fvalid = !queue_.empty();
        if (!queue_.empty()) top.i___05Fpayload = queue_.front();
        top.o___05Fready = now_ << 8 >= free_;
    }

    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        const bool sent = top.o___05Fvalid && top.o___05Fready;
        if (sent) {
            received.push_back(top.o___05Fpayload);
            const uint64_t start = now_ << 8;
            free_ = (start - free_ < 256 ? free_ : start) + period_;
            stamps_.push_back((free_ + 255) >> 8);
        }
        const bool taken = top.i___05Fvalid && top.i___05Fready;
        if (taken) queue_.pop_front();
        taken_ += taken;
        if (sent || taken || top.running || top.o___05Fvalid) last_ = now_;
        ++now_;
        return taken;
    }

    // Nothing can happen before the next planned byte: how many cycles may be left out.
    uint64_t idle_cycles(uint64_t most) const {
        if (!queue_.empty() || now_ - last_ < kQuietCycles) return 0;
        if (planned_.empty()) return most;
        const uint64_t next = planned_.front().cycle;
        return next <= now_ ? 0 : next - now_ < most ? next - now_ : most;
    }

    void skip(uint64_t cycles) { now_ += cycles; }
    uint64_t lost() const { return lost_; }
    uint64_t taken() const { return taken_; }
    std::vector<uint64_t>& stamps() { return stamps_; }

private:
    // More than the link works on what it has taken without taking or giving a byte.
    static constexpr uint64_t kQuietCycles = 1 << 14;

    struct Planned {
        uint8_t data;
        uint64_t cycle;
    };

    std::deque<Planned> planned_;
    std::deque<uint8_t> queue_;
    std::vector<uint64_t> stamps_;
    size_t depth_ = 256;
    bool holds_back_ = true;
    uint64_t period_ = 256;
    uint64_t free_ = 0;  // in 256ths
    uint64_t now_ = 0;
    uint64_t last_ = 0;
    uint64_t lost_ = 0;
    uint64_t taken_ = 0;
};
