package events

import "crypto/rand"

// Names that backends, operators and the projector share (events/CONTRACT.md#stream, #publishing,
// #asking-first and #rejection).
const (
	DefaultStream   = "REGISTRY"
	StreamSubjects  = "registry.>"
	RejectedStream  = "REGISTRY_REJECTED" // one for each broker, regardless of the event stream's name
	RejectedPrefix  = "registry-rejected."
	ValidateSubject = "registry-validate" // where a service says whether an event is valid
	DefaultHistory  = 5                   // messages kept for each subject
	MetadataEpoch   = "registry-epoch"
	MetadataFollows = "registry-follows" // the epochs that this epoch follows, the newest first, separated by spaces
	MetadataDemo    = "registry-demo"    // "true" on the demonstration stream
	ContentType     = "application/cloudevents+json"
	HeaderContent   = "Content-Type"
	HeaderReason    = "Registry-Reason"    // one line, at most 200 bytes
	HeaderSequence  = "Registry-Sequence"  // of the rejected message in its stream, decimal
	HeaderSubject   = "Registry-Subject"   // of the rejected message, or of the one to validate
	HeaderTime      = "Registry-Time"      // when the rejected message was stored, RFC 3339
	HeaderTruncated = "Registry-Truncated" // "1" where the payload was cut at MaxRejected

	MaxRejected = 64 << 10 // bytes of payload stored of a rejected message
)

// NewEpoch returns a random identity for a new stream, safe as a subject token.
func NewEpoch() string { return rand.Text() }
