// Chat templates of language models, rendered by a python3 that has Jinja2.
#pragma once

#include "warpsmith/base/json.h"

namespace warpsmith::python {

// What it is asked and answers: RenderChats in tokenizer/frame.h. Throws Error (exit code 2) where there is
// no such python3, or it does not answer.
Json render_chats(const Json& question);

}  // namespace warpsmith::python
