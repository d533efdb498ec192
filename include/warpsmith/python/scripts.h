// Scripts of ours that candidates of tier `python` run under, as text.
#pragma once

#include <string>

namespace warpsmith::python {

// Defines `extension_key(kind, arguments, folder)`: under which name an extension that a candidate builds is
// kept when it is compiled, and found again when it is measured. It stands in front of the scripts that do
// either, and imports what it needs.
std::string extension_key_script();

// Defines `load_task_module(path)`, `seeded_model(module, make)` and `state_of(model)`: how tasks that are
// modules are loaded, made and looked into. It stands in front of the scripts that do so.
std::string task_module_script();

// Writes the parameters and buffers of a task's module to a file; what it is asked stands at its head.
std::string module_state_script();

// Describes tasks of KernelBench for `warpsmith import`: paths on stdin, a line of JSON for each on stdout.
std::string import_task_script();

// Renders a chat template; what it is asked and answers stands at its head.
std::string chat_template_script();

// Runs a candidate in a child; how it is started stands at its head.
std::string candidate_script();

}  // namespace warpsmith::python
