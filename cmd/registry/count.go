package main

import "fmt"

// count is a number and a noun that takes an s where there is not one of it.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
