// The hook in the calls of PyTorch's modules.
#pragma once

#include "apps/inject/python_api.h"
#include "base/result.h"
#include "spans/layers/module_map.h"

namespace jouleprof::inject {

// All calls with Python's global lock held. Once installed, it stays for the life of the process.
class LayersCall {
 public:
  // Puts itself in the place of `function`, torch.nn.Module.__call__, where C calls it: the Python
  // object stays the same, so that whatever compares or inspects it (torch.compile, torch.fx) finds
  // what it expects. `implementation`: _call_impl of the same class, which the former calls, if it
  // may be called at once, else nullptr. `also_implementation`: an interpreter that enters Python
  // functions called from Python without asking (3.11) passes the former by at times, so the latter
  // is watched too. `introduce(module, caller, *values)` is called for modules that are not
  // known yet; `caller`: 0, or the layer that calls it + 1. `set_compiler`:
  // torch._C._dynamo.eval_frame.set_eval_frame, or nullptr. `keep(module, keyword_names, *values)`,
  // or nullptr, is called before each call from outside of all layers. References are kept. Errors:
  // unsupported.
  static Result<void> install(const PythonApi& api, abi::python::Object* function,
                              abi::python::Object* implementation, bool also_implementation,
                              abi::python::Object* introduce, abi::python::Object* set_compiler,
                              abi::python::Object* keep);

  static layers::ModuleMap& modules();
};

}  // namespace jouleprof::inject
