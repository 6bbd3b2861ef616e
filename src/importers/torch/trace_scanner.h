// Reads a trace in Chrome's JSON format event by event, and returns every byte of it.
//
// simdjson and nlohmann-json need the whole document in memory, and give values without the text
// between them. Traces of training runs hold gigabytes, are often compressed or cut off, and must
// be copied byte for byte; so they are scanned here, and base/json/json_view.h finds values in
// place. What is given out is JSON: a value that is none is an error, and so is a missing comma. A
// byte order mark is left out. Names that are no UTF-8, and control characters in them, are mended
// (base/text.h): then all readers of JSON take the trace.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/gzip/gzip.h"
#include "base/result.h"
#include "base/text.h"

namespace jouleprof::importers {

// Either an object with the member "traceEvents", or an array of events. Compressed with gzip or
// not. Holds one event at a time.
//
// The pieces, one after the other, are the file. Of a file that is cut off (as by Ctrl-C) what
// follows the last whole event, or the last whole member after the events, is left out.
class TraceScanner {
 public:
  enum class Piece {
    kOther,  // anything but an event
    kEvent,  // one event: an object
    kLast,   // no text: after the last event, before what closes the list
    kEnd,    // no text: the end of the file
  };

  // Errors: as GzipReader.
  static Result<TraceScanner> open(const std::filesystem::path& path);

  // Errors: corrupt, when it is no such trace, or no JSON; as GzipReader.
  Result<Piece> next();
  std::string_view text() const { return text_; }  // until the next call of next()

  // The object's other members so far, as written; long ones are not kept.
  const std::map<std::string, std::string, std::less<>>& members() const { return members_; }
  bool saw_events() const { return events_ > 0; }
  // After kEnd: whether the file was cut off, and what closes it as far as it was given out.
  bool cut_off() const { return cut_off_; }
  const Utf8Mender& mender() const { return mender_; }
  std::string closing() const;

 private:
  enum class State { kStart, kMembers, kEvents, kAfter, kDone };

  explicit TraceScanner(GzipReader reader) : reader_(std::move(reader)) {}
  Result<bool> fill();  // more text behind what is there; false at the end
  Result<bool> skip_space();
  Result<std::size_t> value();  // the size of the value at at_; 0: the file ends within it
  Result<Piece> start();
  Result<Piece> member();
  Result<Piece> event();
  Piece give(Piece piece);  // [given_, at_)
  Piece end_here();
  tl::unexpected<Error> no_trace(std::string_view why) const;

  GzipReader reader_;
  Utf8Mender mender_{true};
  std::string read_;  // as it is in the file
  std::string buffer_;
  std::size_t given_ = 0;  // what lies before is given out
  std::size_t at_ = 0;
  bool at_end_ = false;
  std::string_view text_;
  State state_ = State::kStart;
  std::size_t ready_ = 0;  // size of the event at at_, once its separator is given out
  bool reported_last_ = false;
  bool in_object_ = false;
  bool list_open_ = false;
  bool object_open_ = false;
  bool cut_off_ = false;
  std::size_t events_ = 0;
  std::size_t members_seen_ = 0;  // of the object
  std::map<std::string, std::string, std::less<>> members_;
};

}  // namespace jouleprof::importers
