// Package examples holds runnable stories, one a folder, each with a README. Its
// tests keep their files true: what they configure is what warmpath and the
// shipped Envoy configuration understand.
package examples
