package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"example.org/registry/events/failpoint"
)

// setAside renames the file at path, with what in its new name, which nothing had before.
func setAside(path, what string, now time.Time) (string, error) {
	name, err := freeName(path, what, now)
	if err != nil {
		return "", err
	}
	if err := failpoint.Hit("store/before-set-aside"); err != nil {
		return "", err
	}
	if err := os.Rename(path, name); err != nil {
		return "", err
	}
	if err := failpoint.Hit("store/after-set-aside"); err != nil {
		return "", err
	}
	return name, syncDir(filepath.Dir(path))
}

// freeName is path with what and the time behind it, and a number where there is such a file.
func freeName(path, what string, now time.Time) (string, error) {
	base := path + "." + what + "-" + now.UTC().Format("20060102T150405Z")
	name := base
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
		name = base + "-" + strconv.Itoa(n)
	}
}
