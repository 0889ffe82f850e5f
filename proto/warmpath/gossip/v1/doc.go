// Package gossipv1 is the messages that warmpath processes tell each other, version
// 1. The .proto file says what they mean; make proto writes the code.
package gossipv1
