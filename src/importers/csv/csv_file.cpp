#include "importers/csv/csv_file.h"

#include <fmt/format.h>

#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

std::string list_of(std::span<const ColumnName> names) {
  std::string list;
  for (const ColumnName& name : names) {
    if (!list.empty()) list += &name == &names.back() ? " or " : ", ";
    list += fmt::format("'{}'", name.name);
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

// Of a file in UTF-16 all of it is read at once.
Result<void> CsvFile::read_start() {
  constexpr std::size_t kLongest = std::size_t{256} << 20;
  const auto more = [&]() -> Result<std::size_t> {
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    const auto got = reader_.read(buffer_.data() + before, kReadBytes);
    buffer_.resize(before + (got ? *got : 0));
    return got;
  };
  auto got = more();
  if (!got) return forward_error(got);
  const bool is_utf16 = buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF");
  while (is_utf16 && *got > 0 && buffer_.size() < kLongest) {
    got = more();
    if (!got) return forward_error(got);
  }
  if (is_utf16) at_end_ = true;
  if (!is_utf16 && !buffer_.starts_with("\xEF\xBB\xBF")) return {};
  auto text = utf8_text(std::move(buffer_), path());
  if (!text) return forward_error(text);
  buffer_ = std::move(*text);
  return {};
}

CsvColumn CsvFile::column(std::span<const ColumnName> names) {
  CsvColumn found = optional_column(names);
  if (!found) fail_header(fmt::format("the header has no column {}", list_of(names)));
  return found;
}

CsvColumn CsvFile::optional_column(std::span<const ColumnName> names) {
  CsvColumn found;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    for (const ColumnName& name : names) {
      if (header_[i] != name.name) continue;
      if (found) {
        fail_header(
            fmt::format("the columns '{}' and '{}' have the same meaning", found.name, header_[i]));
      }
      found = CsvColumn{i, name.decimals, header_[i]};
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

Result<bool> CsvFile::next(const std::function<void()>& take) {
  for (;;) {
    const std::size_t before = line_;
    const auto more = next_row();
    if (more && !*more) return false;
    if (!more && line_ == before) return more;  // the file, not a row
    error_.reset();
    if (more) {
      take();
    } else {
      error_ = more.error();
    }
    if (!error_) {
      ++taken_;
      return true;
    }
    if (error_->code != Errc::kCorrupt || is_hopeless_) return tl::unexpected(*error_);
    if (!ended_) {
      cut_off_ = cut_off_warning(path(), line_);
      return false;
    }
    ++left_out_;
    if (!first_left_out_) first_left_out_ = error_;
  }
}

Result<void> CsvFile::check_left_out(std::vector<std::string>& warnings) const {
  if (!first_left_out_) return {};
  if (left_out_ > taken_) return tl::unexpected(*first_left_out_);
  warnings.push_back(fmt::format("{} left out that cannot be right; the first is {}",
                                 counted(left_out_, "row"), first_left_out_->message));
  return {};
}

Result<bool> CsvFile::next_row() {
  for (;;) {
    const auto line = next_line();
    if (!line || !*line) return line;
    if (trim(text_).empty()) continue;
    auto fields = split_line();
    if (!ended_ && (!fields || last_.may_be_cut(fields_.back()))) {
      cut_off_ = cut_off_warning(path(), line_);
      return false;
    }
    if (!fields) return forward_error(fields);
    last_.note(fields_.back());
    return true;
  }
}

Result<bool> CsvFile::next_line() {
  std::size_t searched = at_;
  for (;;) {
    const void* found = searched < buffer_.size() ? std::memchr(buffer_.data() + searched, '\n',
                                                                buffer_.size() - searched)
                                                  : nullptr;
    if (found) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
      text_ = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      ended_ = true;
      break;
    }
    if (at_end_) {
      text_ = std::string_view(buffer_).substr(at_);
      at_ = buffer_.size();
      ended_ = false;
      if (text_.empty()) return false;
      break;
    }
    if (buffer_.size() - at_ > kLongestLine) {
      return fail(Errc::kCorrupt, fmt::format("{}, line {}: the line is longer than any row can be",
                                              path(), line_ + 1));
    }
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t before = buffer_.size();
    searched = before;
    buffer_.resize(before + kReadBytes);
    const auto got = reader_.read(buffer_.data() + before, kReadBytes);
    if (!got) return forward_error(got);
    buffer_.resize(before + *got);
    if (*got == 0) at_end_ = true;
  }
  if (text_.ends_with('\r')) text_.remove_suffix(1);
  ++line_;
  return true;
}

Result<void> CsvFile::split_line() {
  fields_.clear();
  if (text_.find('"') != std::string_view::npos) {
    auto fields = split_csv(text_);
    if (!fields) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}, line {}: {}", path(), line_, fields.error().message));
    }
    quoted_ = std::move(*fields);
    fields_.assign(quoted_.begin(), quoted_.end());
  } else {
    std::string_view rest = text_;
    for (;;) {
      const auto comma = rest.find(',');
      fields_.push_back(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
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
