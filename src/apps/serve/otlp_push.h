// Sends metrics to an OpenTelemetry collector: OTLP over HTTP, as binary protobuf.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace jouleprof::serve {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct OtlpPushOptions {
  std::string url;  // http:// or https://; without a path, /v1/metrics
  HttpHeaders headers{};
  std::filesystem::path headers_file{};  // more of them, a line each, read at each request
  std::filesystem::path certificate{};   // of authorities, for https; empty: the system's
  std::string user_agent{};
  Duration interval = std::chrono::minutes{1};
  Duration patience = std::chrono::seconds{10};      // with a request
  Duration last_patience = std::chrono::seconds{5};  // with the last one, at the end
  Duration first_pause = std::chrono::seconds{1};    // after a failure; then twice as long, ...
  Duration longest_pause = std::chrono::minutes{5};  // ... up to this, or to the interval
  std::function<void(const std::string& text)> say;  // once for each change; on the own thread
};

// One thread sends the latest message at each interval. Sums are cumulative, so that a message
// takes the place of one that was not sent: a collector that was away for an hour misses no energy,
// and no more than two messages are in memory.
class OtlpPush {
 public:
  // Errors: invalid_argument for a URL, header or certificate that cannot be used; as read_file's
  // for files.
  static Result<std::unique_ptr<OtlpPush>> start(OtlpPushOptions options);
  OtlpPush(const OtlpPush&) = delete;
  OtlpPush& operator=(const OtlpPush&) = delete;
  ~OtlpPush();  // sends the latest message, if it was not

  // An ExportMetricsServiceRequest. Returns at once; may be called from any thread.
  void offer(std::string message);

 private:
  class Impl;
  explicit OtlpPush(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads $OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", values with %XX. Errors:
// invalid_argument, without the values.
Result<HttpHeaders> parse_otlp_headers(const std::string& text);

}  // namespace jouleprof::serve
