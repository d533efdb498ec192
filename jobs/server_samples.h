// Samples of a served model, for warpsmith-generate.
#pragma once

#include "warpsmith/records/shard.h"

namespace warpsmith {

// params: endpoint: {url, model, key_variable, ca_file, proxy, answer_s, tries, first_wait_s, in_flight,
// requests_a_minute, tokens_a_minute, chat, budget: {tokens, money}, prices: {prompt, completion}};
// temperature, top_p, max_tokens, log_probabilities. items: {"id", "n"} and {"messages": [{"role",
// "content"}]} or
// {"prompt", "shorter"}, which is sent as a chat or to be continued, as `chat` says. A prompt that the server
// refuses is made shorter, one exemplar less at a time. Records: {"prompt_tokens", "samples": [{"text",
// "finished", "tokens" where the server counted them for one, "logprobs_blob"}], "seconds", "model", "spent":
// {"prompt", "completion", "lost"}}; "exemplars_left_out" of `shorter`; "error" where the server refused it.
//
// Extra records: {"asked": {"item", "first", "most": [prompt, completion]}} before a request is sent,
// {"answer": {"item", "first", "used", "choices", …}} as soon as it came, {"failed": {"item", "first",
// "cost"}}, {"shortened": {"item", "left_out"}}. A shard that is started again asks for nothing that it has
// an answer to, and counts what it had asked for, and had no answer to, as lost: in full.
//
// Throws Error (kExitUsage) where the next request might pass the budget: with a larger one the shard goes
// on.
void sample_from_server(ShardSession& shard);

}  // namespace warpsmith
