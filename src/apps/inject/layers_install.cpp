// The functions for Python that define and call layers.
#include <cstdint>
#include <vector>

#include "apps/inject/layers_call.h"
#include "apps/inject/trace.h"
#include "spans/layers/autograd.h"
#include "spans/layers/layers.h"
#include "spans/layers/thread_layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::inject {
namespace {

using abi::python::MethodDef;
using abi::python::Object;
using abi::python::Size;

PythonApi api;

Object* wrong(const char* text) {
  if (api.error_occurred() == nullptr) api.set_error(api.runtime_error, text);
  return nullptr;
}

const char* text_of(Object* object) {
  const char* text = api.as_utf8(object);
  if (text == nullptr) api.clear_error();
  return text == nullptr ? "" : text;
}

// define(name, type, parent or -1, shapes, parameters, macs or -1, compiled) -> the layer's number
Object* define(Object*, Object* const* arguments, Size count) {
  if (count != 7) return wrong("define takes seven arguments");
  model::Layer layer;
  layer.name = text_of(arguments[0]);
  layer.type = text_of(arguments[1]);
  const double parent = api.as_double(arguments[2]);
  if (parent >= 0) layer.parent = static_cast<std::uint32_t>(parent);
  layer.shapes = text_of(arguments[3]);
  layer.parameters = api.as_unsigned(arguments[4]);
  const double macs = api.as_double(arguments[5]);
  if (macs >= 0) layer.macs = macs;
  layer.compiled = api.is_true(arguments[6]) == 1;
  if (api.error_occurred() != nullptr) return nullptr;
  const std::uint32_t id = scopes::add(layer);
  return id == model::kNone ? wrong("there are too many layers") : api.from_unsigned(id);
}

// put(address, layer, inner): the module at this address is that layer
Object* put(Object*, Object* const* arguments, Size count) {
  if (count != 3) return wrong("put takes three arguments");
  layers::ModuleEntry entry;
  entry.module = reinterpret_cast<const void*>(api.as_unsigned(arguments[0]));
  entry.layer = static_cast<std::uint32_t>(api.as_unsigned(arguments[1]));
  entry.inner = api.is_true(arguments[2]) == 1;
  if (api.error_occurred() != nullptr || entry.module == nullptr) return wrong("no address");
  LayersCall::modules().put(entry);
  return api.none_reference();
}

// erase(address): the module there is no more
Object* erase(Object*, Object* const* arguments, Size count) {
  if (count != 1) return wrong("erase takes one argument");
  const auto address = api.as_unsigned(arguments[0]);
  if (api.error_occurred() != nullptr) return nullptr;
  LayersCall::modules().erase(reinterpret_cast<const void*>(address));
  return api.none_reference();
}

// learn(size of a gradient function, function, its sequence number, function, ...)
Object* learn(Object*, Object* const* arguments, Size count) {
  if (count < 3 || count % 2 == 0) return wrong("learn takes pairs");
  std::vector<layers::GradientSample> samples;
  const auto size = static_cast<std::size_t>(api.as_unsigned(arguments[0]));
  for (Size i = 1; i < count; i += 2) {
    samples.push_back({arguments[i], api.as_unsigned(arguments[i + 1])});
  }
  if (api.error_occurred() != nullptr) return nullptr;
  const auto functions = layers::AutogradFunctions::load();
  if (!functions) return wrong(functions.error().message.c_str());
  const auto autograd = layers::Autograd::verified(*functions, samples, size);
  if (!autograd) return wrong(autograd.error().message.c_str());
  layers::use_autograd(*autograd);
  return api.none_reference();
}

// The calling thread's, where it is in no layer; else nullptr.
layers::ThreadLayers* outside_of_layers() {
  layers::ThreadLayers* thread = layers::active() ? layers::ThreadLayers::mine() : nullptr;
  return thread != nullptr && thread->outermost() ? thread : nullptr;
}

// Hooks of torch.optim: called with the optimizer and its step's arguments
Object* step_begin(Object*, Object* const*, Size) {
  if (auto* thread = outside_of_layers()) {
    thread->set_phase(model::Phase::kOptimizer);
    thread->begin_phase(model::Phase::kOptimizer);
  }
  return api.none_reference();
}
Object* step_end(Object*, Object* const*, Size) {
  if (auto* thread = outside_of_layers()) {
    thread->set_phase(model::Phase::kNone);
    thread->end_phase(model::Phase::kOptimizer);
  }
  return api.none_reference();
}

// Around a backward pass, in the thread that starts it
Object* backward_begin(Object*, Object* const*, Size) {
  if (auto* thread = outside_of_layers()) thread->begin_phase(model::Phase::kBackward);
  return api.none_reference();
}
Object* backward_end(Object*, Object* const*, Size) {
  if (auto* thread = outside_of_layers()) thread->end_phase(model::Phase::kBackward);
  return api.none_reference();
}

// forget(): drops the calls so far
Object* forget(Object*, Object* const*, Size) {
  layers::forget();
  return api.none_reference();
}

// problem(text): to be shown with the trace
Object* problem(Object*, Object* const* arguments, Size count) {
  if (count == 1) layers::add_problem(text_of(arguments[0]));
  return api.none_reference();
}

// The scope of this thread, for tests: (layer + 1) * 4 + phase
Object* where(Object*, Object* const*, Size) {
  model::Scope scope = scopes::this_thread();
  if (scope.layer == model::kNone) layers::find_backward(scope);
  return api.from_unsigned((scope.layer == model::kNone ? 0 : std::uint64_t{scope.layer} + 1) * 4 +
                           static_cast<std::uint64_t>(scope.phase));
}

MethodDef functions[] = {
    {"define", &define, abi::python::kMethFastcall, nullptr},
    {"put", &put, abi::python::kMethFastcall, nullptr},
    {"erase", &erase, abi::python::kMethFastcall, nullptr},
    {"learn", &learn, abi::python::kMethFastcall, nullptr},
    {"step_begin", &step_begin, abi::python::kMethFastcall, nullptr},
    {"step_end", &step_end, abi::python::kMethFastcall, nullptr},
    {"backward_begin", &backward_begin, abi::python::kMethFastcall, nullptr},
    {"backward_end", &backward_end, abi::python::kMethFastcall, nullptr},
    {"forget", &forget, abi::python::kMethFastcall, nullptr},
    {"problem", &problem, abi::python::kMethFastcall, nullptr},
    {"where", &where, abi::python::kMethFastcall, nullptr},
};

// An attribute, as a reference that is kept for ever; nullptr for None and for what is not there.
Object* attribute(Object* of, const char* name) {
  Object* found = api.get_attr_string(of, name);
  if (found == nullptr) api.clear_error();
  return found == api.none ? nullptr : found;
}

}  // namespace
}  // namespace jouleprof::inject

