// What of a machine's files a python3 needs, for a sandbox that shows nothing else.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::python {

// What a program of a few lines prints last, a line of JSON, in `python` without our working folder: what a
// site's own start-up files print comes before it. Nothing where it does not start or prints something else.
std::optional<Json> ask_python(const std::filesystem::path& python, const std::string& program);

// Folders (and archives of modules) that `python` reads when it starts and imports: its own, that of the
// installation below a virtual environment, those of its packages. As it names them and, where that is
// another place, as they are. Without what lies below /usr, which every sandbox shows. Asked once a process
// and python; empty where it does not start, and then asked again.
//
// Variables of ours that say where it finds packages (PYTHONPATH) enter the answer: a sandboxed python3 needs
// them too.
const std::vector<std::filesystem::path>& python_folders(const std::filesystem::path& python);

// Of the variables of ours those by which a python3 of a site finds its packages and libraries: a sandboxed
// one wants the same. Those that are set; and a user's name, which torch asks for where a sandbox has no list
// of users (torch._inductor names a cache by it).
std::map<std::string, std::string> python_variables();

// The first words of a command that starts `python` in a sandbox. The program of a virtual environment is a
// link, and python3 knows its environment by the name that it was started with: where a sandbox would put the
// program itself in the place of the link (it cannot), `env` starts it by its name.
std::vector<std::string> python_command(const std::filesystem::path& python);

}  // namespace warpsmith::python
