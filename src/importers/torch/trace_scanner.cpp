#include <fmt/format.h>

#include "base/json/json.h"
#include "importers/torch/torch_trace.h"

namespace jouleprof::importers {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kLongestValue = std::size_t{1} << 29;
constexpr std::size_t kLongestKept = std::size_t{1} << 20;

}  // namespace

Result<TraceScanner> TraceScanner::open(const std::filesystem::path& path) {
  auto reader = GzipReader::open(path);
  if (!reader) return forward_error(reader);
  return TraceScanner(std::move(*reader));
}

tl::unexpected<Error> TraceScanner::no_trace(std::string_view why) const {
  return fail(Errc::kCorrupt,
              fmt::format("{}: not a trace in Chrome's JSON format, as torch.profiler's "
                          "export_chrome_trace() writes it: {}",
                          reader_.path(), why));
}

Result<bool> TraceScanner::fill() {
  if (at_end_) return false;
  if (given_ > 0) {
    buffer_.erase(0, given_);
    at_ -= given_;
    given_ = 0;
  }
  if (buffer_.size() - at_ > kLongestValue) return no_trace("one value has more than 512 MiB");
  // A long value is looked through again after each read, so reads grow with it.
  const std::size_t size = std::max(kReadBytes, buffer_.size() - at_);
  read_.resize(size);
  const auto got = reader_.read(read_.data(), size);
  mender_.append(buffer_, std::string_view(read_).substr(0, got ? *got : 0));
  if (!got && got.error().code != Errc::kCorrupt) return forward_error(got);
  // What was compressed before the damage is as good as a file that ends there.
  if (!got || *got == 0) {
    at_end_ = true;
    mender_.finish(buffer_);
  }
  return !at_end_;
}

Result<bool> TraceScanner::skip_space() {
  for (;;) {
    at_ += json_space(std::string_view(buffer_).substr(at_));
    if (at_ < buffer_.size()) return true;
    const auto more = fill();
    if (!more || !*more) return more;
  }
}

Result<std::size_t> TraceScanner::value() {
  for (;;) {
    const JsonExtent extent = json_extent(std::string_view(buffer_).substr(at_));
    if (extent.state == JsonExtent::kWhole) {
      if (is_json(std::string_view(buffer_).substr(at_, extent.size))) return extent.size;
      return no_trace(events_ > 0 ? fmt::format("what follows event {} is not JSON", events_)
                                  : "a value is not JSON");
    }
    if (extent.state == JsonExtent::kNone) {
      return no_trace(events_ > 0 ? fmt::format("there is no value after event {}", events_)
                                  : "a value is missing");
    }
    const auto more = fill();
    if (!more) return forward_error(more);
    if (!*more) return std::size_t{0};
  }
}

TraceScanner::Piece TraceScanner::give(Piece piece) {
  text_ = std::string_view(buffer_).substr(given_, at_ - given_);
  given_ = at_;
  return piece;
}

TraceScanner::Piece TraceScanner::end_here() {
  cut_off_ = true;
  at_ = given_;
  text_ = {};
  const bool within_events = state_ == State::kEvents;
  state_ = State::kDone;
  return within_events ? Piece::kLast : Piece::kEnd;
}

std::string TraceScanner::closing() const {
  std::string text;
  if (list_open_) text += "\n]";
  if (object_open_) text += "\n}";
  return text.empty() ? text : text + "\n";
}

Result<TraceScanner::Piece> TraceScanner::next() {
  switch (state_) {
    case State::kStart:
      return start();
    case State::kMembers:
    case State::kAfter:
      return member();
    case State::kEvents:
      return event();
    case State::kDone:
      break;
  }
  text_ = {};
  return Piece::kEnd;
}

