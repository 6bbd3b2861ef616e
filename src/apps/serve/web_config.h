// The file of --web.config.file: TLS, users and headers, in the format of Prometheus'
// exporter-toolkit.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::serve {

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

}  // namespace jouleprof::serve
