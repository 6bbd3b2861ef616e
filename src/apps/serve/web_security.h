// Who may ask the server: its configuration, names and passwords of HTTP's basic authentication
// (RFC 7617) with bcrypt hashes, and TLS.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::serve {

// That OpenSSL cannot use a file of keys or certificates: why, and what it must be.
tl::unexpected<Error> refused_pem(std::string_view what, const std::filesystem::path& file,
                                  const boost::system::error_code& err);

// --- The file of --web.config.file, in the format of Prometheus' exporter-toolkit ---

enum class ClientAuth {
  kNone,              // NoClientCert
  kRequest,           // RequestClientCert
  kRequireAny,        // RequireAnyClientCert
  kVerifyIfGiven,     // VerifyClientCertIfGiven
  kRequireAndVerify,  // RequireAndVerifyClientCert
};

struct TlsConfig {
  std::filesystem::path certificate;  // a chain in PEM
  std::filesystem::path key;
  std::filesystem::path client_authority;  // empty: none
  ClientAuth client_auth = ClientAuth::kNone;
  bool allows_1_2 = true;  // TLS 1.3 is always allowed, unless `allows_1_3` is false
  bool allows_1_3 = true;
  std::vector<std::string> cipher_suites;  // of TLS 1.2, by their registered names; empty: usual
  std::vector<std::string> curves;         // as OpenSSL names them, the preferred first; as above
};

// A bucket of `burst` requests, to which one is added each `interval`.
struct RateLimit {
  Duration interval{};
  double burst = 0;
};

struct WebConfig {
  std::optional<TlsConfig> tls;
  std::map<std::string, std::string> users;  // bcrypt hashes; empty: no password is asked for
  std::vector<std::pair<std::string, std::string>> headers;  // of every response
  std::optional<RateLimit> rate_limit;
};

// Relative paths in the file start at its folder. Errors: as read_file's; invalid_argument, which
// names the key, for one that is unknown or not supported and for values that are invalid.
Result<WebConfig> read_web_config(const std::filesystem::path& path);

class BasicAuth {
 public:
  explicit BasicAuth(std::map<std::string, std::string> users);

  // From the header Authorization, without computing a hash.
  enum class Verdict { kAllowed, kDenied, kUnknown };
  Verdict verdict(std::string_view header) const;

  // The name in the header; empty: it has none.
  static std::string user_in(std::string_view header);

  // Computes a hash: some 70 ms for a cost of 10, also for a user that does not exist, so that
  // nothing is learnt from the time. May be called from any thread.
  bool verify(std::string_view header) const;

  // verdict() allows this header from now on. Of very many only some are remembered.
  void remember(std::string_view header);

 private:
  using Digest = std::array<unsigned char, 32>;
  Digest digest(std::string_view header) const;

  std::map<std::string, std::string> users_;
  Digest salt_;
  std::set<Digest> remembered_;
};

// TLS and passwords as a file says, read anew when it or a file that it names changes.
// Thread safety: none; what it returns may be used from other threads as its type says.
class WebSecurity {
 public:
  // Errors: as read_web_config's; invalid_argument for certificates and keys that cannot be used.
  static Result<std::unique_ptr<WebSecurity>> open(const std::filesystem::path& path);

  // At most once a second, looks for changes. What cannot be used is reported on stderr, and the
  // settings before it stay.
  void refresh(HostTime now);

  // nullptr: no TLS.
  const std::shared_ptr<boost::asio::ssl::context>& tls() const { return tls_; }
  const std::shared_ptr<BasicAuth>& auth() const { return auth_; }
  const WebConfig& config() const { return config_; }
  // Takes a request from the bucket of the file's rate_limit. False: it is empty.
  bool admits(HostTime now);
  // Whether every caller shows a password or a certificate.
  bool identifies_callers() const;

 private:
  // Modification times and sizes of all files.
  using Print = std::vector<std::pair<std::filesystem::file_time_type, std::uintmax_t>>;

  explicit WebSecurity(std::filesystem::path path) : path_(std::move(path)) {}
  Result<void> load();
  Print print() const;

  const std::filesystem::path path_;
  WebConfig config_;
  std::shared_ptr<boost::asio::ssl::context> tls_;
  std::shared_ptr<BasicAuth> auth_;
  Print print_;
  HostTime next_{};
  double bucket_ = 0;  // requests in it
  HostTime filled_{};
};

// The user whose program is at `client` of a connection from this machine to `server`; each as
// "ADDRESS:PORT" in /proc/net/tcp writes them. Absent: it is not known.
std::optional<std::uint32_t> user_of_connection(std::string_view client, std::string_view server,
                                                const std::filesystem::path& table);

}  // namespace jouleprof::serve
