// clang-format off
#include <utility>  // Boost 1.74 needs it before its own headers
// clang-format on
#include "apps/serve/otlp_push.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/rfc2818_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <thread>

#include "apps/serve/web_security.h"
#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::serve {

// Private to this file; in no namespace of its own because OtlpPush::Impl has one.
struct CollectorUrl {
  bool is_tls = false;
  std::string host;
  std::string port;
  std::string target;

  // Without path and query, which may hold a key.
  std::string shown() const {
    return fmt::format("{}://{}:{}", is_tls ? "https" : "http", host, port);
  }
};

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
namespace ssl = net::ssl;
using boost::system::error_code;
using net::ip::tcp;
using namespace std::chrono_literals;

constexpr std::size_t kLongestHeaders = 64 << 10;  // of a file of headers
constexpr std::size_t kLongestAnswer = 64 << 10;
constexpr auto kSlice = 50ms;  // the end of the service is noticed after so long

Result<CollectorUrl> parse_url(std::string_view text) {
  const auto refused = [](std::string_view why) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--otlp: {}; give a URL such as http://collector:4318", why));
  };
  CollectorUrl url;
  if (text.starts_with("https://")) {
    url.is_tls = true;
  } else if (!text.starts_with("http://")) {
    return refused("it begins neither with http:// nor with https://");
  }
  text.remove_prefix(text.find("//") + 2);
  const auto end = std::min(text.find_first_of("/?#"), text.size());
  auto authority = text.substr(0, end);
  url.target = text.substr(end, text.find('#') - end);
  if (url.target.empty() || url.target == "/") url.target = "/v1/metrics";
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  if (authority.find('@') != authority.npos) {
    return refused("a URL with a password is seen by all users; use --otlp-headers-file");
  }
  const auto colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  url.port = url.is_tls ? "443" : "80";
  if (has_port) {
    const auto port = parse_integer(authority.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return refused("its port is no number up to 65535");
    url.port = std::to_string(*port);
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  url.host = authority;
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (url.host.empty() || std::ranges::any_of(url.host, is_bad) ||
      std::ranges::any_of(url.target, is_bad)) {
    return refused("it has no host, or blanks");
  }
  return url;
}

// Errors say no value: it may be a password.
Result<void> add_header(HttpHeaders& headers, std::string_view name, std::string_view value) {
  static constexpr std::array<std::string_view, 6> kOwn{
      "host", "content-length", "content-type", "transfer-encoding", "connection", "expect"};
  const auto is_token = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (name.empty() || !std::ranges::all_of(name, is_token)) {
    return fail(Errc::kInvalidArgument,
                "a header of OTLP requests has no name, or one that HTTP "
                "does not allow; write Name: value");
  }
  if (std::ranges::find(kOwn, lower_case(name)) != kOwn.end()) {
    return fail(Errc::kInvalidArgument,
                fmt::format("the header {} of OTLP requests is set by jouleprof itself", name));
  }
  if (std::ranges::any_of(value, is_control)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("the value of the header {} has control characters", name));
  }
  headers.emplace_back(name, value);
  return {};
}

Result<HttpHeaders> headers_of_file(const std::filesystem::path& path) {
  HttpHeaders headers;
  if (path.empty()) return headers;
  const auto text = read_file(path, kLongestHeaders);
  if (!text) return forward_error(text);
  for (const auto whole : split(*text, '\n')) {
    const auto line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const auto colon = line.find(':');
    const auto name = line.substr(0, colon);
    const auto value = colon == line.npos ? std::string_view() : trim(line.substr(colon + 1));
    if (auto added = add_header(headers, name, value); !added) {
      return fail(Errc::kInvalidArgument, path.string() + ": " + added.error().message);
    }
  }
  return headers;
}

Result<std::unique_ptr<ssl::context>> make_context(const std::filesystem::path& certificate) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(ssl::verify_peer);
  error_code err;
  if (!certificate.empty()) {
    context->load_verify_file(certificate.string(), err);
    if (!err) return context;
    return refused_pem("certificate", certificate, err);
  }
  context->set_default_verify_paths(err);
  // Where distributions other than Debian keep them.
  for (const auto* file : {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"}) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) context->load_verify_file(file, err);
  }
  return context;
}

