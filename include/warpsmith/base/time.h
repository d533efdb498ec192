// Time of day, as files have it.
#pragma once

#include <string>

namespace warpsmith {

std::string utc_now();  // "2026-05-01T12:00:00Z"

}  // namespace warpsmith
