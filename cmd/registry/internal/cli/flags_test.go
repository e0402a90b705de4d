package cli

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrustedProxies(t *testing.T) {
	var got []string
	for _, text := range []string{"10.1.2.3/8", "::1", " 10.0.0.1", "::ffff:127.0.0.1", "::ffff:172.16.0.0/108"} {
		var n Network
		require.NoError(t, n.UnmarshalText([]byte(text)))
		got = append(got, Prefixes([]Network{n})[0].String())
	}
	if want := []string{"10.0.0.0/8", "::1/128", "10.0.0.1/32", "127.0.0.1/32", "172.16.0.0/12"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, text := range []string{"", "10.0.0.0/33", "::ffff:0.0.0.0/80", "x"} {
		if err := new(Network).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
