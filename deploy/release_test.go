package deploy

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// TestReproducible: the same sources in another directory give the same release, to the byte.
func TestReproducible(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	elsewhere, again := t.TempDir(), t.TempDir()
	copySources(t, "..", elsewhere)
	require.NoError(t, release(elsewhere, again))
	files, err := os.ReadDir(released)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		first, err := os.ReadFile(filepath.Join(released, file.Name()))
		require.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(again, file.Name()))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is another one when it is made elsewhere (%v)", file.Name(), err)
		}
	}
	if out := output(t, "sh", "-c", `cd "$0" && sha256sum -c SHA256SUMS`, released); strings.Count(out, ": OK") != 2 {
		t.Error(out)
	}
}

// TestLicenses: the license of every module that the linker used, of Go, and of the data that is
// embedded, is in a release and in the image.
func TestLicenses(t *testing.T) {
	for _, want := range []string{"RUN go run ./deploy/licenses /out/registry > /out/LICENSES", "COPY --from=build /out/LICENSES /LICENSES"} {
		if !slices.ContainsFunc(dockerfile(t), func(i instruction) bool { return strings.HasPrefix(i.name+" "+i.rest, want) }) {
			t.Errorf("the image lacks %q", want)
		}
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(registry), "LICENSES"))
	if released == "" {
		cmd := exec.Command("go", "run", "./deploy/licenses", registry)
		cmd.Dir = ".."
		text, err = cmd.Output()
	}
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(registry)
	require.NoError(t, err)
	want := []string{info.GoVersion + ": LICENSE\n", "readmodel/lookalike/LICENSE.unicode\n", "readmodel/terms/LICENSE.lexicon\n", "readmodel/terms/NOTICE.lexicon\n"}
	for _, module := range info.Deps {
		want = append(want, module.Path+" "+module.Version+": ")
	}
	for _, heading := range want {
		if !bytes.Contains(text, []byte("\n=== "+heading)) && !bytes.HasPrefix(text, []byte("=== "+heading)) {
			t.Errorf("the licenses lack %q", heading)
		}
	}
}

// TestVersion: the changelog's newest version is the one that everything else names.
func TestVersion(t *testing.T) {
	version := regexp.MustCompile(`v\d+\.\d+\.\d+`)
	changes, err := os.ReadFile(filepath.Join("..", "CHANGELOG.md"))
	require.NoError(t, err)
	_, heading, _ := strings.Cut(string(changes), "\n## ")
	newest := version.FindString(heading)
	for file, line := range map[string]string{
		"kustomization.yaml": "newTag: " + newest + " ",
		"README.md":          "go run ./deploy/release -version " + newest + "\n",
		"Dockerfile":         "--build-arg VERSION=" + newest + " ",
		"release/main.go":    "-version " + newest + " ",
	} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s lacks %q (%v)", file, line, err)
		}
	}
}

// copySources copies what a build reads.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".git") || d.Name() == "testdata" || name == "dist" || strings.HasPrefix(name, "data")):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	})
	require.NoError(t, err)
}

// TestStaticBinary: the program needs no libraries, knows its version, and contains no path of the
// machine that built it.
func TestStaticBinary(t *testing.T) {
	eventstest.Long(t)
	file, err := elf.Open(registry)
	require.NoError(t, err)
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Error("the program is linked dynamically")
		}
	}
	if said := output(t, registry, "version"); !strings.HasPrefix(said, "registry "+testVersion+" go") {
		t.Error(said)
	}
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	here, err := filepath.Abs("..")
	require.NoError(t, err)
	content, err := os.ReadFile(registry)
	require.NoError(t, err)
	for _, path := range []string{home + "/go/", here + "/"} {
		if bytes.Contains(content, []byte(path)) {
			t.Error("a path of this machine is in the program:", path)
		}
	}
}

// TestBillOfMaterials: the bill lists every module that the linker used, and the standard library.
func TestBillOfMaterials(t *testing.T) {
	eventstest.Long(t)
	file, err := os.Open(filepath.Join(released, releasedName+".cdx.json"))
	require.NoError(t, err)
	defer file.Close()
	var bill cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bill))
	named := map[string]string{}
	for _, c := range *bill.Components {
		named[c.Name] = c.Version
	}
	info, err := buildinfo.ReadFile(registry)
	require.NoError(t, err)
	for _, module := range info.Deps {
		if named[module.Path] != module.Version {
			t.Errorf("%s %s: the bill says %q", module.Path, module.Version, named[module.Path])
		}
	}
	if len(named) != len(info.Deps)+1 || named["std"] != info.GoVersion || bill.Metadata.Component.Version != testVersion {
		t.Errorf("%d components for %d modules, Go %q, version %q", len(named), len(info.Deps), named["std"], bill.Metadata.Component.Version)
	}
}
