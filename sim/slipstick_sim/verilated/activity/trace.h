// Signals in a file: how often each changes (SAIF), or all of its values (VCD); a sample is a unit
// of its time.

#if VM_TRACE_VCD
#include "verilated_vcd_c.h"
using TraceFile = VerilatedVcdC;
#else
#include "verilated_saif_c.h"
using TraceFile = VerilatedSaifC;
#endif

class Activity {
public:
    // Before the model is made, and when it is.
    void prepare(VerilatedContext& context) { context.traceEverOn(true); }
    void attach(Vtop& top) {
        end();
        file_.reset(new TraceFile);
        time_ = 0;
        top.trace(file_.get(), 99);
    }

    // A model's signals are declared to one file, so it records once. The file must be writable:
    // Verilator does not look.
    bool begin(const char* path, const char* scope) {
        if (time_ != 0 || file_->isOpen()) return false;
        if (*scope) file_->dumpvars(1, scope);
        file_->open(path);
        return true;
    }

    void sample() {
        if (file_ && file_->isOpen()) file_->dump(time_++);
    }

    void end() {
        if (file_) file_->close();
    }

private:
    std::unique_ptr<TraceFile> file_;
    uint64_t time_ = 0;
};
