// Strict reading of a JSON object: every key is asked for, has its type and range, or is an error
// that says where it stands.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::nvml_sim {

// The first thing that was wrong in a document, shared by all its objects.
struct JsonErrors {
  std::string file;
  std::optional<Error> first;

  void add(const std::string& path, const std::string& what);
};

// Absent keys leave `out` as it was; a wrong value is noted in the errors and leaves it too.
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
  // An object or nothing; a list of objects (one object stands for a list of one).
  std::optional<JsonObject> object(const char* key);
  std::vector<JsonObject> objects(const char* key);
  const nlohmann::json* raw(const char* key);  // any value, or nullptr
  void require(const char* key);

  // Notes keys that were never asked for. Call it last.
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

}  // namespace jouleprof::nvml_sim
