// Drives a verilated core from C: bytes in, bytes out, no call per clock cycle from outside.
//
// The core has the ports clk, running, events (a pulse per bit), and the byte streams i and o; or,
// if SERIAL_DIVISOR is defined, the pins rx and tx of a UART with so many cycles a bit; or, if
// SPI_DIVISOR is defined, the pins of an SPI peripheral with so many cycles a period of SCK. It has
// no rst: a reset core is a new one.
// Every cycle has two evaluations: with the clock low the combinational outputs settle and are
// looked at; then the clock rises. Whatever the core sends is taken at once and kept until it is
// asked for, so that a core that answers while it is being written to never stops.
// Verilator spells the two underscores of a stream's signal "___05F".

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

namespace {

struct Event {
    uint64_t cycle;
    uint64_t kind;
};

#if !defined SERIAL_DIVISOR && !defined SPI_DIVISOR

// The byte streams: a byte a cycle.
class Line {
public:
    void select(Vtop&, bool) {}

    void rest(Vtop& top) {
        top.i___05Fvalid = 0;
        top.i___05Fpayload = 0;
        top.o___05Fready = 1;
    }

    // Before the evaluation: offers a byte, or none.
    void drive(Vtop& top, const uint8_t* offered) {
        top.i___05Fvalid = offered != nullptr;
        if (offered) top.i___05Fpayload = *offered;
    }

    // After it: keeps what the core sends; true if it took what is offered.
    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        if (top.o___05Fvalid && top.o___05Fready) received.push_back(top.o___05Fpayload);
        return top.i___05Fvalid && top.i___05Fready;
    }
};

#elif defined SERIAL_DIVISOR

// The pins: ten bits a byte. A byte counts as taken when its start bit begins.
class Line {
public:
    void select(Vtop&, bool) {}

    void rest(Vtop& top) {
        top.rx = 1;
        *this = Line();
    }

    void drive(Vtop& top, const uint8_t* offered) {
        taken_ = left_ == 0 && bits_ == 0 && offered;
        if (taken_) {
            shift_ = 0x200u | unsigned(*offered) << 1;
            bits_ = 10;
        }
        if (left_ == 0 && bits_ != 0) {
            top.rx = shift_ & 1;
            shift_ >>= 1;
            --bits_;
            left_ = SERIAL_DIVISOR;
        }
        if (left_ != 0) --left_;
    }

    // Looks at the middle of each bit; drops a byte whose stop bit is low.
    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        if (!hearing_ && !top.tx && high_) {
            hearing_ = true;
            since_ = heard_ = 0;
        }
        high_ = top.tx;
        if (hearing_ && since_ % SERIAL_DIVISOR == SERIAL_DIVISOR / 2) {
            const unsigned bit = since_ / SERIAL_DIVISOR;
            heard_ |= unsigned(top.tx) << bit;
            if (bit == 9) {
                hearing_ = false;
                if (heard_ >> 9 && !(heard_ & 1)) received.push_back(heard_ >> 1 & 0xff);
            }
        }
        ++since_;
        return taken_;
    }

private:
    unsigned shift_ = 0, bits_ = 0, left_ = 0;  // what is sent, bits after this one, its cycles
    bool taken_ = false;
    unsigned heard_ = 0, since_ = 0;  // what was received, cycles since its start bit began
    bool hearing_ = false, high_ = true;
};

#else

// An SPI controller, mode 0, most significant bit first: each byte that is offered brings one back.
// A byte counts as taken when its first bit begins.
class Line {
public:
    void rest(Vtop& top) {
        top.chip_select_n = 1;
        top.sck = top.mosi = 0;
        *this = Line();
    }

    void select(Vtop& top, bool selected) { top.chip_select_n = !selected; }

