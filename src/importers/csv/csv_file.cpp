#include "importers/csv/csv_file.h"

#include <fmt/format.h>

#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

std::string list_of(const CsvQuantity& quantity) {
  std::string list;
  for (const auto& unit : quantity.units) {
    if (!list.empty()) list += &unit == &quantity.units.back() ? " or " : ", ";
    list += fmt::format("'{}{}'", quantity.name, unit.suffix);
  }
  return list;
}

}  // namespace

Result<CsvFile> CsvFile::open(const std::filesystem::path& path) {
  auto reader = GzipReader::open(path);
  if (!reader) return forward_error(reader);
  CsvFile file(std::move(*reader));
  if (auto read = file.read_start(); !read) return forward_error(read);
  auto line = file.next_line();
  if (!line) return forward_error(line);
  if (!*line || trim(file.text_).empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: there is no header line", file.path()));
  }
  auto names = split_csv(file.text_);
  if (!names || file.text_.find('\0') != std::string_view::npos) {
    return fail(Errc::kCorrupt, fmt::format("{}: not a CSV file with a header line", file.path()));
  }
  for (const std::string& name : *names) file.header_.emplace_back(trim(name));
  file.asked_.assign(file.header_.size(), false);
  return file;
}

Result<bool> CsvFile::fill() {
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const auto got = reader_.read(buffer_.data() + before, kReadBytes);
  buffer_.resize(before + (got ? *got : 0));
  if (!got) return forward_error(got);
  at_end_ = *got == 0;
  return !at_end_;
}

// Of a file in UTF-16 all of it is read at once.
Result<void> CsvFile::read_start() {
  constexpr std::size_t kLongest = std::size_t{256} << 20;
  auto more = fill();
  const bool is_utf16 = buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF");
  while (is_utf16 && more && *more && buffer_.size() < kLongest) more = fill();
  if (!more) return forward_error(more);
  if (is_utf16) at_end_ = true;
  if (!is_utf16 && !buffer_.starts_with("\xEF\xBB\xBF")) return {};
  auto text = utf8_text(std::move(buffer_), path());
  if (!text) return forward_error(text);
  buffer_ = std::move(*text);
  return {};
}

CsvColumn CsvFile::column(const CsvQuantity& quantity) {
  CsvColumn found = optional_column(quantity);
  if (!found) fail_header(fmt::format("the header has no column {}", list_of(quantity)));
  return found;
}

CsvColumn CsvFile::optional_column(const CsvQuantity& quantity) {
  CsvColumn found;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    for (const auto& unit : quantity.units) {
      if (header_[i] != fmt::format("{}{}", quantity.name, unit.suffix)) continue;
      if (found) {
        fail_header(
            fmt::format("the columns '{}' and '{}' have the same meaning", found.name, header_[i]));
      }
      found = CsvColumn{i, unit.decimals, header_[i]};
      asked_[i] = true;
    }
  }
  return found;
}

void CsvFile::fail_header(std::string_view message) {
  if (!error_) error_ = Error{Errc::kCorrupt, fmt::format("{}, line 1: {}", path(), message)};
}

Result<void> CsvFile::check_header() const {
  if (error_) return tl::unexpected(*error_);
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (asked_[i]) continue;
    return fail(Errc::kCorrupt, fmt::format("{}, line 1: the column {} is not one that this file "
                                            "may have (docs/formats.md)",
                                            path(), show(header_[i])));
  }
  return {};
}

Result<std::vector<std::string>> CsvFile::each_row(const std::function<void()>& take) {
  std::optional<Error> first_left_out;
  std::uint64_t taken = 0;
  for (;;) {
    const auto line = next_line();
    if (!line) return forward_error(line);
    if (!*line) break;
    if (trim(text_).empty()) continue;
    error_.reset();
    if (auto fields = split_line(); !fields) error_ = std::move(fields.error());
    is_cut_off_ = !ended_ && (error_ || last_.may_be_cut(fields_.back()));
    if (is_cut_off_) break;
    if (!error_) {
      last_.note(fields_.back());
      take();
    }
    if (is_hopeless_) return tl::unexpected(*error_);
    is_cut_off_ = !ended_ && error_;
    if (is_cut_off_) break;
    if (!error_) {
      ++taken;
    } else if (++left_out_ == 1) {
      first_left_out = error_;
    }
  }
  if (left_out_ > taken) return tl::unexpected(*first_left_out);
  if (taken == 0) {
    return fail(Errc::kUnavailable, fmt::format("{}: a header, and no row under it", path()));
  }
  std::vector<std::string> warnings;
  if (is_cut_off_) warnings.push_back(cut_off_warning(path(), line_));
  if (first_left_out) {
    warnings.push_back(fmt::format("{} left out that cannot be right; the first is {}",
                                   counted(left_out_, "row"), first_left_out->message));
  }
  return warnings;
}

// False at the end.
Result<bool> CsvFile::next_line() {
  std::size_t searched = at_;
  for (;;) {
    const void* found = searched < buffer_.size() ? std::memchr(buffer_.data() + searched, '\n',
                                                                buffer_.size() - searched)
                                                  : nullptr;
    ended_ = found != nullptr;
    if (ended_ || at_end_) {
      const auto end =
          ended_ ? static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data())
                 : buffer_.size();
      text_ = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + (ended_ ? 1 : 0);
      if (!ended_ && text_.empty()) return false;
      break;
    }
    if (buffer_.size() - at_ > kLongestLine) {
      return fail(Errc::kCorrupt, fmt::format("{}, line {}: the line is longer than any row can be",
                                              path(), line_ + 1));
    }
    buffer_.erase(0, at_);
    at_ = 0;
    searched = buffer_.size();
    if (const auto more = fill(); !more) return more;
  }
  if (text_.ends_with('\r')) text_.remove_suffix(1);
  ++line_;
  return true;
}

Result<void> CsvFile::split_line() {
  if (text_.find('"') != std::string_view::npos) {
    auto fields = split_csv(text_);
    if (!fields) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}, line {}: {}", path(), line_, fields.error().message));
    }
    quoted_ = std::move(*fields);
    fields_.assign(quoted_.begin(), quoted_.end());
  } else {
    fields_ = split(text_, ',');
  }
  if (fields_.size() != header_.size()) {
    return fail(Errc::kCorrupt, fmt::format("{}, line {}: {} fields under a header of {}", path(),
                                            line_, fields_.size(), header_.size()));
  }
  return {};
}

std::int64_t CsvFile::integer(const CsvColumn& column) {
  const auto value = scaled_integer(trim(field(column)), column.decimals);
  if (!value) fail_at(column, fmt::format("{} is not a number", show(field(column))));
  return value.value_or(0);
}

void CsvFile::fail_at(const CsvColumn& column, std::string_view message) {
  if (error_) return;
  error_ = Error{Errc::kCorrupt,
                 fmt::format("{}, line {}, column '{}': {}", path(), line_, column.name, message)};
}

void CsvFile::fail_all_at(const CsvColumn& column, std::string_view message) {
  is_hopeless_ = true;
  fail_at(column, message);
}

}  // namespace jouleprof::importers
