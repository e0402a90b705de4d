// Command release makes the files of a version: for each platform an archive and the CycloneDX bill
// of materials of its binary, and the SHA-256 of everything. An archive holds the static binary, and
// the licenses of what is in it (deploy/licenses). Building the same commit as the same version
// with the same Go gives the same bytes:
//
//	go run ./deploy/release -version v1.0.0 && (cd dist && sha256sum -c SHA256SUMS)
package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "", "version, such as v1.0.0 (required)")
	commit := flag.String("commit", "", "commit of the sources; default: what git says, or none")
	out := flag.String("out", "dist", "directory for the files; what is in it is replaced")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	flag.Parse()
	if err := run(*version, cmp.Or(*commit, head()), *out, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, commit, out string, platforms []string) error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return fmt.Errorf("-version: %q is not a version such as v1.0.0", version)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var files []string // named in SHA256SUMS
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		name := "registry_" + version + "_" + system + "_" + arch
		binary := filepath.Join(out, "registry")
		if err := build(binary, version, commit, system, arch); err != nil {
			return err
		}
		if err := writeBill(filepath.Join(out, name+".cdx.json"), binary, version); err != nil {
			return err
		}
		licenses := filepath.Join(out, "LICENSES")
		if err := writeLicenses(licenses, binary); err != nil {
			return err
		}
		if err := writeArchive(filepath.Join(out, name+".tar.gz"), name, []string{binary, licenses}); err != nil {
			return err
		}
		if err := errors.Join(os.Remove(binary), os.Remove(licenses)); err != nil {
			return err
		}
		files = append(files, name+".tar.gz", name+".cdx.json")
	}
	var sums strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// build builds as deploy/Dockerfile does, without the msgpack of gin, which nothing uses. With
// -trimpath and no VCS stamp, the binary does not tell where and when it was built.
func build(file, version, commit, system, arch string) error {
	cmd := exec.Command("go", "build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+version+" -X main.commit="+commit, "-o", file, "./cmd/registry")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=-mod=readonly")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s/%s (in the repository's root?): %w: %s", system, arch, err, output)
	}
	return nil
}

// head is the commit of the sources, where git knows it.
func head() string {
	id, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// writeLicenses writes the licenses of what is in binary.
func writeLicenses(file, binary string) error {
	cmd := exec.Command("go", "run", "./deploy/licenses", binary)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("licenses: %w", err)
	}
	return os.WriteFile(file, text, 0o644)
}

// writeArchive writes the files below a directory, without a time or an owner, so that the same files
// make the same archive.
func writeArchive(archive, directory string, files []string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	compressed := gzip.NewWriter(out)
	tape := tar.NewWriter(compressed)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if filepath.Base(file) == "registry" {
			mode = 0o755
		}
		if err := tape.WriteHeader(&tar.Header{Name: directory + "/" + filepath.Base(file), Mode: mode, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := tape.Write(content); err != nil {
			return err
		}
	}
	return cmp.Or(tape.Close(), compressed.Close())
}

// writeBill writes what the linker recorded in binary.
func writeBill(file, binary, version string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bill(info, version)); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// bill returns the bill of materials. It has neither a time nor a serial number, so that the same binary
// has the same bill.
func bill(info *debug.BuildInfo, version string) *cdx.BOM {
	root := component(cdx.ComponentTypeApplication, info.Main.Path, version)
	needs := []string{}
	components := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := component(cdx.ComponentTypeLibrary, module.Path, module.Version)
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: module.Sum}}
		components = append(components, c)
	}
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = ""
	bom.Metadata = &cdx.Metadata{Component: &root}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &needs}}
	return bom
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}