Result<TraceScanner::Piece> TraceScanner::start() {
  const auto any = skip_space();
  if (!any) return forward_error(any);
  if (!*any) return no_trace("there is nothing in it");
  if (std::string_view(buffer_).starts_with(kByteOrderMark)) {
    given_ = at_ = kByteOrderMark.size();
    const auto text = skip_space();
    if (!text) return forward_error(text);
    if (!*text) return no_trace("there is nothing in it");
  }
  const char first = buffer_[at_];
  if (first != '{' && first != '[') return no_trace("it begins neither with { nor with [");
  ++at_;
  in_object_ = object_open_ = first == '{';
  list_open_ = first == '[';
  state_ = in_object_ ? State::kMembers : State::kEvents;
  return give(Piece::kOther);
}

// One member of the object, or what closes it and all that follows.
Result<TraceScanner::Piece> TraceScanner::member() {
  const bool after = state_ == State::kAfter;
  const auto ended = [&]() -> Result<Piece> {
    if (!after) return no_trace("it has no \"traceEvents\"");
    return end_here();
  };
  auto any = skip_space();
  if (!any) return forward_error(any);
  if (!in_object_ || !object_open_) {  // whatever follows the trace
    if (*any) return no_trace("something follows its end");
    state_ = State::kDone;
    at_ = buffer_.size();
    return give(Piece::kOther);
  }
  if (!*any) return ended();
  if (buffer_[at_] == '}') {
    if (!after) return no_trace("it has no \"traceEvents\"");
    ++at_;
    object_open_ = false;
    return give(Piece::kOther);
  }
  const bool comma = buffer_[at_] == ',';
  if (comma != (members_seen_ > 0)) return no_trace("a comma is missing, or one too many");
  if (comma) {
    ++at_;
    any = skip_space();
    if (!any) return forward_error(any);
    if (!*any) return ended();
  }
  if (buffer_[at_] != '"') return no_trace("a member has no name");
  auto size = value();
  if (!size) return forward_error(size);
  if (*size == 0) return ended();
  const std::string key = json_string(std::string_view(buffer_).substr(at_, *size));
  at_ += *size;
  any = skip_space();
  if (!any) return forward_error(any);
  if (!*any) return ended();
  if (buffer_[at_] != ':') return no_trace("a member has no value");
  ++at_;
  any = skip_space();
  if (!any) return forward_error(any);
  if (!*any) return ended();
  if (!after && key == "traceEvents") {
    if (buffer_[at_] != '[') return no_trace("\"traceEvents\" is not a list");
    ++at_;
    ++members_seen_;
    list_open_ = true;
    state_ = State::kEvents;
    return give(Piece::kOther);
  }
  size = value();
  if (!size) return forward_error(size);
  if (*size == 0) return ended();
  if (*size <= kLongestKept) members_[key] = buffer_.substr(at_, *size);
  at_ += *size;
  ++members_seen_;
  return give(Piece::kOther);
}

// An event, the separator before one, or the end of the list.
Result<TraceScanner::Piece> TraceScanner::event() {
  if (ready_ > 0) {
    at_ += ready_;
    ready_ = 0;
    ++events_;
    return give(buffer_[given_] == '{' ? Piece::kEvent : Piece::kOther);
  }
  auto any = skip_space();
  if (!any) return forward_error(any);
  if (!*any) return end_here();
  if (buffer_[at_] == ']') {
    if (!reported_last_) {
      reported_last_ = true;
      at_ = given_;  // the white space before the bracket stays with it
      text_ = {};
      return Piece::kLast;
    }
    ++at_;
    list_open_ = false;
    state_ = State::kAfter;
    return give(Piece::kOther);
  }
  const bool comma = buffer_[at_] == ',';
  if (comma != (events_ > 0)) {
    return no_trace(fmt::format("a comma is missing, or one too many, after event {}", events_));
  }
  if (comma) {
    ++at_;
    any = skip_space();
    if (!any) return forward_error(any);
    if (!*any) return end_here();
  }
  // Only when the event is known to be whole is the separator before it given out.
  const auto size = value();
  if (!size) return forward_error(size);
  if (*size == 0) return end_here();
  ready_ = *size;
  return given_ == at_ ? event() : give(Piece::kOther);
}

}  // namespace jouleprof::importers
