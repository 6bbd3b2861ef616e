#include "model/activity/serving.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "base/bytes.h"

namespace jouleprof::model {
namespace {

constexpr std::size_t kHead = 5;
constexpr std::size_t kShareBytes = 28;

enum Type : std::uint8_t {
  kRequest = 1,
  kFinish = 2,
  kStep = 3,
  kDevice = 4,
  kLost = 5,
  kView = 6
};

void put64(std::string& out, std::uint64_t value) {
  put32(out, static_cast<std::uint32_t>(value));
  put32(out, static_cast<std::uint32_t>(value >> 32));
}
void put_time(std::string& out, HostTime t) {
  put64(out, static_cast<std::uint64_t>(t.time_since_epoch().count()));
}
void put_text(std::string& out, std::string_view text) {
  text = text.substr(0, std::numeric_limits<std::uint16_t>::max());
  out.push_back(static_cast<char>(text.size()));
  out.push_back(static_cast<char>(text.size() >> 8));
  out += text;
}

class Payload {
 public:
  explicit Payload(std::string_view bytes) : bytes_(bytes) {}

  std::uint32_t u32() {
    const std::string_view own = take(4);
    return own.size() == 4 ? get32(own) : 0;
  }
  std::uint64_t u64() {
    const std::uint64_t low = u32();
    return low | std::uint64_t{u32()} << 32;
  }
  HostTime time() { return HostTime{Duration{static_cast<std::int64_t>(u64())}}; }
  std::string text() {
    const std::string_view size = take(2);
    if (size.size() != 2) return {};
    return std::string(take(static_cast<std::size_t>(static_cast<unsigned char>(size[0])) |
                            static_cast<std::size_t>(static_cast<unsigned char>(size[1])) << 8));
  }
  std::size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::size_t size) {
    ok_ = ok_ && bytes_.size() >= size;
    if (!ok_) return {};
    const auto own = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return own;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

std::pair<Type, std::string> payload_of(const ServedRequest& r) {
  std::string out;
  put32(out, r.number);
  put_time(out, r.arrival);
  put_text(out, r.id);
  put_text(out, r.model);
  put_text(out, r.tenant);
  put32(out, r.filler);
  return {kRequest, std::move(out)};
}
std::pair<Type, std::string> payload_of(const FinishedRequest& f) {
  std::string out;
  put32(out, f.number);
  put_time(out, f.at);
  put32(out, f.tokens_in);
  put32(out, f.tokens_out);
  return {kFinish, std::move(out)};
}
std::pair<Type, std::string> payload_of(const ServingStep& s) {
  std::string out;
  put_time(out, s.begin);
  put_time(out, s.end);
  put32(out, s.device);
  put32(out, static_cast<std::uint32_t>(s.shares.size()));
  for (const StepShare& share : s.shares) {
    for (const auto value : {share.number, share.tokens, share.context, share.cached,
                             share.rejected, share.recomputed, share.prefill ? 1U : 0U}) {
      put32(out, value);
    }
  }
  return {kStep, std::move(out)};
}
std::pair<Type, std::string> payload_of(const ServingDevice& d) {
  std::string out;
  put32(out, d.number);
  put_text(out, d.name);
  return {kDevice, std::move(out)};
}
std::pair<Type, std::string> payload_of(const ServingLoss& loss) {
  std::string out;
  put64(out, loss.steps);
  put64(out, loss.requests);
  return {kLost, std::move(out)};
}

std::pair<Type, std::string> payload_of(const ServingView& view) {
  std::string out;
  put32(out, view.batches ? 1 : 0);
  return {kView, std::move(out)};
}

bool is_time(HostTime t) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;  // differences cannot overflow
  return std::abs(t.time_since_epoch().count()) < kMost;
}

std::optional<ServingEntry> step_of(Payload& payload) {
  ServingStep s;
  s.begin = payload.time();
  s.end = payload.time();
  s.device = payload.u32();
  const std::size_t count = payload.u32();
  if (!payload.ok() || count > payload.left() / kShareBytes) return std::nullopt;
  if (!is_possible_step(s.begin, s.end)) return std::nullopt;
  s.shares.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    StepShare& share = s.shares.emplace_back();
    share.number = payload.u32();
    share.tokens = payload.u32();
    share.context = payload.u32();
    share.cached = payload.u32();
    share.rejected = payload.u32();
    share.recomputed = payload.u32();
    share.prefill = (payload.u32() & 1U) != 0;
    if (!is_possible(share)) return std::nullopt;
  }
  return s;
}

// Absent where it is broken; of an unknown type, an entry without a value.
std::optional<std::optional<ServingEntry>> entry_of(std::uint8_t type, Payload payload) {
  std::optional<ServingEntry> out;
  switch (type) {
    case kRequest: {
      ServedRequest r;
      r.number = payload.u32();
      r.arrival = payload.time();
      r.id = payload.text();
      r.model = payload.text();
      r.tenant = payload.text();
      r.filler = payload.u32();
      if (!is_time(r.arrival)) return std::nullopt;
      out = std::move(r);
      break;
    }
    case kFinish: {
      FinishedRequest f;
      f.number = payload.u32();
      f.at = payload.time();
      f.tokens_in = payload.u32();
      f.tokens_out = payload.u32();
      if (!is_time(f.at)) return std::nullopt;
      out = f;
      break;
    }
    case kStep:
      out = step_of(payload);
      if (!out) return std::nullopt;
      break;
    case kDevice: {
      ServingDevice d;
      d.number = payload.u32();
      d.name = payload.text();
      out = std::move(d);
      break;
    }
    case kLost: {
      ServingLoss loss;
      loss.steps = payload.u64();
      loss.requests = payload.u64();
      out = loss;
      break;
    }
    case kView:
      out = ServingView{(payload.u32() & 1U) != 0};
      break;
    default:
      break;
  }
  if (!payload.ok()) return std::nullopt;
  return out;
}

}  // namespace

void append_serving(std::string& bytes, const ServingEntry& entry) {
  const auto [type, payload] = std::visit([](const auto& e) { return payload_of(e); }, entry);
  bytes.push_back(static_cast<char>(type));
  put32(bytes, static_cast<std::uint32_t>(payload.size()));
  bytes += payload;
}

bool decode_serving(std::string_view bytes, const std::function<void(const ServingEntry&)>& take,
                    std::uint64_t* impossible) {
  while (!bytes.empty()) {
    if (bytes.size() < kHead) return false;
    const auto type = static_cast<std::uint8_t>(bytes[0]);
    const std::size_t size = get32(bytes.substr(1));
    bytes.remove_prefix(kHead);
    if (bytes.size() < size) return false;
    const auto entry = entry_of(type, Payload(bytes.substr(0, size)));
    if (!entry && impossible != nullptr) ++*impossible;
    if (entry && *entry) take(**entry);
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace jouleprof::model
