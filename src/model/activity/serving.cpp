#include "model/activity/serving.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/bytes.h"

namespace jouleprof::model {
namespace {

constexpr std::size_t kHead = 5;
constexpr std::size_t kShareBytes = 28;

template <class T, class Record>
concept Is = std::same_as<std::remove_const_t<T>, Record>;

// The fields of each entry, which `io` writes or reads, in their order.
template <class Io>
void each_field(Io& io, Is<ServedRequest> auto& r) {
  io(r.number, r.arrival, r.id, r.model, r.tenant, r.filler);
}
template <class Io>
void each_field(Io& io, Is<FinishedRequest> auto& f) {
  io(f.number, f.at, f.tokens_in, f.tokens_out);
}
template <class Io>
void each_field(Io& io, Is<ServingStep> auto& s) {
  io(s.begin, s.end, s.device, s.shares);
}
template <class Io>
void each_field(Io& io, Is<StepShare> auto& s) {
  io(s.number, s.tokens, s.context, s.cached, s.rejected, s.recomputed, s.prefill);
}
template <class Io>
void each_field(Io& io, Is<ServingDevice> auto& d) {
  io(d.number, d.name);
}
template <class Io>
void each_field(Io& io, Is<ServingLoss> auto& loss) {
  io(loss.steps, loss.requests);
}
template <class Io>
void each_field(Io& io, Is<ServingView> auto& view) {
  io(view.batches);
}

class PayloadWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  const std::string& bytes() const { return out_; }

 private:
  void put(std::uint32_t value) { put32(out_, value); }
  void put(std::uint64_t value) {
    put32(out_, static_cast<std::uint32_t>(value));
    put32(out_, static_cast<std::uint32_t>(value >> 32));
  }
  void put(bool flag) { put(flag ? 1U : 0U); }
  void put(HostTime t) { put(static_cast<std::uint64_t>(t.time_since_epoch().count())); }
  void put(std::string_view text) {
    text = text.substr(0, std::numeric_limits<std::uint16_t>::max());
    out_.push_back(static_cast<char>(text.size()));
    out_.push_back(static_cast<char>(text.size() >> 8));
    out_ += text;
  }
  void put(const std::vector<StepShare>& shares) {
    put(static_cast<std::uint32_t>(shares.size()));
    for (const StepShare& share : shares) each_field(*this, share);
  }

  std::string out_;
};

class Payload {
 public:
  explicit Payload(std::string_view bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::size_t size) {
    ok_ = ok_ && bytes_.size() >= size;
    if (!ok_) return {};
    const auto own = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return own;
  }
  std::uint32_t u32() {
    const std::string_view own = take(4);
    return own.size() == 4 ? get32(own) : 0;
  }
  std::uint64_t u64() {
    const std::uint64_t low = u32();
    return low | std::uint64_t{u32()} << 32;
  }

  void get(std::uint32_t& value) { value = u32(); }
  void get(std::uint64_t& value) { value = u64(); }
  void get(bool& flag) { flag = (u32() & 1U) != 0; }
  void get(HostTime& t) { t = HostTime{Duration{static_cast<std::int64_t>(u64())}}; }
  void get(std::string& text) {
    const std::string_view size = take(2);
    if (size.size() != 2) return;
    text = take(static_cast<std::size_t>(static_cast<unsigned char>(size[0])) |
                static_cast<std::size_t>(static_cast<unsigned char>(size[1])) << 8);
  }
  void get(std::vector<StepShare>& shares) {
    const std::size_t count = u32();
    ok_ = ok_ && count <= bytes_.size() / kShareBytes;
    if (ok_) shares.resize(count);
    for (StepShare& share : shares) each_field(*this, share);
  }

  std::string_view bytes_;
  bool ok_ = true;
};

bool is_possible(HostTime t) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;  // differences cannot overflow
  return std::abs(t.time_since_epoch().count()) < kMost;
}
bool is_possible(const ServedRequest& r) { return is_possible(r.arrival); }
bool is_possible(const FinishedRequest& f) { return is_possible(f.at); }
bool is_possible(const ServingStep& s) {
  return is_possible_step(s.begin, s.end) &&
         std::ranges::all_of(s.shares, [](const StepShare& share) { return is_possible(share); });
}
template <class Entry>
bool is_possible(const Entry&) {
  return true;
}

// Absent where it is broken.
template <class Entry>
std::optional<ServingEntry> read(Payload payload) {
  Entry entry;
  each_field(payload, entry);
  if (!payload.ok() || !is_possible(entry)) return std::nullopt;
  return entry;
}
template <class... Entry>
constexpr auto readers_of(const std::variant<Entry...>*) {
  return std::array{&read<Entry>...};
}
// By type, from 1 on.
constexpr auto kReaders = readers_of(static_cast<const ServingEntry*>(nullptr));

}  // namespace

void append_serving(std::string& bytes, const ServingEntry& entry) {
  PayloadWriter payload;
  std::visit([&payload](const auto& e) { each_field(payload, e); }, entry);
  bytes.push_back(static_cast<char>(entry.index() + 1));
  put32(bytes, static_cast<std::uint32_t>(payload.bytes().size()));
  bytes += payload.bytes();
}

bool decode_serving(std::string_view bytes, const std::function<void(const ServingEntry&)>& take,
                    std::uint64_t* impossible) {
  while (!bytes.empty()) {
    if (bytes.size() < kHead) return false;
    const auto type = static_cast<std::uint8_t>(bytes[0]);
    const std::size_t size = get32(bytes.substr(1));
    bytes.remove_prefix(kHead);
    if (bytes.size() < size) return false;
    if (type >= 1 && type <= kReaders.size()) {
      const auto entry = kReaders[type - 1](Payload(bytes.substr(0, size)));
      if (entry) take(*entry);
      if (!entry && impossible != nullptr) ++*impossible;
    }
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace jouleprof::model
