package httpapi

import "log/slog"

// Secret is a text that no log and no message shows.
type Secret string

const redacted = "[redacted]"

// String is what fmt prints of it.
func (Secret) String() string { return redacted }

// GoString is what %#v prints of it.
func (Secret) GoString() string { return redacted }

// LogValue is what slog writes of it.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is what encoders write of it.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