    void drive(Vtop& top, const uint8_t* offered) {
        taken_ = left_ == 0 && bits_ == 0 && offered;
        if (taken_) {
            leaving_ = *offered;
            bits_ = 8;
        }
        if (left_ == 0 && bits_ != 0) {
            top.mosi = leaving_ >> 7 & 1;
            leaving_ <<= 1;
            --bits_;
            left_ = SPI_DIVISOR;
        }
        // the bit's second half is SCK's high one
        samples_ = left_ == SPI_DIVISOR / 2;
        top.sck = left_ != 0 && left_ <= SPI_DIVISOR / 2;
        if (left_ != 0) --left_;
    }

    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        if (samples_) {
            heard_ = heard_ << 1 | top.miso;
            if (bits_ == 0) received.push_back(heard_ & 0xff);
        }
        return taken_;
    }

private:
    unsigned leaving_ = 0, bits_ = 0, left_ = 0;  // what is sent, bits after this one, its cycles
    bool taken_ = false, samples_ = false;
    unsigned heard_ = 0;
};

#endif

class Core {
public:
    Core() { reset(); }
    ~Core() { top_->final(); }

    void reset() {
        if (top_) top_->final();
        top_.reset();
        context_.reset(new VerilatedContext);
        top_.reset(new Vtop(context_.get()));
        top_->clk = 0;
        line_.rest(*top_);
        top_->eval();
        received_.clear();
        taken_ = 0;
    }

    void select(bool selected) { line_.select(*top_, selected); }

    // Returns how many bytes the core took before max_cycles had passed.
    size_t send(const uint8_t* data, size_t size, uint64_t max_cycles) {
        size_t sent = 0;
        while (sent < size && max_cycles--) sent += step(data + sent);
        return sent;
    }

    // Returns how many bytes it copied: size, or what had come when max_cycles had passed.
    size_t receive(uint8_t* data, size_t size, uint64_t max_cycles) {
        while (available() < size && max_cycles--) step();
        const size_t count = available() < size ? available() : size;
        if (count != 0) std::memcpy(data, received_.data() + taken_, count);
        taken_ += count;
        if (taken_ == received_.size()) {
            received_.clear();
            taken_ = 0;
        }
        return count;
    }

    bool wait_idle(uint64_t max_cycles) {
        while (top_->running && max_cycles--) step();
        return !top_->running;
    }

    void run_cycles(uint64_t cycles) {
        while (cycles--) step();
    }

    uint64_t cycles() const { return cycles_; }
    size_t available() const { return received_.size() - taken_; }
    std::vector<Event>& events() { return events_; }

private:
    // One clock cycle; true if the core took the byte that it is offered.
    bool step(const uint8_t* offered = nullptr) {
        top_->clk = 0;
        line_.drive(*top_, offered);
        top_->eval();
        const bool taken = line_.observe(*top_, received_);
        if (top_->events) {
            for (uint64_t kind = 0; kind < 8; ++kind)
                if (top_->events >> kind & 1) events_.push_back({cycles_, kind});
        }
        top_->clk = 1;
        top_->eval();
        ++cycles_;
        return taken;
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_;
    Line line_;
    std::vector<uint8_t> received_;
    size_t taken_ = 0;
    std::vector<Event> events_;
    uint64_t cycles_ = 0;
};

}  // namespace

extern "C" {

Core* core_new() { return new Core; }

void core_free(Core* core) { delete core; }

void core_reset(Core* core) { core->reset(); }

void core_select(Core* core, int selected) { core->select(selected); }

size_t core_send(Core* core, const uint8_t* data, size_t size, uint64_t max_cycles) {
    return core->send(data, size, max_cycles);
}

size_t core_receive(Core* core, uint8_t* data, size_t size, uint64_t max_cycles) {
    return core->receive(data, size, max_cycles);
}

int core_wait_idle(Core* core, uint64_t max_cycles) { return core->wait_idle(max_cycles); }

void core_run_cycles(Core* core, uint64_t cycles) { core->run_cycles(cycles); }

uint64_t core_cycles(const Core* core) { return core->cycles(); }

size_t core_available(const Core* core) { return core->available(); }

// Copies at most size of the events that were logged and forgets all; size 0 only counts them.
size_t core_events(Core* core, Event* events, size_t size) {
    std::vector<Event>& logged = core->events();
    const size_t count = logged.size();
    if (size == 0) return count;
    std::memcpy(events, logged.data(), (count < size ? count : size) * sizeof(Event));
    logged.clear();
    return count;
}
}
