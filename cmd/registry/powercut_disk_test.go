//go:build !race

package main

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// recording is a trace of a server: its system calls, in order, as far as they change its data
// directory or acknowledge events.
type recording struct {
	root  string // the data directory
	calls []call
	base  map[string][]byte // the files that were there before, all of them on the disk
}

// call is one system call that succeeded.
type call struct {
	name   string
	path   string // of the first descriptor or name
	fd     int
	gone   bool   // the descriptor's file has no name any more
	flags  string // of an openat
	to     string // of a renameat or linkat
	data   []byte
	offset int64  // of a pwrite64, or the length for ftruncate
	acked  uint64 // by a write to a socket: the last sequence in it
}

var (
	hexText    = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
	hexPath    = regexp.MustCompile(`<((?:\\x[0-9a-f]{2})+)>`)
	resumed    = regexp.MustCompile(`^<\.\.\. \w+ resumed>(.*)`)
	callName   = regexp.MustCompile(`^(\w+)\(`)
	descriptor = regexp.MustCompile(`^\w+\((\d+)<([^>]*)>(\(deleted\))?`)
	opened     = regexp.MustCompile(`O_[A-Z_|]+`)
	returned   = regexp.MustCompile(`\)\s+= (-?\d+)`)
	acked      = regexp.MustCompile(`"stream":"REGISTRY",\s*"seq":(\d+)`)
)

// parseTrace reads the output of strace -f -y -xx.
func parseTrace(text, root string) ([]call, error) {
	unfinished := map[string]string{}
	var calls []call
	for line := range strings.Lines(text) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		if before, ok := strings.CutSuffix(rest, "<unfinished ...>"); ok {
			unfinished[pid] = before
			continue
		}
		if m := resumed.FindStringSubmatch(rest); m != nil {
			rest = unfinished[pid] + m[1]
		}
		c, ok, err := parseCall(rest, root)
		if err != nil {
			return nil, err
		}
		if ok {
			calls = append(calls, c)
		}
	}
	return calls, nil
}

// parseCall reads one call. ok is false if it failed or does not matter.
func parseCall(text, root string) (c call, ok bool, err error) {
	name, ret := callName.FindStringSubmatch(text), returned.FindAllStringSubmatch(text, -1)
	if name == nil || len(ret) == 0 || strings.HasPrefix(ret[len(ret)-1][1], "-") {
		return c, false, nil
	}
	c.name = name[1]
	text = hexPath.ReplaceAllStringFunc(text, func(s string) string { return "<" + unhex(s[1:len(s)-1]) + ">" })
	var texts []string
	for _, m := range hexText.FindAllStringSubmatch(text, -1) {
		texts = append(texts, unhex(m[1]))
	}
	if m := descriptor.FindStringSubmatch(text); m != nil {
		c.fd, _ = strconv.Atoi(m[1])
		c.path, c.gone = m[2], m[3] != ""
	}
	at := func(n int) string { // a name, which may be relative to a directory
		if len(texts) <= n {
			return ""
		}
		return filepath.Clean(texts[n])
	}
	inside := func(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }
	switch c.name {
	case "openat":
		c.path, c.flags = at(0), opened.FindString(text[strings.LastIndexByte(text, '"'):])
		c.fd, _ = strconv.Atoi(ret[len(ret)-1][1])
	case "renameat", "renameat2", "linkat":
		c.path, c.to = at(0), at(1)
	case "unlinkat":
		c.path = at(0)
	case "write", "writev", "pwrite64":
		c.data = []byte(strings.Join(texts, ""))
		if m := acked.FindAllSubmatch(c.data, -1); m != nil && !inside(c.path) {
			c.acked, _ = strconv.ParseUint(string(m[len(m)-1][1]), 10, 64)
			return c, true, nil
		}
	}
	if c.name == "pwrite64" || c.name == "ftruncate" {
		args := text[:strings.LastIndex(text, ")")]
		c.offset, err = strconv.ParseInt(strings.TrimSpace(args[strings.LastIndexByte(args, ',')+1:]), 10, 64)
	}
	if !inside(c.path) && !(c.name == "fsync" && strings.HasPrefix(root, c.path)) {
		return c, false, nil
	}
	switch c.name {
	case "copy_file_range", "sendfile", "pwritev", "pwritev2", "fallocate":
		err = fmt.Errorf("this replay does not know %s", c.name)
	}
	return c, true, err
}

func unhex(s string) string {
	var b strings.Builder
	for i := 0; i+3 < len(s); i += 4 {
		n, _ := strconv.ParseUint(s[i+2:i+4], 16, 8)
		b.WriteByte(byte(n))
	}
	return b.String()
}

// platter is a disk before the power goes: what is on it for sure, and what may be.
type platter struct {
	noSync, posix bool
	names         map[string]*inode // as the program sees them
	durable       map[string]*inode // as they are after a cut
	pending       []renaming        // changes of names that may be lost
	open          map[int]*handle
}

// inode is one file: what a cut leaves for sure, and what it may.
type inode struct {
	synced  []byte
	size    int64
	pending []change
	always  bool // opened with O_SYNC
}

type change struct {
	offset int64
	data   []byte // nil: the file ends at offset
}

type renaming struct {
	from, to string // from empty: created or linked; to empty: removed
	file     *inode
}

type handle struct {
	path string
	file *inode
	at   int64
}

// mixSector is the number of bytes that a disk writes at once.
const mixSector = 512