struct Answer {
  unsigned status = 0;  // 0: none came
  std::string reason;   // why none came, or what the collector says
  Duration retry_after{};
  std::int64_t rejected = 0;  // points

  bool is_taken() const { return status / 100 == 2; }
  // The same message may be taken later (the OTLP specification, "Failures").
  bool may_succeed_later() const {
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
  }
};

// The response's only part that says what was not taken.
void read_partial_success(Answer& answer, const std::string& body) {
  try {
    for (protozero::pbf_reader response(body); response.next(1);) {
      for (protozero::pbf_reader partial = response.get_message(); partial.next();) {
        if (partial.tag() == 1) {
          answer.rejected = partial.get_int64();
        } else if (partial.tag() == 2) {
          answer.reason = partial.get_string();
        } else {
          partial.skip();
        }
      }
    }
  } catch (const protozero::exception&) {  // no protobuf: the status alone counts
  }
}

// One request on a connection of its own.
class Exchange {
 public:
  Exchange(const CollectorUrl& url, ssl::context* tls, HostTime deadline,
           const std::atomic<bool>& is_ended)
      : url_(url), deadline_(deadline), is_ended_(is_ended) {
    if (tls != nullptr) tls_.emplace(stream_, *tls);
  }

  Answer send(const std::string& message, const HttpHeaders& headers,
              const std::string& user_agent) {
    http::request<http::string_body> request{http::verb::post, url_.target, 11};
    const bool is_v6 = url_.host.find(':') != std::string::npos;
    request.set(http::field::host,
                fmt::format("{}:{}", is_v6 ? "[" + url_.host + "]" : url_.host, url_.port));
    request.set(http::field::content_type, "application/x-protobuf");
    request.set(http::field::connection, "close");
    request.set(http::field::user_agent, user_agent);
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = message;
    request.prepare_payload();
    if (const auto err = connect()) return {0, reason_of(err), {}, 0};
    std::optional<http::response_parser<http::string_body>> parser;
    beast::flat_buffer buffer;
    const auto exchange = [&](auto& stream) {
      auto err = wait([&](auto done) { http::async_write(stream, request, done); });
      // The header by itself: with the body at once, Boost 1.74 reserves the memory of a length
      // that it has refused. Answers of 1xx precede the one that counts.
      while (!err && (!parser || parser->get().result_int() / 100 == 1)) {
        parser.emplace();
        parser->body_limit(kLongestAnswer);
        err = wait([&](auto done) { http::async_read_header(stream, buffer, *parser, done); });
      }
      if (err || parser->is_done()) return err;
      return wait([&](auto done) { http::async_read(stream, buffer, *parser, done); });
    };
    const auto err = tls_ ? exchange(*tls_) : exchange(stream_);
    // Some close without TLS's own end message: what has come is whole.
    if (err && !(parser && parser->is_done())) return {0, reason_of(err), {}, 0};
    Answer answer{parser->get().result_int(), {}, {}, 0};
    const auto after = parser->get()[http::field::retry_after];
    if (const auto number = parse_integer({after.data(), after.size()}); number && *number > 0) {
      answer.retry_after = std::chrono::seconds{std::min<std::int64_t>(*number, 3600)};
    }
    if (answer.is_taken()) {
      read_partial_success(answer, parser->get().body());
    } else {
      const auto words = parser->get().reason();
      answer.reason = fmt::format("it answered {} {}", answer.status,
                                  std::string_view(words.data(), words.size()));
    }
    return answer;
  }

 private:
  error_code connect() {
    tcp::resolver resolver(context_);
    tcp::resolver::results_type places;
    auto err = wait([&](auto done) {
      resolver.async_resolve(url_.host, url_.port, [&places, done](error_code e, auto found) {
        places = found;
        done(e);
      });
    });
    if (err) return err;
    err = wait([&](auto done) { stream_.async_connect(places, done); });
    if (err || !tls_) return err;
    SSL_set_tlsext_host_name(tls_->native_handle(), url_.host.c_str());
    tls_->set_verify_callback(ssl::rfc2818_verification(url_.host));
    return wait([&](auto done) { tls_->async_handshake(ssl::stream_base::client, done); });
  }

