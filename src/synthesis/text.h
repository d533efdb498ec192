// What the files of this module share.
#pragma once

#include <string>

#include "warpsmith/synthesis/chain.h"

namespace warpsmith::synthesis {

inline const Operator& op(std::size_t number) { return operators()[number]; }

inline std::string replaced(std::string text, const std::string& mark, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
    text.replace(at, mark.size(), value);
  return text;
}

}  // namespace warpsmith::synthesis
