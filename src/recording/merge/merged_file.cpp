#include "recording/merge/merged_file.h"

#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/new_file.h"
#include "recording/claim.h"
#include "recording/merge/merged_base.h"
#include "recording/merge/merger.h"
#include "recording/reader.h"
#include "recording/side_files.h"
#include "recording/sqlite_file.h"
#include "recording/tables/packed.h"

namespace jouleprof::recording {

namespace fs = std::filesystem;

bool is_one_machine(const MergedPart& a, const MergedPart& b) {
  return a.boot_id == b.boot_id && (!a.boot_id.empty() || a.host == b.host);
}

bool is_merged_file(const fs::path& path) { return open_merged(path).has_value(); }

Result<std::size_t> merge_recordings(const std::vector<fs::path>& inputs, const fs::path& output,
                                     bool overwrite) {
  std::error_code error;
  if (!overwrite && fs::exists(output, error)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} exists; choose another name or use --force", output.string()));
  }
  for (const auto& input : inputs) {
    if (is_same_file(input, output)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} is an input and the output", output.string()));
    }
  }
  const auto claim = Claim::take(output, overwrite);
  if (!claim) return forward_error(claim);
  auto fresh = NewFile::next_to(claim->path());
  if (!fresh) return forward_error(fresh);
  std::vector<MergeInput> files;
  for (const auto& input : inputs) files.push_back({input});
  auto merged = write_merged(files, fresh->path());
  remove_side_files(fresh->path());
  if (!merged) return merged;
  remove_side_files(claim->path());
  if (auto placed = fresh->take_place(); !placed) return forward_error(placed);
  return merged;
}

Result<std::vector<MergedPart>> merged_parts(const fs::path& path) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    std::vector<MergedPart> parts;
    SQLite::Statement rows(**db, std::string("SELECT name, host, boot_id FROM part") + kPartOrder);
    while (rows.executeStep()) {
      parts.push_back({rows.getColumn(0), rows.getColumn(1), rows.getColumn(2)});
    }
    return parts;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> extract_part(const fs::path& path, unsigned number, const fs::path& to) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    SQLite::Statement row(
        **db, std::string("SELECT recording FROM part") + kPartOrder + " LIMIT 1 OFFSET ?");
    row.bind(1, static_cast<std::int64_t>(number) - 1);
    if (number == 0 || !row.executeStep()) {
      return fail(Errc::kNotFound, fmt::format("{} has no recording {}", path.string(), number));
    }
    const auto bytes = unpack(blob_of(row.getColumn(0)));
    if (bytes) return write_bytes(to, *bytes);
    return fail(Errc::kCorrupt, fmt::format("{}: recording {} is damaged", path.string(), number));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> read_merged(const fs::path& path, const std::function<Result<void>(OfOneHost)>& each) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    SQLite::Statement rows(
        **db, std::string("SELECT name, host, boot_id, recording FROM part") + kPartOrder);
    OfOneHost of_host;
    const auto pass_on = [&]() -> Result<void> {
      if (of_host.empty()) return {};
      return each(std::exchange(of_host, {}));
    };
    while (rows.executeStep()) {
      MergedPart part{rows.getColumn(0), rows.getColumn(1), rows.getColumn(2)};
      if (!of_host.empty() && !is_one_machine(of_host.front().first, part)) {
        if (auto passed = pass_on(); !passed) return passed;
      }
      const auto bytes = unpack(blob_of(rows.getColumn(3)));
      if (!bytes) {
        return fail(Errc::kCorrupt,
                    fmt::format("{}: the recording {} is damaged", path.string(), part.name));
      }
      const auto file = TemporaryRecording::write(*bytes);
      if (!file) return forward_error(file);
      auto recording = read_recording(file->path());
      if (!recording) return forward_error(recording);
      of_host.emplace_back(std::move(part), std::move(*recording));
    }
    return pass_on();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

}  // namespace jouleprof::recording
