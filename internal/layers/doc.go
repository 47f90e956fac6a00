// Package layers holds the test of the house's rules: which package imports which, and that every
// program and every document says the same of exit codes and of the words that are fixed.
package layers
