package upstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

const (
	someUser  = "100000000000000001"
	someToken = "Canary.Token-example"
	pngText   = "\x89PNG\r\n\x1a\n" // begins like a PNG, which is what a picture is recognized by
)

func userNo(i int) string { return strconv.Itoa(100000000000000000 + i) }

// chat is a platform without a network. Its fields are set before it is asked.
type chat struct {
	takes            time.Duration
	profile, picture func() (*http.Response, error) // nil: a user with a picture

	mu           sync.Mutex
	asked        []*http.Request
	at           []time.Time // when users were asked for
	atOnce, most int
}

func (c *chat) RoundTrip(r *http.Request) (*http.Response, error) {
	isProfile := strings.Contains(r.URL.Path, "/users/")
	c.mu.Lock()
	c.asked = append(c.asked, r)
	if isProfile {
		c.at = append(c.at, time.Now())
	}
	c.atOnce++
	c.most = max(c.most, c.atOnce)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.atOnce--; c.mu.Unlock() }()

	select {
	case <-time.After(c.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	switch {
	case isProfile && c.profile != nil:
		return c.profile()
	case isProfile:
		return textResponse(200, `{"id":"1","avatar":"a_0f"}`), nil
	case c.picture != nil:
		return c.picture()
	}
	return textResponse(200, pngText+r.URL.RawQuery), nil
}

func (c *chat) numAsked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// serve returns Services of that platform, and their log.
func (c *chat) serve(t testing.TB) (*Services, *eventstest.Log) {
	t.Helper()
	log := &eventstest.Log{}
	s := New(Config{
		Avatars:   AvatarConfig{API: "https://api.example/v10/", CDN: "https://cdn.example", Token: someToken},
		UserAgent: "DiscordBot (https://registry.example, 1.0.0)",
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
		transport: c,
	})
	t.Cleanup(s.Close)
	return s, log
}

// look returns what is shown of a user: the bytes of a passed-on picture, "none" or "failed".
func look(t testing.TB, s *Services, user string, size int) string {
	t.Helper()
	got, err := s.Avatar(user, size)
	require.NoError(t, err)
	drawn, _ := drawn(t, user, size)
	switch {
	case !bytes.Equal(got.Bytes, drawn):
		return string(got.Bytes)
	case got.Failed:
		return "failed"
	}
	return "none"
}

// A picture takes one question about the user, with the token, and one for the picture, without it. After that it is known.
func TestAvatarOfThePlatform(t *testing.T) {
	c := &chat{}
	s, log := c.serve(t)
	for range 3 {
		require.Equal(t, pngText+"size=128", look(t, s, someUser, 128))
	}
	require.Equal(t, pngText+"size=64", look(t, s, someUser, 64))

	var got []string
	for _, r := range c.asked {
		got = append(got, r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("User-Agent"))
	}
	const agent = " DiscordBot (https://registry.example, 1.0.0)"
	require.Equal(t, []string{
		"https://api.example/v10/users/" + someUser + " Bot " + someToken + agent,
		"https://cdn.example/avatars/" + someUser + "/a_0f.png?size=128 " + agent,
		"https://cdn.example/avatars/" + someUser + "/a_0f.png?size=64 " + agent,
	}, got)
	require.Empty(t, log.String())
}

// Ids that no platform has issued are not asked for.
func TestAvatarsThatNobodyIsAskedFor(t *testing.T) {
	c := &chat{}
	s, _ := c.serve(t)
	for _, user := range []string{"1", "12345678901234", "123456789012345678901", "a", "10000000000000000a", strings.Repeat("1", 64)} {
		require.Equal(t, "none", look(t, s, user, 128))
	}
	require.Zero(t, c.numAsked())
}

// Four kinds of picture are passed on, recognized by their bytes, whatever they are called. All else is
// a failure of the platform or no picture, and nothing of it, nor an id or the token, is logged.
func TestWhatIsPassedOn(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 2, 2), palette.WebSafe)
	encoded := func(encode func(*bytes.Buffer) error) string {
		var out bytes.Buffer
		require.NoError(t, encode(&out))
		return out.String()
	}
	webp := "RIFF" + string(binary.LittleEndian.AppendUint32(nil, 26)) + "WEBPVP8L" + strings.Repeat("\x00", 18)
	sends := func(status int, text string, header ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			r := textResponse(status, text)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			return r, nil
		}
	}
	breaks := func() (*http.Response, error) { return nil, errors.New("canary: connection reset") }
	for name, c := range map[string]struct {
		profile, picture func() (*http.Response, error)
		want             string // "": the picture's text
	}{
		"png":                {nil, sends(200, encoded(func(b *bytes.Buffer) error { return png.Encode(b, img) }), "Content-Type", "text/html"), ""},
		"jpeg":               {nil, sends(200, encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) })), ""},
		"gif":                {nil, sends(200, encoded(func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) })), ""},
		"webp":               {nil, sends(200, webp), ""},
		"the largest":        {nil, sends(200, pngText+strings.Repeat("x", maxPicture-len(pngText))), ""},
		"too large":          {nil, sends(200, pngText+strings.Repeat("x", maxPicture-len(pngText)+1)), "failed"},
		"svg":                {nil, sends(200, "<svg canary/>", "Content-Type", "image/png"), "failed"},
		"html":               {nil, sends(200, "<html>canary", "Content-Type", "image/png"), "failed"},
		"encoded":            {nil, sends(200, pngText, "Content-Encoding", "gzip"), "failed"},
		"redirect":           {nil, sends(302, "", "Location", "https://canary.example"), "failed"},
		"no such picture":    {nil, sends(404, ""), "none"},
		"picture forbidden":  {nil, sends(403, ""), "failed"},
		"picture broken off": {nil, breaks, "failed"},
		"no such user":       {sends(404, ""), nil, "none"},
		"user without one":   {sends(200, `{"avatar":null}`), nil, "none"},
		"no JSON":            {sends(200, "canary"), nil, "failed"},
		"a name that is not": {sends(200, `{"avatar":"../canary"}`), nil, "failed"},
		"a huge profile":     {sends(200, `{"canary":"`+strings.Repeat("x", maxProfile)+`"}`), nil, "failed"},
		"unauthorized":       {sends(401, ""), nil, "failed"},
		"limited":            {sends(429, ""), nil, "failed"},
		"server error":       {sends(500, ""), nil, "failed"},
		"broken off":         {breaks, nil, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			platform := &chat{profile: c.profile, picture: c.picture}
			s, log := platform.serve(t)
			want := c.want
			if want == "" {
				r, _ := c.picture()
				var text bytes.Buffer
				_, err := text.ReadFrom(r.Body)
				require.NoError(t, err)
				want = text.String()
			}
			require.Equal(t, want, look(t, s, someUser, 128))
			require.NotRegexp(t, "canary|"+someUser+"|"+someToken, log.String())
		})
	}
}

