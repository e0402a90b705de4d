package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestContainerMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none": {nil, 0},
		"v2 without a limit": {map[string]string{
			"proc/self/cgroup": "0::/app\n", "sys/fs/cgroup/app/memory.max": "max\n"}, 0},
		"v2": {map[string]string{
			"proc/self/cgroup": "0::/app\n", "sys/fs/cgroup/app/memory.max": "536870912\n"}, 512 << 20},
		"v2, the parent's is lower": {map[string]string{
			"proc/self/cgroup":                 "0::/pod/app\n",
			"sys/fs/cgroup/pod/app/memory.max": "max\n", "sys/fs/cgroup/pod/memory.max": "1048576\n"}, 1 << 20},
		"v2, own path not visible": {map[string]string{
			"proc/self/cgroup": "0::/../other\n", "sys/fs/cgroup/memory.max": "2097152\n"}, 2 << 20},
		"v1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/x\n",
			"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "3145728\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n"}, 3 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, found := containerMemory(root)
			if found != (c.want > 0) || found && got != c.want {
				t.Errorf("limit %d, %v; want %d", got, found, c.want)
			}
		})
	}
}

// TestPercentFor: a small heap is given the least head-room there is, a large one gcPercent.
func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 6390, 64 << 20: 790, 128 << 20: 390, 1 << 30: 40, 1 << 31: 25, 1 << 34: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes live: %d%%, want %d%%", live, got, want)
		}
	}
}
