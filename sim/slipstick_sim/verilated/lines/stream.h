// The byte streams of the core alone: a byte a cycle.

class Line : public PlainLine {
public:
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
