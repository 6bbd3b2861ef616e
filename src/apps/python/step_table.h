// The shares of an inference server's steps, as python/jouleprof/serving/_recorder.py records them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jouleprof::python {

// Knows of each request how far it was computed, so that a step needs no more than what the engine
// schedules. Every method is called with the interpreter's lock held.
class StepTable {
 public:
  void forget(nanobind::handle name);

  // Of a step in which names[i] has tokens[i] computed after contexts[i]: seven numbers of 32 bits
  // for each. `learn(name)` returns (number, prompt) of one that is not known. `anew`: names that
  // begin again, and may find what the prefix cache has of them; the first step of a request does
  // so, too. `rejected`: of the tokens, by name.
  nanobind::bytes shares(const nanobind::list& names, const nanobind::list& tokens,
                         const nanobind::list& contexts, const nanobind::callable& learn,
                         const nanobind::set& anew, const nanobind::dict& rejected);

 private:
  struct Known {
    std::uint32_t number = 0;
    std::uint32_t prompt = 0;
    std::uint32_t computed = 0;  // the most tokens that had keys and values
    bool begun = false;
  };

  Known& known_of(nanobind::handle name, const nanobind::callable& learn);

  nanobind::dict slots_;  // by name
  std::vector<Known> known_;
  std::vector<std::size_t> free_;
  std::vector<std::uint32_t> out_;
};

}  // namespace jouleprof::python
