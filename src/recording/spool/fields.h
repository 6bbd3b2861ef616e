// The values of a trace as the payloads of frames. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/activity.h"

namespace jouleprof::spool {

struct Header {
  pid_t pid = 0;
  HostTime start{};
  std::uint32_t segment = 0;
  Duration bin{};
  std::string program;
};

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  void put(std::uint64_t value);  // LEB128
  void put_signed(std::int64_t value);
  void put(std::string_view text);
  void put(double value);

 private:
  std::string& out_;
};

// After a value that is not there or cannot be, ok() is false and all values are zero or empty.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number(std::uint64_t highest = ~std::uint64_t{0});
  std::uint32_t index() { return static_cast<std::uint32_t>(number(model::kNone)); }
  std::int64_t signed_number();
  std::string text();
  double real();
  bool flag() { return number(1) != 0; }
  HostTime time();  // within +-2^62 ns
  bool ok() const { return ok_; }

 private:
  bool take(std::size_t size, std::string_view& bytes);

  std::string_view rest_;
  bool ok_ = true;
};

void put(FieldWriter& out, const Header& header);
void put(FieldWriter& out, const model::TracedDevice& device);
void put(FieldWriter& out, const model::KernelClass& kernel_class);
void put(FieldWriter& out, const model::Layer& layer);
void put(FieldWriter& out, const model::Range& range);
void put(FieldWriter& out, const model::Scope& scope);
void put(FieldWriter& out, const model::ActivityChunk& chunk);
void put(FieldWriter& out, const model::TraceStatus& status);

// What follows the fields that are known is left alone: a newer writer may say more.
void get(FieldReader& in, Header& header);
void get(FieldReader& in, model::TracedDevice& device);
void get(FieldReader& in, model::KernelClass& kernel_class);
void get(FieldReader& in, model::Layer& layer);
void get(FieldReader& in, model::Range& range);
void get(FieldReader& in, model::Scope& scope);
void get(FieldReader& in, model::ActivityChunk& chunk);
void get(FieldReader& in, model::TraceStatus& status);

}  // namespace jouleprof::spool