// cut replays the calls up to point, and writes to dir one of the states that a power cut may leave
// then. Changes of names survive as a prefix: all before any sync, or with posix only those before
// the sync of a directory. Of the data that is not synced any subset of sectors survives.
func (r *recording) cut(point int, rng *rand.Rand, noSync, posix bool, dir string) (acked uint64, err error) {
	p := &platter{noSync: noSync, posix: posix, names: map[string]*inode{}, durable: map[string]*inode{}, open: map[int]*handle{}}
	for name, data := range r.base {
		f := &inode{synced: data, size: int64(len(data))}
		p.names[filepath.Join(r.root, name)], p.durable[filepath.Join(r.root, name)] = f, f
	}
	for _, c := range r.calls[:point] {
		acked = max(acked, c.acked)
		p.apply(c)
	}
	p.commit(rng.IntN(len(p.pending) + 1))
	chance := []float64{0, .3, .7, 1}[rng.IntN(4)]
	for name, f := range p.durable {
		data := append([]byte(nil), f.synced...)
		for _, c := range f.pending {
			data = c.some(data, chance, rng)
		}
		relative, err := filepath.Rel(r.root, name)
		if err != nil {
			return 0, err
		}
		to := filepath.Join(dir, relative)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return 0, err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return 0, err
		}
	}
	return acked, nil
}

func (p *platter) apply(c call) {
	switch c.name {
	case "openat":
		p.opened(c)
	case "write", "pwrite64":
		f, at := p.file(c), c.offset
		if f == nil {
			return
		}
		if h := p.open[c.fd]; c.name == "write" && h != nil && h.file == f {
			at = h.at
			h.at += int64(len(c.data))
		}
		f.size = max(f.size, at+int64(len(c.data)))
		f.pending = append(f.pending, change{at, c.data})
		if f.always {
			p.sync(f)
		}
	case "ftruncate":
		if f := p.file(c); f != nil {
			f.size = c.offset
			f.pending = append(f.pending, change{c.offset, nil})
		}
	case "fsync", "fdatasync":
		if f := p.file(c); f != nil {
			p.sync(f)
		} else if !p.noSync && !c.gone {
			p.commit(len(p.pending)) // a directory's
		}
	case "renameat", "renameat2":
		p.rename(c.path, c.to)
	case "linkat":
		if f := p.names[c.path]; f != nil {
			p.names[c.to] = f
			p.pending = append(p.pending, renaming{to: c.to, file: f})
		}
	case "unlinkat":
		if _, ok := p.names[c.path]; ok {
			delete(p.names, c.path)
			p.pending = append(p.pending, renaming{from: c.path})
		}
	}
}

// file returns the file that a call's descriptor is open for: of two that had the same name, one
// after the other, the right one. It is nil for a directory.
func (p *platter) file(c call) *inode {
	switch h := p.open[c.fd]; {
	case h != nil && h.path == c.path:
		return h.file
	case c.gone:
		return nil
	default:
		return p.names[c.path]
	}
}

func (p *platter) opened(c call) {
	delete(p.open, c.fd)
	f := p.names[c.path]
	if f == nil && strings.Contains(c.flags, "O_CREAT") {
		f = &inode{}
		p.names[c.path] = f
		p.pending = append(p.pending, renaming{to: c.path, file: f})
	}
	if f == nil {
		return
	}
	h := &handle{path: c.path, file: f}
	if strings.Contains(c.flags, "O_TRUNC") {
		f.size = 0
		f.pending = append(f.pending, change{0, nil})
	}
	if strings.Contains(c.flags, "O_APPEND") {
		h.at = f.size
	}
	f.always = f.always || strings.Contains(c.flags, "O_SYNC")
	p.open[c.fd] = h
}

// rename moves a file, or all that is in a directory.
func (p *platter) rename(from, to string) {
	move(p.names, from, to)
	for _, h := range p.open {
		if rest, ok := strings.CutPrefix(h.path, from); ok && (rest == "" || rest[0] == '/') {
			h.path = to + rest
		}
	}
	p.pending = append(p.pending, renaming{from: from, to: to})
}

func move(names map[string]*inode, from, to string) {
	moved := map[string]*inode{}
	for name, f := range names {
		if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
			moved[to+rest] = f
			delete(names, name)
		}
	}
	maps.Copy(names, moved)
}

// sync brings a file to the disk, and with a journal all changes of names before it.
func (p *platter) sync(f *inode) {
	if p.noSync {
		return
	}
	for _, c := range f.pending {
		f.synced = c.apply(f.synced)
	}
	f.pending = nil
	if !p.posix {
		p.commit(len(p.pending))
	}
}

// commit brings the first n changes of names to the disk.
func (p *platter) commit(n int) {
	for _, r := range p.pending[:n] {
		switch {
		case r.from == "":
			p.durable[r.to] = r.file
		case r.to == "":
			delete(p.durable, r.from)
		default:
			move(p.durable, r.from, r.to)
		}
	}
	p.pending = p.pending[n:]
}

func (c change) apply(data []byte) []byte {
	end := c.offset + int64(len(c.data))
	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	if c.data == nil {
		return data[:c.offset]
	}
	copy(data[c.offset:], c.data)
	return data
}

// some applies c sector by sector, each by chance.
func (c change) some(data []byte, chance float64, rng *rand.Rand) []byte {
	if c.data == nil {
		if rng.Float64() < chance {
			data = c.apply(data)
		}
		return data
	}
	for from := 0; from < len(c.data); from += mixSector {
		if rng.Float64() < chance {
			data = change{c.offset + int64(from), c.data[from:min(from+mixSector, len(c.data))]}.apply(data)
		}
	}
	return data
}

// filesOf reads every file below dir.
func filesOf(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err == nil {
			files[relative], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}