  // Runs one operation until it is done, or time is over. After an error the exchange is at its
  // end.
  template <class Start>
  error_code wait(const Start& start) {
    const auto result = std::make_shared<std::optional<error_code>>();
    context_.restart();
    start([result](error_code err, auto&&...) { *result = err; });
    while (!*result) {
      if (is_ended_) return net::error::operation_aborted;
      if (HostClock::now() >= deadline_) return net::error::timed_out;
      context_.run_for(kSlice);
    }
    return **result;
  }

  std::string reason_of(const error_code& err) {
    const long verified = tls_ ? SSL_get_verify_result(tls_->native_handle()) : X509_V_OK;
    if (verified != X509_V_OK && err.category() == net::error::get_ssl_category()) {
      return fmt::format(
          "{} ({}): the certificate of its authority is in "
          "$OTEL_EXPORTER_OTLP_CERTIFICATE, or among the system's",
          err.message(), X509_verify_cert_error_string(verified));
    }
    if (err == net::error::timed_out) return "it did not answer in time";
    if (err == http::error::end_of_stream) return "it closed the connection without an answer";
    if (err == http::error::partial_message) return "it closed the connection within its answer";
    if (err == http::error::body_limit || err == http::error::header_limit) {
      return fmt::format("its answer is longer than {} KiB", kLongestAnswer >> 10);
    }
    static const error_code any_of_http = http::error::bad_version;
    if (err.category() == any_of_http.category()) {
      return fmt::format("its answer is not HTTP ({}): check the port, and whether it needs https",
                         err.message());
    }
    return err.message();
  }

  const CollectorUrl& url_;
  const HostTime deadline_;
  const std::atomic<bool>& is_ended_;
  net::io_context context_{1};
  beast::tcp_stream stream_{context_};
  std::optional<ssl::stream<beast::tcp_stream&>> tls_;
};

}  // namespace

class OtlpPush::Impl {
 public:
  explicit Impl(OtlpPushOptions options) : options_(std::move(options)) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    // A request that goes on is given up for the last one.
    is_ended_ = true;
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> start() {
    auto url = parse_url(options_.url);
    if (!url) return forward_error(url);
    url_ = std::move(*url);
    for (const auto& [name, value] : std::exchange(options_.headers, {})) {
      if (auto added = add_header(options_.headers, name, value); !added) return added;
    }
    if (const auto more = headers_of_file(options_.headers_file); !more) return forward_error(more);
    if (url_.is_tls) {
      auto context = make_context(options_.certificate);
      if (!context) return forward_error(context);
      tls_ = std::move(*context);
    }
    auto thread = start_thread([this] { run(); },
                               [this](const char* why) { say(fmt::format("no more: {}", why)); });
    if (!thread) return forward_error(thread);
    thread_ = std::move(*thread);
    return {};
  }

  void offer(std::string message) {
    {
      const std::lock_guard lock(mutex_);
      message_ = std::move(message);
    }
    changed_.notify_all();
  }

 private:
  void run() {
    HostTime next = HostClock::now();
    Duration pause = options_.first_pause;
    for (;;) {
      auto message = take(next);
      if (!message) break;
      const auto begin = HostClock::now();
      const Answer answer = send(*message, begin + options_.patience);
      note(answer);
      next = begin + options_.interval;
      if (!answer.may_succeed_later() || answer.is_taken()) {
        pause = options_.first_pause;
        continue;
      }
      put_back(std::move(*message));
      next = HostClock::now() + std::max(pause, answer.retry_after);
      pause = std::min({2 * pause, options_.longest_pause, options_.interval});
    }
    is_ended_ = false;  // for the last one
    if (message_) note(send(*message_, HostClock::now() + options_.last_patience));
  }

