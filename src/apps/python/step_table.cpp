#include <algorithm>
#include <limits>

#include "apps/python/native.h"

namespace nb = nanobind;

namespace jouleprof::python {
namespace {

std::uint32_t number_of(PyObject* object) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return static_cast<std::uint32_t>(
      std::min<unsigned long long>(value, std::numeric_limits<std::uint32_t>::max()));
}

// Absent: null. The reference is borrowed.
PyObject* found(const nb::dict& of, nb::handle key) {
  PyObject* const value = PyDict_GetItemWithError(of.ptr(), key.ptr());
  if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

}  // namespace

void StepTable::forget(nb::handle name) {
  PyObject* const slot = found(slots_, name);
  if (slot == nullptr) return;
  free_.push_back(PyLong_AsSize_t(slot));
  if (PyDict_DelItem(slots_.ptr(), name.ptr()) != 0) nb::raise_python_error();
}

StepTable::Known& StepTable::known_of(nb::handle name, const nb::callable& learn) {
  if (PyObject* const slot = found(slots_, name)) return known_[PyLong_AsSize_t(slot)];
  const auto learnt = nb::cast<nb::tuple>(learn(name));
  const Known known{number_of(nb::object(learnt[0]).ptr()), number_of(nb::object(learnt[1]).ptr()),
                    0, false};
  std::size_t slot = known_.size();
  if (free_.empty()) {
    known_.push_back(known);
  } else {
    slot = free_.back();
    free_.pop_back();
    known_[slot] = known;
  }
  slots_[name] = slot;
  return known_[slot];
}

nb::bytes StepTable::shares(const nb::list& names, const nb::list& tokens, const nb::list& contexts,
                            const nb::callable& learn, const nb::set& anew,
                            const nb::dict& rejected) {
  const std::size_t count = std::min({names.size(), tokens.size(), contexts.size()});
  const bool any_anew = anew.size() > 0;
  const bool any_rejected = rejected.size() > 0;
  out_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    const nb::handle name = PyList_GetItem(names.ptr(), at);
    const std::uint32_t computed = number_of(PyList_GetItem(tokens.ptr(), at));
    const std::uint32_t context = number_of(PyList_GetItem(contexts.ptr(), at));
    Known& known = known_of(name, learn);
    const bool begins = !known.begun || (any_anew && anew.contains(name));
    std::uint32_t lost = 0;
    if (any_rejected) {
      if (PyObject* const value = found(rejected, name))
        lost = std::min(number_of(value), computed);
    }
    const std::uint32_t end = context + computed;
    const std::uint32_t again = std::min(known.computed, end) - std::min(known.computed, context);
    const bool prefill = context < known.prompt || again > 0;
    known.begun = true;
    known.computed = std::max(known.computed, end - lost);
    out_.insert(out_.end(), {known.number, computed, context, begins && prefill ? context : 0, lost,
                             again, prefill ? 1U : 0U});
  }
  return nb::bytes(out_.data(), out_.size() * sizeof(std::uint32_t));
}

}  // namespace jouleprof::python
