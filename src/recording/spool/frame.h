// The frames that a spool file is made of: FORMAT.md in this folder. Private to this folder.
#pragma once

#include <zlib.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "model/activity/activity.h"
#include "model/record_fields.h"

namespace jouleprof::spool {

inline constexpr std::string_view kMagic = "JPSPOOL1";

enum class FrameType : std::uint8_t {
  kHeader = 1,
  kDevice = 2,
  kClass = 3,
  kLayer = 4,
  kRange = 5,
  kScope = 6,
  kChunk = 7,
  kStatus = 8,
  kEnd = 9,
};

// The type of the frame that defines a record.
template <class Record>
inline constexpr FrameType kFrameOf{};
template <>
inline constexpr FrameType kFrameOf<model::TracedDevice> = FrameType::kDevice;
template <>
inline constexpr FrameType kFrameOf<model::KernelClass> = FrameType::kClass;
template <>
inline constexpr FrameType kFrameOf<model::Layer> = FrameType::kLayer;
template <>
inline constexpr FrameType kFrameOf<model::Range> = FrameType::kRange;
template <>
inline constexpr FrameType kFrameOf<model::Scope> = FrameType::kScope;

inline constexpr std::size_t kFrameHead = 5;  // type, length of the payload
inline constexpr std::size_t kFrameTail = 4;  // checksum
inline constexpr std::size_t kLargestPayload = std::size_t{8} << 20;

inline std::uint32_t checksum(std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Appends a whole frame.
inline void put_frame(std::string& out, FrameType type, std::string_view payload) {
  const std::size_t begin = out.size();
  out.push_back(static_cast<char>(type));
  put32(out, static_cast<std::uint32_t>(payload.size()));
  out.append(payload);
  put32(out, checksum(std::string_view(out).substr(begin)));
}

// The frame at the beginning of some bytes.
struct Frame {
  enum class State : std::uint8_t {
    kWhole,
    kPartial,  // more may come
    kDamaged,
  };
  State state = State::kPartial;
  std::uint8_t type = 0;
  std::string_view payload;  // into the bytes given
  std::size_t size = 0;      // whole: of the frame; partial: the bytes that it needs at least
};

inline Frame first_frame(std::string_view bytes) noexcept {
  Frame frame;
  frame.size = kFrameHead + kFrameTail;
  if (bytes.size() < kFrameHead) return frame;
  const std::size_t length = get32(bytes.substr(1));
  if (length > kLargestPayload) {
    frame.state = Frame::State::kDamaged;
    return frame;
  }
  frame.size += length;
  if (bytes.size() < frame.size) return frame;
  frame.type = static_cast<std::uint8_t>(bytes[0]);
  frame.payload = bytes.substr(kFrameHead, length);
  const bool sound =
      get32(bytes.substr(kFrameHead + length)) == checksum(bytes.substr(0, kFrameHead + length));
  frame.state = sound ? Frame::State::kWhole : Frame::State::kDamaged;
  return frame;
}

// --- Records as payloads of frames, made from their field lists (model/record_fields.h) ---

// The payload of a file's first frame.
struct Header {
  model::TracedProcess process;
  HostTime start{};
  std::uint32_t segment = 0;
};

void fields(model::Either<Header> auto& h, auto&& field) {
  field("pid", h.process.pid);
  field("start_nanoseconds", h.start);
  field("segment", h.segment);
  field("bin_nanoseconds", h.process.bin);
  field("program", h.process.program);
  fields(h.process.rank, field);
}

// Appends fields to a payload.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <class T>
  void operator()(std::string_view, const T& value, model::FieldTraits = {}) {
    put(value);
  }

  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void put(T value) {
    put_varint(out_, static_cast<std::uint64_t>(value));
  }
  void put(Duration d) { put(d.count()); }
  void put(HostTime t) { put(zigzag(t.time_since_epoch().count())); }
  // IEEE 754, the least byte first.
  void put(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<char>(bits >> shift));
  }
  void put(const std::string& text) {
    put(text.size());
    out_.append(text);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const model::Nullable<T>& value) {
    put(value.value);
  }
  template <class T>
  void put(const model::Packed<T>& value) {
    put(value.bytes);
  }

 private:
  std::string& out_;
};

// Takes fields from a payload. After a value that is missing or impossible ok() is false and all
// values are zero or empty. What follows the last known field is left alone: a newer writer may
// have more.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class T>
  void operator()(std::string_view, T&& value, model::FieldTraits = {}) {
    get(value);
  }

  template <std::unsigned_integral T>
  void get(T& value) {
    value = static_cast<T>(number(std::numeric_limits<T>::max()));
  }
  void get(pid_t& value) { value = static_cast<pid_t>(number(std::numeric_limits<pid_t>::max())); }
  // Any number of a byte: what the known ones are is checked with the record (trace_check.h).
  template <class T>
    requires std::is_enum_v<T>
  void get(T& value) {
    value = static_cast<T>(number(0xFF));
  }
  void get(bool& value) { value = number(1) != 0; }
  void get(Duration& value) { value = Duration{static_cast<std::int64_t>(number(kFarthest))}; }
  // Within +-2^62 ns.
  void get(HostTime& value) {
    const std::int64_t count = unzigzag(number(2 * kFarthest));
    value = HostTime{Duration{count}};
  }
  void get(double& value) {
    std::string_view bytes;
    std::uint64_t bits = 0;
    if (take(8, bytes)) {
      for (std::size_t i = 0; i < 8; ++i) {
        bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
      }
    }
    value = std::bit_cast<double>(bits);
  }
  void get(std::string& text) {
    std::string_view bytes;
    const std::uint64_t size = number(~std::uint64_t{0});
    text = take(size, bytes) ? bytes : std::string_view();
  }
  template <class T>
  void get(std::optional<T>& value) {
    value.reset();
    if (number(1) != 0) get(value.emplace());
  }
  // Reads a count: what cannot be one is absent.
  void get(std::optional<double>& value) {
    value.reset();
    if (number(1) != 0) get(value.emplace());
    if (value && (!std::isfinite(*value) || *value < 0)) value.reset();
  }
  template <class T>
  void get(model::Nullable<T>& value) {
    get(value.value);
  }
  template <class T>
  void get(model::Packed<T>& value) {
    get(value.bytes);
  }

  bool ok() const { return ok_; }

 private:
  static constexpr std::uint64_t kFarthest = std::uint64_t{1} << 62;

  std::uint64_t number(std::uint64_t highest) {
    std::uint64_t value = 0;
    if (ok_ && take_varint(at_, end_, value) && value <= highest) return value;
    ok_ = false;
    at_ = end_;
    return 0;
  }
  bool take(std::size_t size, std::string_view& bytes) {
    if (size > static_cast<std::size_t>(end_ - at_)) ok_ = false;
    if (!ok_) {
      at_ = end_;
      return false;
    }
    bytes = {at_, size};
    at_ += size;
    return true;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace jouleprof::spool
