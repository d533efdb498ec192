// layout_normal_form() and normal_form() of Python.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::method {

// Comments, empty lines and texts that stand alone are left out; lines keep their depth. CUDA in a text of
// three quotes has its own form.
std::string python_layout_form(std::string_view source);
// The same with what the module names itself (functions, classes, variables, parameters, members of self) and
// constants renamed in the order of their first appearance. Names that it imports, and names of arguments in
// calls that it does not use itself, stay.
std::string python_normal_form(std::string_view source);

}  // namespace warpsmith::method
