// Command make makes the demonstration's tables in a folder.
//
//	make DIR
package main

import (
	"context"
	"fmt"
	"os"

	"icepipe/internal/demo"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make DIR")
		os.Exit(64)
	}
	if err := demo.Make(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
