// What to say of a command line that cannot be read: which word is unknown, and which one it is near to.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace warpsmith::cli {

// The first command or option in `words` that `app` does not have, with the nearest that it has. Empty: each
// is known, and something else is wrong.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace warpsmith::cli
