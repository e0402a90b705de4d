package broker

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	mebibyte      = int64(1) << 20
	minStore      = 256 * mebibyte
	maxStore      = 64 * 1024 * mebibyte
	defaultMemory = 256 * mebibyte
)

// storeLimit is how many bytes the streams may take in all. The limit counts what they take
// already, so that a full disk cannot make a restart refuse its own streams.
func storeLimit(cfg Config) int64 {
	if cfg.MaxStore > 0 {
		return cfg.MaxStore
	}
	return min(max(freeBytes(cfg.StoreDir)/4*3+usedBytes(cfg.StoreDir), minStore), maxStore)
}

func memoryLimit(cfg Config) int64 {
	if cfg.MaxMemory > 0 {
		return cfg.MaxMemory
	}
	return defaultMemory
}

// freeBytes is what an unprivileged process may still write; 0 when that is unknown.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(min(st.Bavail*uint64(st.Bsize), uint64(maxStore)*4))
}

// usedBytes is the size of the files below dir; what cannot be read counts as nothing.
func usedBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file may vanish while we look; an estimate is enough
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
