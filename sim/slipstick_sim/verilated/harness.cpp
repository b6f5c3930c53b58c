// Drives a verilated core from C: bytes in, bytes out, no call per clock cycle from outside.
//
// The core has the ports clk, running, events (a pulse per bit), and those that a file of lines/
// drives, of which the build makes line.h. It has no rst: a reset core is a new one.
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

// What a line does not have.
struct PlainLine {
    static constexpr unsigned kCounts = 6;

    void select(Vtop&, bool) {}
    void disturb(uint64_t, uint64_t) {}
    void set_bit_length(uint64_t) {}
    void disturbances(uint64_t* counts) const { std::memset(counts, 0, kCounts * sizeof *counts); }
    void set_wire(size_t, bool, uint64_t) {}
    void plan(const uint8_t*, size_t, uint64_t, uint64_t) {}
    uint64_t idle_cycles(uint64_t) const { return 0; }
    void skip(uint64_t) {}
    uint64_t lost() const { return 0; }
    uint64_t taken() const { return 0; }
    std::vector<uint64_t>& stamps() { return stamps_; }

private:
    std::vector<uint64_t> stamps_;
};

}  // namespace

#include "line.h"  // class Line: what lies between bytes and the core's ports or pins

// class Activity: what is recorded of a core's signals while it runs; of "activity" by the build.
#include "activity.h"

namespace {

class Core {
public:
    Core() { reset(); }
    ~Core() {
        activity_.end();
        top_->final();
    }

    void reset() {
        if (top_) top_->final();
        top_.reset();
        context_.reset(new VerilatedContext);
        activity_.prepare(*context_);
        top_.reset(new Vtop(context_.get()));
        activity_.attach(*top_);
        top_->clk = 0;
        line_.rest(*top_);
        top_->eval();
        received_.clear();
        taken_ = 0;
    }

    void select(bool selected) { line_.select(*top_, selected); }
    Line& line() { return line_; }
    Activity& activity() { return activity_; }

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

    // Runs up to a cycle, or until the core has sent a byte.
    void run_until(uint64_t cycle) {
        while (cycles_ < cycle && available() == 0) {
            const uint64_t idle = line_.idle_cycles(cycle - cycles_);
            line_.skip(idle);
            cycles_ += idle;
            if (cycles_ < cycle) step();
        }
    }

    // What was done to the DRAM chip that its data sheet forbids; 0: nothing. The rules of DDR3
    // have numbers of their own, kDdr3Rules higher.
    static constexpr int kDdr3Rules = 100;
    int violation() const {
#ifdef DDR3_HZ
        return top_->violation ? kDdr3Rules + top_->violation : 0;
#elif defined(HAS_DRAM)
        return top_->violation;
#else
        return 0;
#endif
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
        tick_dram();
        if (top_->running) activity_.sample();
        ++cycles_;
        return taken;
    }

    // DDR3 has a clock of its own: its edges come between those of the core, as often as the
    // frequencies say.
    void tick_dram() {
#ifdef DDR3_HZ
        for (dram_time_ += DDR3_HZ; dram_time_ >= CORE_HZ; dram_time_ -= CORE_HZ) {
            top_->ddr3_clk = 0;
            top_->eval();
            top_->ddr3_clk = 1;
            top_->eval();
        }
#endif
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_;
    Line line_;
    Activity activity_;
    std::vector<uint8_t> received_;
    size_t taken_ = 0;
    std::vector<Event> events_;
    uint64_t cycles_ = 0;
    uint64_t dram_time_ = 0;
};

}  // namespace

extern "C" {

Core* core_new() { return new Core; }

void core_free(Core* core) { delete core; }

void core_reset(Core* core) { core->reset(); }

void core_select(Core* core, int selected) { core->select(selected); }

// The next three are for the pins of a UART; other lines are steady.
void core_disturb(Core* core, uint64_t seed, uint64_t mean_cycles) {
    core->line().disturb(seed, mean_cycles);
}

// How long this end's bits are, in 256ths of a cycle.
void core_bit_length(Core* core, uint64_t parts) { core->line().set_bit_length(parts); }

// Copies how often each kind has disturbed the line to the core, and then the one from it.
void core_disturbances(Core* core, uint64_t* counts) { core->line().disturbances(counts); }

size_t core_send(Core* core, const uint8_t* data, size_t size, uint64_t max_cycles) {
    return core->send(data, size, max_cycles);
}

size_t core_receive(Core* core, uint8_t* data, size_t size, uint64_t max_cycles) {
    return core->receive(data, size, max_cycles);
}

int core_wait_idle(Core* core, uint64_t max_cycles) { return core->wait_idle(max_cycles); }

void core_run_cycles(Core* core, uint64_t cycles) { core->run_cycles(cycles); }

// The next six are for a wire with a timing of its own; see lines/paced.h.
void core_set_wire(Core* core, size_t depth, int holds_back, uint64_t period) {
    core->line().set_wire(depth, holds_back, period);
}

void core_plan(Core* core, const uint8_t* data, size_t size, uint64_t cycle, uint64_t period) {
    core->line().plan(data, size, cycle, period);
}

void core_run_until(Core* core, uint64_t cycle) { core->run_until(cycle); }

uint64_t core_lost(Core* core) { return core->line().lost(); }

uint64_t core_taken(Core* core) { return core->line().taken(); }

// Copies the cycles at which the bytes that were not received yet had left the wire, and forgets
// them; as many as core_available tells.
void core_stamps(Core* core, uint64_t* cycles) {
    std::vector<uint64_t>& stamps = core->line().stamps();
    std::memcpy(cycles, stamps.data(), stamps.size() * sizeof *cycles);
    stamps.clear();
}

// Records the signals' activity in a file while the core runs; false if it cannot.
int core_record(Core* core, const char* path, const char* scope) {
    return core->activity().begin(path, scope);
}

void core_end_record(Core* core) { core->activity().end(); }

int core_violation(const Core* core) { return core->violation(); }

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
