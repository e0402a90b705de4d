// Package uptime records how the components of the status did in the last 90 days: how many probes
// each had, how many failed, the latency, and the last failure.
//
// Start with [Recorder.Run] and [Recorder.Of].
//
// # Promises
//
//   - The memory is bounded: 90 days of each component, four numbers a day, and one incident.
//   - It belongs to one process and its data directory. It takes no part in the read model, its
//     digest or its snapshots; each replica has its own, of its own probes.
//   - If reading or saving fails, only the history suffers: the recorder logs the error and goes on.
//   - A minute counts once, however many clients cause a round of probes in it.
//
// # Why
//
// Days are summed up as they go, because the page shows days, and a mean needs only a sum and a
// count. Storing each of the 130,000 rounds of 90 days would take megabytes, and a time series
// database more than the registry itself.
//
// The whole history is one file of about 10 KB, written every 5 minutes and at the end, and
// renamed. So there is nothing to compact or to migrate, rebuilds do not affect it, and a crash
// loses 5 minutes.
package uptime
