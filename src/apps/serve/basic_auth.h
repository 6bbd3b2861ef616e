// Names and passwords of HTTP's basic authentication (RFC 7617), with bcrypt hashes.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace jouleprof::serve {

class BasicAuth {
 public:
  explicit BasicAuth(std::map<std::string, std::string> users);

  // From the header Authorization, without computing a hash.
  enum class Verdict { kAllowed, kDenied, kUnknown };
  Verdict look(std::string_view header) const;

  // Computes a hash: some 70 ms for a cost of 10, also for a user that does not exist, so that
  // nothing is learnt from the time. May be called from any thread.
  bool verify(std::string_view header) const;

  // look() allows this header from now on. Of very many only some are remembered.
  void remember(std::string_view header);

 private:
  using Digest = std::array<unsigned char, 32>;
  Digest digest(std::string_view header) const;

  std::map<std::string, std::string> users_;
  Digest salt_;
  std::set<Digest> remembered_;
};

}  // namespace jouleprof::serve
