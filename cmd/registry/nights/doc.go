// Package nights tests that a registry comes back from any bad night: nobody who was delisted is
// accused again, nobody who is listed is forgotten, and what a server cannot know, it says.
//
// A night is a list of steps over servers, their broker, files and a backend, drawn by rapid from a
// seed (steps_test.go). It is played with the built program, kill -9 included (world_test.go). After
// each step the judge holds every server against the ledger (judge_test.go), and in the morning the
// operator runs registry recover at every server that is left.
//
// -night.first and -night.count play other seeds, "-night=TEXT" one night as a failure prints it, and
// -night.shrink takes out of a night that fails every step that it fails without.
package nights
