// An SPI controller, mode 0, most significant bit first: each byte that is offered brings one back.
// A byte counts as taken when its first bit begins.
//
// SPI_DIVISOR: clock cycles of a period of SCK.

class Line : public PlainLine {
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
