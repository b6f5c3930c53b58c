// Drives a verilated core from C: bytes in, bytes out, no call per clock cycle from outside.
//
// The core has the ports clk, the byte streams i and o, running, and events (a pulse per bit). It has
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
        top_->i___05Fvalid = 0;
        top_->i___05Fpayload = 0;
        top_->o___05Fready = 1;
        top_->eval();
        received_.clear();
        taken_ = 0;
    }

    // Returns how many bytes the core took before max_cycles had passed.
    size_t send(const uint8_t* data, size_t size, uint64_t max_cycles) {
        size_t sent = 0;
        top_->i___05Fvalid = 1;
        while (sent < size && max_cycles--) {
            top_->i___05Fpayload = data[sent];
            sent += step();
        }
        top_->i___05Fvalid = 0;
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
    // One clock cycle; true if the core took the byte that i offers.
    bool step() {
        top_->clk = 0;
        top_->eval();
        const bool taken = top_->i___05Fvalid && top_->i___05Fready;
        if (top_->o___05Fvalid && top_->o___05Fready) received_.push_back(top_->o___05Fpayload);
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
