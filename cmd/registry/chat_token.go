package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"example.org/registry/httpapi"
)

// maxToken is the greatest length of a token in bytes.
const maxToken = 4096

// chatToken reads the chat platform's token; empty when none is configured. A file that others
// on the machine may read, or its group may write, is refused: the token is as good as a
// password. The group may read it, because that is how Kubernetes hands secrets to a process
// that is not root.
func (c *serveCmd) chatToken() (httpapi.Secret, error) {
	if c.ChatTokenFile == "" {
		return "", nil
	}
	file, err := os.Open(c.ChatTokenFile)
	if err != nil {
		return "", unreadable("--chat-token-file", c.ChatTokenFile, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", unreadable("--chat-token-file", c.ChatTokenFile, err)
	}
	if mode := info.Mode().Perm(); mode&0o037 != 0 {
		return "", fmt.Errorf("--chat-token-file: mode %04o lets others use the token; chmod 600 %s", mode, c.ChatTokenFile)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken+2))
	if err != nil {
		return "", unreadable("--chat-token-file", c.ChatTokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("--chat-token-file: the file must hold one token of printable ASCII characters without spaces")
	}
	return httpapi.Secret(token), nil
}

// avatars is where pictures of users come from.
func (c *serveCmd) avatars(token httpapi.Secret) httpapi.AvatarConfig {
	return httpapi.AvatarConfig{API: string(c.ChatAPIURL), CDN: string(c.ChatCDNURL), Token: token}
}

// checkAvatars refuses addresses that do not go together.
func (c *serveCmd) checkAvatars() error {
	token := httpapi.Secret("")
	if c.ChatTokenFile != "" {
		token = "there will be one"
	}
	if err := c.avatars(token).Check(); err != nil {
		return usagef("--chat-api-url, --chat-cdn-url, --chat-token-file: %w", err)
	}
	return nil
}
