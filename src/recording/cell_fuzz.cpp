// A good recording with some cells changed: what a mutation of bytes hardly reaches, because SQLite
// refuses the page. Each edit is a table, a column, a row and what to put there, a byte each, and
// then the value.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "recording/reader.h"
#include "recording/recording_fixture.h"
#include "recording/tables/rows.h"
#include "recording/writer.h"
#include "tests/support/fuzz_files.h"

namespace {

using namespace jouleprof;

constexpr std::size_t kMostEdits = 16;

struct Column {
  std::string table;
  std::string name;
};

const std::filesystem::path& file() {
  static const auto path = fuzz_folder() / "x.jprof";
  return path;
}

const std::vector<std::string>& good_files() {
  static const auto files = [] {
    std::vector<std::string> out;
    for (unsigned seed = 0; seed < 4; ++seed) {
      const auto recording = recording::RandomRecording(seed, 3).make();
      if (!recording::write_recording(file(), recording, {.overwrite = true})) std::abort();
      std::ifstream in(file(), std::ios::binary);
      out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return out;
  }();
  return files;
}

std::vector<Column> columns_of(SQLite::Database& db) {
  std::vector<Column> out;
  SQLite::Statement rows(db,
                         "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) "
                         "AS c WHERE m.type = 'table' ORDER BY 1, c.cid");
  while (rows.executeStep()) out.push_back({rows.getColumn(0), rows.getColumn(1)});
  return out;
}

// The input, taken from its begin.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  template <typename T>
  T number() {
    T value{};
    const auto size = std::min(rest_.size(), sizeof value);
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }
  std::string bytes() {
    const auto size = byte();
    const std::string out(rest_.substr(0, size));
    rest_.remove_prefix(out.size());
    return out;
  }

 private:
  std::string_view rest_;
};

void edit(SQLite::Database& db, const Column& column, Input& input) {
  const unsigned row = input.byte();
  const unsigned kind = input.byte() % 8;
  const auto where =
      fmt::format("rowid = (SELECT rowid FROM \"{}\" LIMIT 1 OFFSET {})", column.table, row % 8);
  if (kind == 0) {
    db.exec(fmt::format("DELETE FROM \"{}\" WHERE {}", column.table, where));
    return;
  }
  SQLite::Statement update(
      db, fmt::format("UPDATE \"{}\" SET \"{}\" = ? WHERE {}", column.table, column.name, where));
  if (kind == 1) update.bind(1);
  if (kind == 2) update.bind(1, input.number<std::int64_t>());
  if (kind == 3) update.bind(1, static_cast<std::int64_t>(input.number<std::int8_t>()));
  if (kind == 4) update.bind(1, input.number<double>());
  if (kind == 5) update.bind(1, input.bytes());
  if (kind == 6) {
    const auto blob = input.bytes();
    update.bind(1, blob.data(), static_cast<int>(blob.size()));
  }
  if (kind == 7) {
    const auto blob = recording::pack(input.bytes());
    update.bind(1, blob.data(), static_cast<int>(blob.size()));
  }
  update.exec();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    const char edits[] = {static_cast<char>(seed),     static_cast<char>(4 * seed),
                          static_cast<char>(seed / 8), static_cast<char>(seed),
                          static_cast<char>(seed),     '\x7f'};
    write_seed("edit" + std::to_string(seed), {edits, sizeof edits});
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto& files = good_files();
  write_bytes(file(), files[input.byte() % files.size()]);
  {
    SQLite::Database db(file().string(), SQLite::OPEN_READWRITE);
    db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    const auto columns = columns_of(db);
    for (std::size_t i = 0; i < kMostEdits && !input.empty(); ++i) {
      const std::size_t place = input.byte() + std::size_t{256} * (input.byte() % 2);
      try {
        edit(db, columns[place % columns.size()], input);
      } catch (const SQLite::Exception&) {  // a constraint of the table
      }
    }
    db.exec("COMMIT");
  }
  const auto read = recording::read_recording(file());
  if (read) return 0;
  const auto& error = read.error();
  const bool is_one_line = !error.message.empty() && error.message.find('\n') == std::string::npos;
  const bool is_known = error.code == Errc::kCorrupt || error.code == Errc::kUnsupported;
  if (is_one_line && is_known) return 0;
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::abort();
}