// Pictures are kept an hour, their absence ten minutes, a failure one; not a moment longer.
func TestHowLongAvatarsAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		kept   time.Duration
	}{"a picture": {200, pictureKept}, "none": {404, noPictureKept}, "a failure": {500, failureKept}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				platform := &chat{}
				if c.status != 200 {
					platform.profile = func() (*http.Response, error) { return textResponse(c.status, ""), nil }
				}
				s, _ := platform.serve(t)
				look(t, s, someUser, 128)
				first := platform.numAsked()
				time.Sleep(c.kept - time.Millisecond)
				look(t, s, someUser, 128)
				require.Equal(t, first, platform.numAsked(), "kept")
				time.Sleep(2 * time.Millisecond)
				look(t, s, someUser, 128)
				require.Equal(t, 2*first, platform.numAsked(), "asked again")
			})
		})
	}
}

// At most 32 at once, at most 20 in any second; whoever would have to wait longer than the time-out, or
// is the 33rd, gets a generated picture.
func TestHowManyAvatarsAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		platform := &chat{takes: 2 * time.Second}
		s, _ := platform.serve(t)
		var group sync.WaitGroup
		var mu sync.Mutex
		seen := map[bool]int{}
		for second := range 30 {
			for i := range 100 {
				group.Go(func() {
					got, err := s.Avatar(userNo(second*100+i), 16)
					require.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					seen[got.Failed]++
				})
			}
			time.Sleep(time.Second)
		}
		group.Wait()

		require.LessOrEqual(t, platform.most, maxAtOnce)
		for i, at := range platform.at {
			if i >= perSecond {
				require.GreaterOrEqual(t, at.Sub(platform.at[i-perSecond]), time.Second-time.Microsecond)
			}
		}
		require.Greater(t, seen[false], 100)
		require.Greater(t, seen[true], 1000)
	})
}

