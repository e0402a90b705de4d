// Package cli has what the commands of registry share: flags with their checks, connections to the
// broker and to a running server, errors with remedies, and output for terminals.
//
// # Promises
//
//   - A mistake on the command line or in the environment is a UsageError whose text names the
//     flag.
//   - An error about a file, a disk, the broker or the server ends with its remedy, if one is known.
//   - No error shows the user or the password of a broker's address.
//   - Text that strangers may have written goes to a terminal through Printable alone.
//   - Connecting to a broker times out after a few seconds. A running server may take an hour to answer,
//     since it answers a rebuild only at its end.
package cli