// Makes the modules of PyTorch layers. `side` (python/hook/jouleprof_layers.py's Side) has
// the attributes `function`, `implementation` (or None), `also_implementation`, `introduce`
// and `set_compiler` of LayersCall::install, and is given the functions above as attributes.
// 0: done, now or before. Does nothing else, and raises nothing, when it can't: the trace says why.
extern "C" __attribute__((visibility("default"))) int jouleprof_layers_install(
    jouleprof::abi::python::Object* side) {
  using namespace jouleprof;
  using namespace jouleprof::inject;
  try {
    auto loaded = PythonApi::load();
    if (!loaded) {
      layers::add_problem(loaded.error().message);
      return 1;
    }
    api = *loaded;
    for (MethodDef& function : functions) {
      Object* made = api.new_function(&function, nullptr, nullptr);
      const bool given = made != nullptr && api.set_attr_string(side, function.name, made) == 0;
      if (made != nullptr) api.dec_ref(made);
      if (!given) {
        api.clear_error();
        layers::add_problem("layers are not traced: Python refused jouleprof's function");
        return 2;
      }
    }
    Object* function = attribute(side, "function");
    Object* introduce = attribute(side, "introduce");
    Object* also = attribute(side, "also_implementation");
    if (function == nullptr || introduce == nullptr || also == nullptr) return 3;
    const auto installed =
        LayersCall::install(api, function, attribute(side, "implementation"),
                            api.is_true(also) == 1, introduce, attribute(side, "set_compiler"));
    if (!installed) {
      layers::add_problem(installed.error().message);
      return 4;
    }
    static bool reported = false;
    if (!reported) {
      reported = true;
      add_source([](model::ActivitySink& sink) { layers::send(sink, HostClock::now()); });
    }
    layers::set_active(true);
    return 0;
  } catch (const std::exception& error) {  // no memory
    return 5;
  }
}
