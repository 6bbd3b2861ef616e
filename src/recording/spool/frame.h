// The frames that a spool file is made of: FORMAT.md in this folder. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/activity/activity.h"

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

// Appends a whole frame.
void put_frame(std::string& out, FrameType type, std::string_view payload);

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

Frame first_frame(std::string_view bytes) noexcept;

}  // namespace jouleprof::spool
