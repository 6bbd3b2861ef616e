#include "recording/tables/rows.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace jouleprof::recording {
namespace {

constexpr std::int64_t kSmallestRow = 4;  // bytes

std::string select(std::string_view table) {
  // The hidden rowid is the order of arrival, or the id.
  return fmt::format("SELECT * FROM {} ORDER BY rowid", table);
}

constexpr std::size_t kLengthBytes = 4;
constexpr std::uint32_t kNotCompressed = 0xFFFFFFFF;
constexpr std::size_t kMostShrunk = 1032;  // zlib can do no better (zlib's "Technical Details")
constexpr int kLevel = 3;                  // activity gets hardly smaller with more

Bytef* bytes_of(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }
const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

Rows::Rows(SQLite::Database& db, Inspection& inspection, std::string_view table)
    : table_(table), inspection_(inspection), statement_(db, select(table)) {}

bool Rows::next() {
  if (!inspection_.good() || !statement_.executeStep()) return false;
  ++row_;
  column_ = 0;
  inspection_.bytes_left -= kSmallestRow;
  if (inspection_.bytes_left < 0) {
    inspection_.problem = fmt::format("{} has more rows than the file has room for", table_);
  }
  return inspection_.good();
}

std::int64_t Rows::integer(std::int64_t lowest, std::int64_t highest) {
  const SQLite::Column value = statement_.getColumn(column_++);
  if (!value.isInteger()) {
    complain("is not an integer");
    return lowest;
  }
  const std::int64_t n = value.getInt64();
  if (n < lowest || n > highest) complain("is out of range");
  return n;
}

double Rows::number() {
  const SQLite::Column value = statement_.getColumn(column_++);
  const double x = value.getDouble();
  if (!(value.isFloat() || value.isInteger()) || !std::isfinite(x)) complain("is not a number");
  return x;
}

Power Rows::power() {
  const double watts = number();
  if (!storable_power(watts)) complain("is out of range");
  return Power::watts(watts);
}

std::string Rows::text() {
  const SQLite::Column value = statement_.getColumn(column_++);
  if (!value.isText()) {
    complain("is not a text");
    return {};
  }
  std::string text = value.getString();
  inspection_.bytes_left -= static_cast<std::int64_t>(text.size());
  return text;
}

std::string Rows::blob() {
  const SQLite::Column value = statement_.getColumn(column_++);
  if (!value.isBlob()) {
    complain("is not a blob");
    return {};
  }
  const int size = value.getBytes();
  inspection_.bytes_left -= size;
  return size == 0 ? std::string()
                   : std::string(static_cast<const char*>(value.getBlob()),
                                 static_cast<std::size_t>(size));
}

bool Rows::take_null() {
  const bool null = statement_.isColumnNull(column_);
  if (null) ++column_;
  return null;
}

void Rows::complain(std::string_view what) {
  if (!inspection_.good()) return;
  const std::string column = statement_.getColumnName(column_ - 1);
  inspection_.problem = fmt::format("{} in row {} of {} {}", column, row_, table_, what);
}

std::string Insert::sql(SQLite::Database& db, const std::string& table) {
  std::string places;
  std::string updates;
  bool has_id = false;
  SQLite::Statement columns(db, fmt::format("PRAGMA table_info({})", table));
  while (columns.executeStep()) {
    const std::string name = columns.getColumn(1).getString();
    places += places.empty() ? "?" : ", ?";
    if (name == "id") {
      has_id = true;
    } else {
      updates += fmt::format("{}{} = excluded.{}", updates.empty() ? "" : ", ", name, name);
    }
  }
  // Not INSERT OR REPLACE: its deletion would search every reading for references to the row.
  return fmt::format("INSERT INTO {} VALUES ({}){}", table, places,
                     has_id ? " ON CONFLICT (id) DO UPDATE SET " + updates : "");
}

std::string pack(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string stream(length, '\0');
  // It fails for want of memory only.
  const bool done =
      bytes.size() < kNotCompressed &&
      compress2(bytes_of(stream), &length, bytes_of(bytes), bytes.size(), kLevel) == Z_OK;
  const bool smaller = done && length < bytes.size();
  std::string out;
  put32(out, smaller ? static_cast<std::uint32_t>(bytes.size()) : kNotCompressed);
  return out += smaller ? std::string_view(stream).substr(0, length) : bytes;
}

std::optional<std::string> unpack(std::string_view packed) {
  if (packed.size() < kLengthBytes) return std::nullopt;
  const std::size_t size = get32(packed);
  packed.remove_prefix(kLengthBytes);
  if (size == kNotCompressed) return std::string(packed);
  if (size > kMostShrunk * packed.size()) return std::nullopt;
  std::string out(size, '\0');
  uLongf length = size;
  Bytef nothing = 0;
  const int done =
      uncompress(size != 0 ? bytes_of(out) : &nothing, &length, bytes_of(packed), packed.size());
  if (done != Z_OK || length != size) return std::nullopt;
  return out;
}

std::optional<std::string> unpack(const SQLite::Column& packed) {
  return unpack(std::string_view(static_cast<const char*>(packed.getBlob()),
                                 static_cast<std::size_t>(packed.getBytes())));
}

}  // namespace jouleprof::recording
