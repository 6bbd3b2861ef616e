// Readings and uses of GPUs as packets: numbers as in base/varint.h, times as differences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "meters/shared/service_protocol.h"

namespace jouleprof::meters::shared {

// The first byte of a packet; JSON begins with '{'.
inline constexpr char kReadingsPacket = 'R';
inline constexpr char kUsesPacket = 'U';

// Errors: corrupt.
Result<model::Readings> decode_readings(std::string_view packet);
Result<GpuUses> decode_uses(std::string_view packet);

}  // namespace jouleprof::meters::shared