// Requests for one user share one call, also for several sizes, and one that hangs ends after 6 s.
func TestCallsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		platform := &chat{takes: time.Second}
		s, _ := platform.serve(t)
		var group sync.WaitGroup
		for i := range 50 {
			size := []int{64, 128}[i%2]
			group.Go(func() { require.Equal(t, fmt.Sprint(pngText, "size=", size), look(t, s, someUser, size)) })
		}
		group.Wait()
		require.Len(t, platform.at, 1, "questions about the user")
		require.Equal(t, 3, platform.numAsked())

		platform.takes = time.Hour
		began := time.Now()
		require.Equal(t, "failed", look(t, s, userNo(2), 128))
		require.Equal(t, callTimeout, time.Since(began))
	})
}

// After a failure the platform is left alone: for as long as it says, but at most an hour, else for a while.
func TestPause(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		want       time.Duration
	}{
		"limited without a time": {429, "", defaultPause}, "limited for a moment": {429, "0.001", minPause}, "limited for 7 s": {429, "7", 7 * time.Second},
		"limited for days": {429, "864000", maxPause}, "limited for nonsense": {429, "soon", defaultPause}, "limited for less than nothing": {429, "-1", defaultPause},
		"broken": {500, "", minPause}, "broken for 7 s": {503, "7", 7 * time.Second}, "token refused": {401, "", deniedPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				platform := &chat{profile: func() (*http.Response, error) {
					r := textResponse(c.status, "")
					r.Header.Set("Retry-After", c.retryAfter)
					return r, nil
				}}
				s, _ := platform.serve(t)
				require.Equal(t, "failed", look(t, s, userNo(1), 128))
				platform.profile = nil

				time.Sleep(c.want - time.Millisecond)
				require.Equal(t, "failed", look(t, s, userNo(2), 128))
				require.Equal(t, 1, platform.numAsked(), "asked within the pause")
				time.Sleep(51 * time.Millisecond) // the limiter's, too
				require.Contains(t, look(t, s, userNo(2), 128), pngText)
			})
		})
	}
}

// A request to be left alone is not about the user who was asked for.
func TestPauseIsAboutNoUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		platform := &chat{profile: func() (*http.Response, error) { return textResponse(429, ""), nil }}
		s, _ := platform.serve(t)
		require.Equal(t, "failed", look(t, s, someUser, 128))
		platform.profile = nil
		time.Sleep(defaultPause + time.Second)
		require.Contains(t, look(t, s, someUser, 128), pngText)
	})
}

// The cache keeps within its bytes.
func TestAvatarCacheIsBounded(t *testing.T) {
	cache := newAvatarCache(1 << 20)
	for i := range 1000 {
		cache.Set(avatarKey{userNo(i), 128}, cachedAvatar{result: avatarFound, media: "image/png", bytes: make([]byte, 10<<10)})
	}
	cache.CleanUp()
	require.LessOrEqual(t, cache.WeightedSize(), uint64(1<<20))
	require.Greater(t, cache.WeightedSize(), uint64(1<<19))
}