  // The latest message, at `next` or later; nothing at the end, where it stays.
  std::optional<std::string> take(HostTime next) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (is_ending_) return std::nullopt;
      const auto now = HostClock::now();
      if (message_ && now >= next) return std::exchange(message_, std::nullopt);
      const auto left = message_ ? next - now : Duration{1h};
      changed_.wait_for(lock, left);
    }
  }

  void put_back(std::string message) {
    const std::lock_guard lock(mutex_);
    if (!message_) message_ = std::move(message);
  }

  Answer send(const std::string& message, HostTime deadline) {
    auto headers = options_.headers;
    const auto more = headers_of_file(options_.headers_file);
    if (!more) return {0, more.error().message, {}, 0};
    headers.insert(headers.end(), more->begin(), more->end());
    return Exchange(url_, tls_.get(), deadline, is_ended_)
        .send(message, headers, options_.user_agent);
  }

  // Says what has changed only: a collector may be away for days.
  void note(const Answer& answer) {
    if (answer.rejected > 0 && !std::exchange(has_rejected_, true)) {
      say(fmt::format("{} points were rejected: {}", answer.rejected, answer.reason));
    }
    if (answer.is_taken()) {
      if (failures_ > 0) say(fmt::format("it works again, after {} failures", failures_));
      failures_ = 0;
      has_refused_ = false;
    } else if (!is_ended_) {
      const bool is_refusal = !answer.may_succeed_later();
      const bool is_first_refusal = is_refusal && !std::exchange(has_refused_, true);
      if (failures_++ > 0 && !is_first_refusal) return;
      say(fmt::format(
          "{}; {}", answer.reason,
          !is_refusal ? "it is tried again, and the sums lose nothing"
          : answer.status == 413
              ? "raise its limit, or send less: --level, --max-series; it is tried again"
              : "check its URL and --otlp-headers-file; it is tried again"));
    }
  }

  void say(const std::string& what) const {
    if (options_.say) options_.say(fmt::format("OTLP to {}: {}", url_.shown(), what));
  }

  OtlpPushOptions options_;
  CollectorUrl url_;
  std::unique_ptr<ssl::context> tls_;
  std::mutex mutex_;  // guards the next two
  std::optional<std::string> message_;
  bool is_ending_ = false;
  std::condition_variable changed_;
  std::atomic<bool> is_ended_ = false;
  std::size_t failures_ = 0;   // since it last worked; this and the next are of the thread
  bool has_refused_ = false;   // since then; it may follow an outage
  bool has_rejected_ = false;  // which was said
  std::thread thread_;
};

Result<std::unique_ptr<OtlpPush>> OtlpPush::start(OtlpPushOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto started = impl->start(); !started) return forward_error(started);
  return std::unique_ptr<OtlpPush>(new OtlpPush(std::move(impl)));
}

OtlpPush::OtlpPush(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OtlpPush::~OtlpPush() = default;
void OtlpPush::offer(std::string message) { impl_->offer(std::move(message)); }

Result<HttpHeaders> parse_otlp_headers(const std::string& text) {
  HttpHeaders headers;
  if (trim(text).empty()) return headers;
  for (const auto pair : split(text, ',')) {
    const auto equals = pair.find('=');
    if (equals == pair.npos) {
      return fail(Errc::kInvalidArgument,
                  "the headers of OTLP requests are no list of name=value, separated by commas");
    }
    const auto raw = trim(pair.substr(equals + 1));
    std::string value;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const auto digit = [&](std::size_t at) {
        const auto c = at < raw.size() ? raw[at] : ' ';
        return std::string_view("0123456789abcdef").find(lower_case({&c, 1})[0]);
      };
      if (raw[i] == '%' && digit(i + 1) < 16 && digit(i + 2) < 16) {
        value += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
        i += 2;
      } else {
        value += raw[i];
      }
    }
    if (auto added = add_header(headers, trim(pair.substr(0, equals)), value); !added) {
      return forward_error(added);
    }
  }
  return headers;
}

}  // namespace jouleprof::serve
