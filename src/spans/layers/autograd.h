// The layer of a thread that runs a backward pass. PyTorch gives each node of its graph a number
// when the forward pass makes it; the node belongs to the layer that was called at that time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/torch_abi.h"
#include "base/result.h"

namespace jouleprof::layers {

// The functions of the libtorch_cpu.so that the process has loaded. Tests fill in their own.
struct AutogradFunctions {
  abi::torch::SequencePeek* sequence_peek = nullptr;
  abi::torch::CurrentThreadId* current_thread_id = nullptr;
  abi::torch::CurrentNode* current_node = nullptr;

  static Result<AutogradFunctions> load();  // unsupported: this PyTorch does not have them
};

// A gradient function that Python holds (PyObject*), made by the calling thread, and the sequence
// number that it has in Python.
struct GradientSample {
  const void* function = nullptr;
  std::uint64_t sequence = 0;
};

struct BackwardNode {
  std::uint64_t sequence = 0;  // abi::torch::kAccumulateSequence: of no layer
  std::uint64_t thread = 0;    // the forward pass's, PyTorch's number
};

// Reads nodes. Every offset is checked with the samples before it is used: of a PyTorch with
// another layout of nodes nothing is read.
class Autograd {
 public:
  // `samples`: at least three nodes with an edge to each other and one more that adds to a
  // gradient, kept alive by the caller; `size`: of such a function's Python object. Errors:
  // unsupported.
  static Result<Autograd> verified(const AutogradFunctions& functions,
                                   const std::vector<GradientSample>& samples, std::size_t size);

  // The node that the calling thread runs the backward of; empty: none.
  std::optional<BackwardNode> current() const noexcept;
  std::uint64_t next_sequence() const noexcept { return functions_.sequence_peek(); }
  std::uint64_t this_thread() const noexcept { return functions_.current_thread_id(); }

 private:
  AutogradFunctions functions_;
  std::size_t sequence_offset_ = 0;
  bool intrusive_ = false;
};

}  // namespace jouleprof::layers
