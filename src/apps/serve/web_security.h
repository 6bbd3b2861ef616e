// TLS and passwords as a file says, read anew when it or a file that it names changes.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/serve/basic_auth.h"
#include "apps/serve/web_config.h"
#include "base/clock.h"

namespace jouleprof::serve {

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
};

}  // namespace jouleprof::serve
