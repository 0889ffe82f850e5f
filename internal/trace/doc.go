// Package trace reads records of what LLM requests came when: arrival, lengths,
// and which requests begin alike. A simulation replays them.
//
// Traces are published in many shapes. Some have the prompts, some only hashes
// of blocks of them, some only lengths. All become one: a [Request] has one hash
// for each whole chunk of [ChunkTokens] tokens of its prompt, and equal hashes
// mean equal prompts up to there. A token of a prompt that is given as text is 4
// characters, so that a chunk is what the router calls a level, and texts are cut by
// the router's own code (package prefix).
//
// # Formats
//
// Generic ones, for traces of one's own, as JSON lines:
//
//   - mooncake: timestamp (ms), input_length, output_length, hash_ids: an id for
//     each block of [Options.BlockTokens] tokens, the last of which may be shorter.
//     What warmpath records has block_size too, the size of a block in tokens (then
//     the ids may cover only the prompt's beginning), stands_for, how many requests
//     this is one of, and salt_id.
//   - text: timestamp (see [Options.TimeUnit]), input (a prompt, or a list of
//     messages), output (text) or output_length.
//
// Both may have session_id, model and tenant; other members are ignored.
//
// Those of single data sets, as they were published: azure, copilot, miniswe,
// ragpulse, realhumaneval, weka. bench/data/README.md says where they are from and
// what is peculiar in each.
//
// # What is refused
//
// A trace is read as a whole or refused, with file, line, value and bound. A
// value that is or may be prompt text is never part of an error; its length is.
// [Limits] bound what a hostile file can make of the reader's memory.
package trace
