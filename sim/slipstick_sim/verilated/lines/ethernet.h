// A byte per cycle each way, in the place of a PHY chip. Frames pass as bytes: two of the length,
// the lower first, and then the frame, here without a preamble, but with its check sequence.
// Those of the length take a cycle each, in which the wire rests.

class Line : public PlainLine {
public:
    void rest(Vtop& top) {
        top.rx_valid = top.rx_data = top.rx_last = 0;
        *this = Line();
    }

    void drive(Vtop& top, const uint8_t* offered) {
        top.rx_valid = top.rx_last = 0;
        taken_ = false;
        // the board's reset, or the gap between two frames
        if (!top.rst_n) pause_ = kGap;
        if (pause_ != 0) {
            --pause_;
        } else if (length_bytes_ < 2) {
            if (!offered) return;
            taken_ = true;
            left_ |= unsigned(*offered) << 8 * length_bytes_++;
        } else if (preamble_ < kPreamble) {
            give(top, ++preamble_ == kPreamble ? 0xd5 : 0x55);
        } else if (left_ == 0) {
            end();
        } else if (offered) {
            taken_ = true;
            give(top, *offered);
            top.rx_last = --left_ == 0;
            if (left_ == 0) end();
        }
    }

    bool observe(const Vtop& top, std::vector<uint8_t>& received) {
        if (top.tx_valid) {
            if (in_frame_) frame_.push_back(top.tx_data);
            if (top.tx_data == 0xd5) in_frame_ = true;
        } else if (in_frame_) {
            received.push_back(frame_.size() & 0xff);
            received.push_back(frame_.size() >> 8 & 0xff);
            received.insert(received.end(), frame_.begin(), frame_.end());
            frame_.clear();
            in_frame_ = false;
        }
        return taken_;
    }

private:
    static constexpr unsigned kPreamble = 8, kGap = 12;

    void give(Vtop& top, uint8_t data) {
        top.rx_valid = 1;
        top.rx_data = data;
    }

    void end() {
        left_ = length_bytes_ = preamble_ = 0;
        pause_ = kGap;
    }

    unsigned pause_ = 0, length_bytes_ = 0, preamble_ = 0, left_ = 0;
    bool taken_ = false, in_frame_ = false;
    std::vector<uint8_t> frame_;
};
