// Names of devices, as different tools write them.
#pragma once

#include <string_view>

namespace warpsmith {

// Whether the device's name `text` holds `words` as whole words, case, spaces and hyphens aside: "H20" is in
// "NVIDIA H20" and not in "NVIDIA H200", "RTX3090" is in "NVIDIA GeForce RTX 3090" and not in "NVIDIA GeForce
// RTX 3090 Ti", which is another model, as is what SUPER, D, Ada or Laptop follows.
bool holds_words(std::string_view text, std::string_view words);

}  // namespace warpsmith
