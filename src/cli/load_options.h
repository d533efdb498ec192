// What load_workflow() asks other modules for.
#pragma once

#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

// With `dataset: {kernelbench: …}` and with models that are Hugging Face folders.
workflow::LoadOptions with_folders(workflow::LoadOptions options);

}  // namespace warpsmith::cli
