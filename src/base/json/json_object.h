// Typed reading of small JSON documents. Every error names the place of the value that is wrong.
// Big traces are scanned where they stand instead: json_view.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof {

// Errors: `code` where the text is not JSON.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file,
                                  Errc code = Errc::kInvalidArgument);

// The first error in a document, shared by all its objects.
struct JsonErrors {
  std::string file;
  std::optional<Error> first = std::nullopt;
  Errc code = Errc::kInvalidArgument;

  void add(const std::string& path, const std::string& what);
};

// A missing key leaves `out` unchanged. A wrong value is added to the errors and leaves it
// unchanged, too. The document and the errors must outlive the object.
class JsonObject {
 public:
  // `path` is the object's place, empty for the document itself.
  JsonObject(const nlohmann::json& value, std::string path, JsonErrors& errors);

  bool has(const char* key) const;
  bool is_null(const char* key) const;  // present and null
  void number(const char* key, double& out, double min, double max);
  void integer(const char* key, std::int64_t& out, std::int64_t min, std::int64_t max);
  void unsigned_integer(const char* key, unsigned& out, unsigned max);
  void text(const char* key, std::string& out);
  void flag(const char* key, bool& out);
  // The position of the text among `words`; -1 if the key is absent or none of them.
  int word(const char* key, const std::vector<std::string>& words);
  std::optional<JsonObject> object(const char* key);
  std::vector<JsonObject> objects(const char* key);  // one object stands for a list of one
  const nlohmann::json* raw(const char* key);        // any value, or nullptr
  void require(const char* key);

  // Adds an error for each key that no function above was called with. Call it last.
  void finish();
  void error(const std::string& key, const std::string& what);
  std::string path(const std::string& key) const;
  const nlohmann::json& value() const { return *value_; }

 private:
  const nlohmann::json* value_;
  std::string path_;
  JsonErrors* errors_;
  std::set<std::string> known_;
};

}  // namespace jouleprof
